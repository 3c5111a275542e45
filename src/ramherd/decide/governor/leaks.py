"""Whether an agent leaks: the trend of its own memory while no tool call is open.

The trend is that of the valleys: garbage collectors let memory rise and fall, and only the memory
that remains after a collection counts. The rise of a start and of a filling cache flattens out; a
leak stays as steep.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from ramherd.core.units import MIB

Point = tuple[float, int]

# The number of points for a whole run: when full, each pair is reduced to its lower point.
KEEP_POINTS = 240
WINDOWS = 12
# Three samples per window; with fewer, a valley is no better than any other sample.
LEAST_POINTS = 3 * WINDOWS
# Idle agents vary by 5 MB a second: a trend has to be well above that.
LEAST_RISE_BYTES = 24 * MIB
NOISE_TIMES = 3.0
# Share of pairs of valleys that rise; 0.5 is chance.
CERTAIN = 0.9
# A filling cache has lost two thirds of its slope by the last third of the time.
STEADY = 0.4


@dataclass(frozen=True, slots=True)
class IdleSamples:
    """The idle samples of one run, thinned so that a run of any length fits."""

    points: tuple[Point, ...] = ()
    every_s: float = 1.0


@dataclass(frozen=True, slots=True)
class Leak:
    slope_bytes_per_s: float
    certainty: float
    used_bytes: int

    def left_s(self, limit_bytes: int) -> float:
        """The time until the limit is reached at this pace."""
        return max(limit_bytes - self.used_bytes, 0) / self.slope_bytes_per_s


def next_samples(watch: IdleSamples, at_s: float, own_bytes: int) -> IdleSamples:
    points = watch.points
    if points and at_s - points[-1][0] < watch.every_s:
        lower = min(points[-1][1], own_bytes)
        return IdleSamples((*points[:-1], (points[-1][0], lower)), watch.every_s)
    points = (*points, (at_s, own_bytes))
    if len(points) <= KEEP_POINTS:
        return IdleSamples(points, watch.every_s)
    pairs = zip(points[::2], points[1::2], strict=False)
    thinned = tuple((first[0], min(first[1], second[1])) for first, second in pairs)
    return IdleSamples(thinned, watch.every_s * 2)


def find_leak(points: Sequence[Point]) -> Leak | None:
    if len(points) < LEAST_POINTS:
        return None
    low = valleys(points)
    if len(low) < WINDOWS // 2:
        return None
    slope, certainty = trend(low)
    if slope <= 0 or certainty < CERTAIN or not is_steady(low, slope):
        return None
    rise = slope * (low[-1][0] - low[0][0])
    if rise < max(LEAST_RISE_BYTES, NOISE_TIMES * noise(low, slope)):
        return None
    return Leak(slope, certainty, points[-1][1])


def valleys(points: Sequence[Point]) -> list[Point]:
    """The lowest point of each of twelve equal windows of time."""
    start, end = points[0][0], points[-1][0]
    width = (end - start) / WINDOWS or 1.0
    lowest: dict[int, Point] = {}
    for point in points:
        window = min(int((point[0] - start) / width), WINDOWS - 1)
        if window not in lowest or point[1] < lowest[window][1]:
            lowest[window] = point
    return list(lowest.values())


def trend(low: Sequence[Point]) -> tuple[float, float]:
    """The median slope of all pairs (Theil-Sen), and the share of pairs that rise."""
    slopes = sorted((b[1] - a[1]) / (b[0] - a[0]) for a, b in combinations(low, 2) if b[0] > a[0])
    rising = sum(slope > 0 for slope in slopes)
    return slopes[len(slopes) // 2], rising / len(slopes)


def is_steady(low: Sequence[Point], slope: float) -> bool:
    """Whether the last third is as steep as the whole."""
    last = low[-max(len(low) // 3, 3) :]
    return trend(last)[0] >= STEADY * slope


def noise(low: Sequence[Point], slope: float) -> float:
    """The median distance of the valleys from the line."""
    rests = [size - slope * at_s for at_s, size in low]
    middle = sorted(rests)[len(rests) // 2]
    return sorted(abs(rest - middle) for rest in rests)[len(rests) // 2]
