"""The scan of `ramherd ps`, for the doctor: agents, servers, proved orphans, growing sessions."""

from collections.abc import Iterator
from contextlib import closing

from ramherd.config.load import load_config
from ramherd.config.paths import runtime_path, state_path
from ramherd.core.model import ProcId
from ramherd.core.policies import StrayPolicy
from ramherd.decide.governor.leaks import find_leak
from ramherd.doctor.facts import ProcRow
from ramherd.store.connect import open_store_to_read
from ramherd.strays.judge.software import SoftwareTable, parse_software
from ramherd.strays.nouns import Verdict
from ramherd.strays.render import render_facts
from ramherd.strays.scan import Scan, Scanner

HOUR_S = 3600


def read_running() -> Iterator[ProcRow]:
    """The processes of this machine. Records of earlier scans are read if there is a store: reading
    creates none.
    """
    config = load_config(report=lambda _error: None)  # `ramherd config` reports errors
    known = SoftwareTable(parse_software(config.software))
    with closing(open_store_to_read(state_path(), lambda _text: None)) as opened:
        return rows_of(Scanner(StrayPolicy(), known, runtime_path(), opened).scan_closely())


def rows_of(scan: Scan) -> Iterator[ProcRow]:
    for row in scan.rows:
        program = scan.scene.programs.get(row.process.pid)
        yield ProcRow(
            pid=row.process.pid,
            name=row.software,
            kind=row.kind.value,
            used_bytes=row.memory_bytes,
            command="\0".join(program.argv) if program is not None else "",
            orphan=render_facts(row.evidence) if row.verdict is Verdict.ORPHAN else "",
            growth_bytes_per_hour=find_growth(scan, row.process.id),
        )


def find_growth(scan: Scan, process: ProcId) -> float | None:
    """The growth since earlier scans; None if it does not grow, or was not scanned."""
    sighting = scan.scene.sightings.get(process)
    leak = find_leak(sighting.points) if sighting is not None else None
    return None if leak is None else HOUR_S * leak.slope_bytes_per_s
