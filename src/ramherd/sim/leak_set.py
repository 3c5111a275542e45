"""Series of an idle agent's memory, with and without a leak, to test the leak detection.

Leaks range from 50 MB an hour to 70 MB a second, on top of noise and a collector's sawtooth. The
series without a leak look similar: a sawtooth, a ramp at the start, a filling cache, bursts of
tools.
"""

import math
from collections.abc import Callable, Iterator
from random import Random
from typing import NamedTuple

from ramherd.core.memory import MB
from ramherd.decide.governor.leaks import IdleSamples, Point, find_leak, next_samples

SLOWEST_BYTES_PER_S = 50 * MB / 3600
FASTEST_BYTES_PER_S = 70 * MB


class Series(NamedTuple):
    kind: str
    leaks: bool
    points: list[Point]


Shape = Callable[[float], float]


def leak_set(seed: int, number: int) -> Iterator[Series]:
    """Half of the series leak; the kinds take turns."""
    rng = Random(seed)
    decoys = (flat, sawtooth, warm_up, filling_cache, tool_bursts)
    for index in range(number):
        if index % 2:
            yield leaking(rng)
        else:
            yield decoys[index // 2 % len(decoys)](rng)


def leaking(rng: Random) -> Series:
    """As long as it takes to grow by 100 to 400 MB, at least half a minute."""
    share = rng.random()
    slope = SLOWEST_BYTES_PER_S * (FASTEST_BYTES_PER_S / SLOWEST_BYTES_PER_S) ** share
    length_s = max(rng.uniform(100, 400) * MB / slope, 40.0)
    tooth = teeth(rng, length_s) if rng.random() < 0.5 else _nothing
    return Series("leak", leaks=True, points=draw(rng, length_s, lambda t: slope * t + tooth(t)))


def flat(rng: Random) -> Series:
    return Series("flat", leaks=False, points=draw(rng, some_time(rng), _nothing))


def sawtooth(rng: Random) -> Series:
    length_s = some_time(rng)
    return Series("sawtooth", leaks=False, points=draw(rng, length_s, teeth(rng, length_s)))


def warm_up(rng: Random) -> Series:
    """Ramps up for at most half of the time, then stays level."""
    length_s, height = some_time(rng), rng.uniform(50, 400) * MB
    ramp_s = length_s * rng.uniform(0.05, 0.5)
    return Series(
        "warm-up", leaks=False, points=draw(rng, length_s, lambda t: height * min(t / ramp_s, 1.0))
    )


def filling_cache(rng: Random) -> Series:
    length_s, height = some_time(rng), rng.uniform(50, 400) * MB
    pace_s = length_s * rng.uniform(0.1, 0.3)
    return Series(
        "cache",
        leaks=False,
        points=draw(rng, length_s, lambda t: height * (1 - math.exp(-t / pace_s))),
    )


def tool_bursts(rng: Random) -> Series:
    """Samples that were taken as idle while a tool held memory."""
    length_s, rate, height = some_time(rng), rng.uniform(0.02, 0.2), rng.uniform(50, 800) * MB
    burst = Random(rng.random())
    points = draw(rng, length_s, lambda _t: height * burst.random() * (burst.random() < rate))
    return Series("tool bursts", leaks=False, points=points)


def teeth(rng: Random, length_s: float) -> Shape:
    """A collector: up by 20 to 200 MB, then back, 4 to 60 times in the series."""
    height = rng.uniform(20, 200) * MB
    period_s, phase = length_s / rng.uniform(4, 60), rng.random()
    return lambda t: height * ((t / period_s + phase) % 1.0)


def _nothing(_t: float) -> float:
    return 0.0


def some_time(rng: Random) -> float:
    """From a minute to four hours, with as many short as long ones."""
    return float(60 * 240 ** rng.random())


def draw(rng: Random, length_s: float, shape: Shape) -> list[Point]:
    """One sample a second, or 500 in total for long series."""
    level, jitter = rng.uniform(120, 400) * MB, rng.uniform(1, 6) * MB
    every_s = max(1.0, length_s / 500)
    return [
        (n * every_s, int(level + shape(n * every_s) + abs(rng.gauss(0, jitter))))
        for n in range(int(length_s / every_s))
    ]


class Score(NamedTuple):
    series: int
    precision: float
    recall: float
    missed: list[str]
    false: list[str]


def score(seed: int, number: int) -> Score:
    """Thins each series as the samples of a real run are thinned."""
    found_true, missed, false = 0, list[str](), list[str]()
    for series in leak_set(seed, number):
        watch = IdleSamples()
        for at_s, size in series.points:
            watch = next_samples(watch, at_s, size)
        found = find_leak(watch.points) is not None
        if found and series.leaks:
            found_true += 1
        elif found:
            false.append(series.kind)
        elif series.leaks:
            missed.append(series.kind)
    found_all = found_true + len(false)
    return Score(
        number,
        found_true / found_all if found_all else 1.0,
        found_true / max(found_true + len(missed), 1),
        missed,
        false,
    )
