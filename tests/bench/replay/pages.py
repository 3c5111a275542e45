"""The contests in docs/benchmarks.md, the short table of README.md, and the picture."""

import os
import platform
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench.replay.bars import Contest, bar_rows
from bench.replay.herd import Herd
from bench.replay.picture import render_picture
from bench.replay.table import full_rows, render_table, short_rows
from ramherd.sim.bench import write_section
from ramherd.system.procfs import read_meminfo

MARK = "bench-replay"
PICTURE = "docs/memory-over-time.svg"


def write_pages(root: Path, contests: Sequence[Contest]) -> None:
    write_section(root / "docs/benchmarks.md", MARK, list(render_all(contests)))
    for contest in contests:
        if contest.name == "whole":
            picture = render_picture(contest.outcomes, contest.herd.budget_bytes)
            (root / PICTURE).write_text(picture)
            rows = list(render_table(short_rows(contest.outcomes)))
            write_section(root / "README.md", MARK, rows)


def render_all(contests: Sequence[Contest]) -> Iterator[str]:
    yield render_machine()
    yield ""
    yield from render_table(bar_rows(contests))
    for contest in contests:
        yield ""
        yield from render_contest(contest)


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


def pace(herd: Herd) -> str:
    return "real time" if herd.speed == 1 else f"1/{herd.speed:g} time"
