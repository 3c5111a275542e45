"""The records of scans for later ones, and their trends: how busy a process was, and whether
agents, servers and strays grow faster than they are reaped.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ramherd.core.sightings import Sighting, StrayCount
from ramherd.decide.governor.leaks import IdleSamples, next_samples, trend
from ramherd.strays.judge.protection import is_busy
from ramherd.strays.nouns import ProcessScene, PsRow

POINTS_EVERY_S = 60.0
HOUR_S = 3600.0
# From four scans on a robust line is fitted. Before, agents that start are no trend; for strays the
# difference has to do, if it took so long that it is not the end of one session.
LEAST_SCANS = 4
LEAST_APART_S = 300.0
MOST_SCANS = 100
CERTAIN = 0.8
LEAST_RISE = 5


def next_sighting(row: PsRow, scene: ProcessScene) -> Sighting:
    process, now = row.process, scene.at_s
    seen = scene.sightings.get(process.id)
    points = next_points(seen.points if seen is not None else (), now, row.memory_bytes)
    if seen is None:
        return Sighting(
            now, now, process.ppid, process.used_ticks, now, row.memory_bytes, row.orphan_s, points
        )  # fmt: skip
    busy = is_busy(seen, process.used_ticks, now, scene.ticks_per_s)
    return Sighting(
        seen.first_s,
        now,
        # The parent at the first sighting: another parent now means that the process was inherited.
        seen.ppid,
        process.used_ticks,
        now if busy else seen.active_s,
        row.memory_bytes,
        row.orphan_s,
        points,
    )


def next_points(
    points: tuple[tuple[float, int], ...], at_s: float, memory_bytes: int
) -> tuple[tuple[float, int], ...]:
    return next_samples(IdleSamples(points, spacing(points)), at_s, memory_bytes).points


def spacing(points: tuple[tuple[float, int], ...]) -> float:
    """The distance between two points after thinning; it grows with the history."""
    if len(points) < 2:
        return POINTS_EVERY_S
    return max(POINTS_EVERY_S, (points[-1][0] - points[0][0]) / len(points))


class Growth(NamedTuple):
    """The increase of processes per hour; `ended_per_hour` is the number reaped."""

    what: str
    per_hour: float
    ended_per_hour: float
    software: tuple[str, ...] = ()


def find_growth(counts: Sequence[StrayCount]) -> list[Growth]:
    """The growth of all processes and of strays, with the software that grows the most. The last
    count is the present: if nothing is left, nothing grows.
    """
    found = []
    for what in ("processes", "strays"):
        least = LEAST_SCANS if what == "processes" else 2
        growth = growth_of(points_of(counts, what), least)
        if growth is not None:
            # What the first scan ended had come before it.
            first_s = min(count.at_s for count in counts)
            ended = sum(one.ended for one in counts if one.at_s > first_s) / hours(counts)
            found.append(Growth(what, growth, ended, steepest(counts, what)))
    return found


def growth_of(points: list[tuple[float, int]], least_scans: int) -> float | None:
    if len(points) < least_scans or points[-1][1] == 0:
        return None
    rise, apart_s = points[-1][1] - points[0][1], points[-1][0] - points[0][0]
    if rise < LEAST_RISE or apart_s < LEAST_APART_S:
        return None
    if len(points) < LEAST_SCANS:
        return rise / apart_s * HOUR_S
    slope, certainty = trend(points)
    return slope * HOUR_S if certainty >= CERTAIN and slope > 0 else None


def points_of(
    counts: Iterable[StrayCount], what: str, software: str = ""
) -> list[tuple[float, int]]:
    """The sum of each scan, thinned to the points that a trend needs."""
    sums: dict[float, int] = {}
    for count in counts:
        wanted = not software or count.software == software
        sums[count.at_s] = sums.get(count.at_s, 0) + (getattr(count, what) if wanted else 0)
    points = sorted(sums.items())
    # The last point is always among them.
    return points[:: -max(len(points) // MOST_SCANS, 1)][::-1]


def steepest(counts: Sequence[StrayCount], what: str) -> tuple[str, ...]:
    """The software with most of the rise, at most three."""
    rises = []
    for software in sorted({count.software for count in counts}):
        points = points_of(counts, what, software)
        rises.append((points[-1][1] - points[0][1], software))
    return tuple(name for rise, name in sorted(rises, reverse=True)[:3] if rise > 0)


def hours(counts: Sequence[StrayCount]) -> float:
    times = [count.at_s for count in counts]
    return max((max(times) - min(times)) / HOUR_S, 1 / 60)
