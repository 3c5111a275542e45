"""Results of scans for the next scan: sightings of processes, and counts of strays."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from ramherd.core.model import ProcId
from ramherd.core.sightings import Sighting, StrayCount
from ramherd.store.owner import Owner, is_alive
from ramherd.store.protocol import Store
from ramherd.store.sql import records
from ramherd.store.sql import strays as sql

# A process not seen for a day belongs to another boot, or to a container that is gone.
KEEP_S = 86400.0
KEEP_COUNTS_S = 7 * 86400.0


def read_sightings(store: Store, place: str) -> dict[ProcId, Sighting]:
    found = {}
    for row in store.read(sql.SIGHTINGS, (place,)):
        points = tuple((at_s, size) for at_s, size in json.loads(row[-1]))
        found[ProcId(row[0], row[1])] = Sighting._make((*row[2:-1], points))
    return found


def set_sightings(
    store: Store, place: str, sightings: Mapping[ProcId, Sighting], at_s: float
) -> None:
    """Replaces the sightings of this place: a process that is not seen now is gone."""
    store.begin()
    for proc, seen in sightings.items():
        *fields, points = seen
        row = (place, proc.pid, proc.start_ticks, *fields, json.dumps(points))
        store.write(sql.SET_SIGHTING, row)
    store.write(sql.DROP_GONE_SIGHTINGS, (place, at_s))
    store.write(sql.DROP_SIGHTINGS, (at_s - KEEP_S,))
    store.commit()


def add_counts(store: Store, counts: Iterable[StrayCount], at_s: float) -> None:
    for count in counts:
        store.write(sql.ADD_STRAY_COUNT, count)
    store.write(sql.DROP_STRAY_COUNTS, (at_s - KEEP_COUNTS_S,))
    store.commit()


def read_counts(store: Store, since_s: float) -> list[StrayCount]:
    return [StrayCount(*row) for row in store.read(sql.STRAY_COUNTS, (since_s,))]


def find_over(store: Store, runtime: Path, runs: Iterable[str]) -> dict[str, bool]:
    """Whether each run is over, or its owner dead. Runs of other stores are omitted. A run of a
    service that died belongs to the next service: it goes on, and its keeper ends it in time.
    """
    found = {}
    for run in runs:
        for ended, service, owner, boot_id, pid, ticks in store.read(records.RUN_STATE, (run,)):
            alive = service or is_alive(Owner(owner, boot_id, ProcId(pid, ticks)), runtime)
            found[run] = bool(ended) or not alive
    return found
