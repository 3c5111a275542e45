"""The census after a look: what is known of each process that runs, and which ones have ended."""

from collections.abc import Mapping, Sequence

from ramherd.core.census_row import CensusRow, CensusTotal
from ramherd.core.procid import ProcId
from ramherd.decide.governor.leaks import Point, trend, valleys
from ramherd.strays.judge.warnings import is_left, resume_command
from ramherd.strays.nouns import Kind, ProcessScene, PsRow, Verdict

HOUR_S = 3600.0
# Fewer points make no trend; with so many, three in four pairs of them agree by chance in one case
# of forty.
LEAST_POINTS = 8
CERTAIN = 0.75
# A slower change is none: 200 MB in a day.
LEAST_BYTES_PER_HOUR = 8 << 20
KEEP_POINTS = 60


def next_census(
    rows: Sequence[PsRow], scene: ProcessScene, runs: Mapping[int, str],
    old: Mapping[ProcId, CensusRow],
) -> list[CensusRow]:  # fmt: skip
    """`runs` are the ramherd runs of pids, `old` the rows of the last look."""
    return [next_row(row, rows, scene, runs, old.get(row.process.id)) for row in rows]


def next_row(
    row: PsRow, rows: Sequence[PsRow], scene: ProcessScene, runs: Mapping[int, str],
    old: CensusRow | None,
) -> CensusRow:  # fmt: skip
    if old is not None and not row.memory_bytes:
        # It is about to end: its memory and its directory are gone already.
        return old._replace(seen_s=scene.at_s)
    pid, at_s, size = row.process.pid, scene.at_s, row.memory_bytes
    highest, highest_s = size, at_s
    if old is not None and old.highest_bytes >= size:
        highest, highest_s = old.highest_bytes, old.highest_s
    is_agent = row.kind is Kind.AGENT
    return CensusRow(
        process=row.process.id,
        software=row.software,
        kind=row.kind.value,
        session=row.session,
        cwd=scene.cwds.get(pid, "") if is_agent else "",
        resume=resume_command(row, rows, scene) if is_agent else "",
        run=runs.get(row.session) or runs.get(pid, ""),
        verdict=row.verdict.value,
        started_s=at_s - row.age_s,
        seen_s=at_s,
        ended_s=None,
        memory_bytes=size,
        highest_bytes=highest,
        highest_s=highest_s,
        trend_bytes=find_trend(history_of(row.process.id, scene)),
    )


def history_of(process: ProcId, scene: ProcessScene) -> tuple[Point, ...]:
    seen = scene.sightings.get(process)
    return () if seen is None else seen.points


def find_trend(points: Sequence[Point]) -> float | None:
    """Bytes per hour of the memory that remains after collections, up or down."""
    low = valleys(points) if len(points) >= LEAST_POINTS else []
    if len(low) < LEAST_POINTS:
        return None
    slope, rising = trend(low)
    per_hour = slope * HOUR_S
    is_certain = max(rising, 1 - rising) >= CERTAIN
    return per_hour if is_certain and abs(per_hour) >= LEAST_BYTES_PER_HOUR else None


def end_rows(
    rows: Sequence[PsRow], scene: ProcessScene, old: Mapping[ProcId, CensusRow]
) -> list[CensusRow]:
    """Rows of the last look whose process is gone, each with its history."""
    alive = {row.process.id for row in rows}
    return [
        row._replace(ended_s=scene.at_s, points=thin(history_of(process, scene)))
        for process, row in old.items()
        if process not in alive
    ]


def thin(points: tuple[Point, ...]) -> tuple[Point, ...]:
    """Every second, third, ... point, and always the last."""
    step = -(-len(points) // KEEP_POINTS) or 1
    return tuple(reversed(points[::-1][::step]))


def sum_up(rows: Sequence[PsRow], at_s: float, used_percent: float) -> CensusTotal:
    strays = [row for row in rows if is_stray(row)]
    agents = sum(row.kind is Kind.AGENT for row in rows)
    servers = sum(row.kind is Kind.MCP for row in rows)
    return CensusTotal(
        at_s, agents, servers, len(rows) - agents - servers, len(strays),
        sum(row.memory_bytes for row in rows), sum(row.memory_bytes for row in strays),
        used_percent,
    )  # fmt: skip


def is_stray(row: PsRow) -> bool:
    return row.verdict is Verdict.ORPHAN or (row.verdict is Verdict.SUSPECT and is_left(row))
