"""Whether strays, agents and servers grow faster than they are reaped, and which software."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ramherd.core.sightings import StrayCount
from ramherd.decide.governor.leaks import trend

HOUR_S = 3600.0
# Three looks make a line; two would call every second start a trend.
LEAST_LOOKS = 4
MOST_LOOKS = 100
CERTAIN = 0.8
LEAST_RISE = 5


class Growth(NamedTuple):
    """Processes an hour more; `ended` is what was reaped an hour."""

    what: str
    per_hour: float
    ended_per_hour: float
    software: tuple[str, ...] = ()


def find_growth(counts: Sequence[StrayCount]) -> list[Growth]:
    """Of all processes and of strays, with the software that grows the most."""
    found = []
    for what in ("processes", "strays"):
        growth = growth_of(points_of(counts, what))
        if growth is not None:
            ended = sum(count.ended for count in counts) / hours(counts)
            found.append(Growth(what, growth, ended, steepest(counts, what)))
    return found


def growth_of(points: list[tuple[float, int]]) -> float | None:
    if len(points) < LEAST_LOOKS:
        return None
    slope, certainty = trend(points)
    rise = points[-1][1] - points[0][1]
    if certainty < CERTAIN or rise < LEAST_RISE or slope <= 0:
        return None
    return slope * HOUR_S


def points_of(
    counts: Iterable[StrayCount], what: str, software: str = ""
) -> list[tuple[float, int]]:
    """The sum of each look, thinned to what a trend needs."""
    sums: dict[float, int] = {}
    for count in counts:
        wanted = not software or count.software == software
        sums[count.at_s] = sums.get(count.at_s, 0) + (getattr(count, what) if wanted else 0)
    points = sorted(sums.items())
    return points[:: max(len(points) // MOST_LOOKS, 1)]


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
