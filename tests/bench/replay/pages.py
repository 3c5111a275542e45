"""The contests in docs/benchmarks.md, the short table of README.md, and the picture."""

import os
import platform
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.replay.herd import Herd
from bench.replay.outcome import Outcome
from bench.replay.picture import render_picture
from bench.replay.sampler import share_of_core
from bench.replay.table import full_rows, percentile, render_table, short_rows
from bench.replay.told import Told
from ramherd.measure.procfs import read_meminfo
from ramherd.sim.bench import write_section

MARK = "bench-replay"
PICTURE = "docs/memory-over-time.svg"


@dataclass(frozen=True, slots=True)
class Contest:
    name: str
    herd: Herd
    source: str
    oracle_s: float
    outcomes: Sequence[Outcome]
    told: Told


def write_pages(root: Path, contests: Sequence[Contest]) -> None:
    lines = [render_machine(), *(line for one in contests for line in ("", *render_contest(one)))]
    write_section(root / "docs/benchmarks.md", MARK, lines)
    for contest in contests:
        if contest.name == "whole":
            picture = render_picture(contest.outcomes, contest.herd.budget_bytes)
            (root / PICTURE).write_text(picture)
            rows = list(render_table(short_rows(contest.outcomes)))
            write_section(root / "README.md", MARK, rows)


def render_machine() -> str:
    total, _available = read_meminfo()
    return (
        f"Measured on {time.strftime('%Y-%m-%d')}: {os.cpu_count()} cores ({cpu_name()}), "
        f"{total / 1e9:.0f} GB, Linux {platform.release()}, Python {platform.python_version()}."
    )


def cpu_name(path: Path = Path("/proc/cpuinfo")) -> str:
    for line in path.read_text().splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "model name":
            return " ".join(value.split())
    return platform.machine()


def render_contest(contest: Contest) -> Iterator[str]:
    herd = contest.herd
    yield f"### {herd.name}"
    yield ""
    yield (
        f"{len(herd.profiles)} {contest.source} x {herd.copies} at 1/{herd.size:g} size and "
        f"{pace(herd)}, a budget of {herd.budget_bytes / 1e9:.3g} GB. The oracle takes "
        f"{contest.oracle_s:.0f} s."
    )
    yield ""
    yield from render_table(full_rows(contest.outcomes))
    yield from render_own(contest)


def pace(herd: Herd) -> str:
    return "real time" if herd.speed == 1 else f"1/{herd.speed:g} time"


def render_own(contest: Contest) -> Iterator[str]:
    """What ramherd itself costs, and how long it holds: it is the first in each contest."""
    herd, told = contest.herd, contest.told
    share = share_of_core(contest.outcomes[0].costs, herd.processes)
    if share is not None:
        yield ""
        yield (
            f"With all {herd.jobs} running, supervisor and keeper take {share:.1%} of a core; the "
            f"supervisor's peak is {told.supervisor_rss_bytes / 1e6:.1f} MB, the keeper's "
            f"{told.keeper_rss_bytes / 1e6:.1f} MB."
        )
    if told.held_s:
        yield ""
        yield render_held(told.held_s)


def render_held(held_s: Sequence[float]) -> str:
    middle, high = (percentile(held_s, share) * 1000 for share in (0.5, 0.95))
    return f"Held until running again, {len(held_s)} times: p50 {middle:.1f} ms, p95 {high:.1f} ms."
