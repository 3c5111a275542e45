"""The memory of one run over time, drawn from tables of quantiles.

A run has a level, which it reaches within two minutes, and bursts on top of it: tool calls. The
tables are fitted to recorded runs (`fit_tables`), or made from the summaries of the store
(`history_tables`). Pure: numbers and a random generator in, bytes for each second out.
"""

from collections.abc import Iterator, Sequence
from random import Random
from statistics import fmean, median
from typing import NamedTuple

from ramherd.core.memory import MB
from ramherd.decide.governor.classes import RunSummary, quantile
from ramherd.sim.course import by_second
from ramherd.sim.profiles import Profile, split_bursts
from ramherd.sim.synthetic_runs import interpolate

Table = tuple[tuple[float, float], ...]

# Dense at the end: one run in fifteen has bursts of a multiple of its level, and decides the risk.
SHARES = (0, 0.05, 0.1, 0.25, 0.5, 0.75, 0.85, 0.9, 0.92, 0.94, 0.96, 0.98, 1)
# The seconds at which the growth of a run is known.
GROWTH_AT_S = (0, 1, 5, 10, 20, 35, 50, 75, 100, 150, 200, 300, 400, 600)
# Memory above the level that counts as a burst: idle agents change by 5 MB a second at p95.
BURST_BYTES = 25 * MB
# The runs above this quantile of the highest bursts are heavy.
HEAVY = 0.85
# The highest point of a run lasts this long.
TOP_S = 2
# The agent's own start; tool calls come after it.
START_S = 10
# Runs that are still growing do not say at which level they stay.
_GROWN_SHARE = 1 / 3
# A level seen at fewer runs than this is not a mean.
_LEAST_RUNS = 5
# Few runs have the highest bursts: the next herd may have higher ones than were ever recorded.
_TAIL = ((0.99, 1.0), (1.0, 1.2))
# Growth above this is a burst that the running median did not remove.
_MOST_GROWTH = 1.12
# Multiples of these (golden ratio, root of 2, modulo 1) fill 0 to 1 evenly.
_STEPS = (0.6180339887498949, 0.4142135623730950)


class ShapeTables(NamedTuple):
    """Quantiles over runs (sizes in bytes), and over bursts. A `..._follows` is the share of runs
    in which one value has the rank of the other: large runs take longer, for example.
    """

    level: Table
    top: Table
    duration_s: Table
    bursts_per_s: Table
    burst_share: Table
    # The same for the runs with the highest bursts.
    heavy_share: Table
    burst_s: Table
    burst_at: Table
    growth: Table
    level_follows_top: float
    duration_follows_level: float
    bursts_follow_top: float
    # The number of runs behind the tables.
    runs: int


class Burst(NamedTuple):
    at_s: int
    for_s: int
    mean_bytes: float


class Outline(NamedTuple):
    """What the tables need to know of one recorded run."""

    seconds: int
    level: float
    top: float
    bursts: tuple[Burst, ...]
    # The agent's own memory at each of GROWTH_AT_S, as a share of the level.
    growth: tuple[float, ...]


def outline_of(profile: Profile) -> Outline:
    seconds = max(int(profile.duration_s) + 1, 1)
    sizes, own = by_second(profile, seconds), by_second(split_bursts(profile)[0], seconds)
    level = float(median(own[int(seconds * _GROWN_SHARE) :]))
    above = [size - level for size in sizes]
    growth = tuple(min(own[at] / level, _MOST_GROWTH) for at in GROWTH_AT_S if at < seconds)
    return Outline(seconds, level, max(*above, 0.0), tuple(find_bursts(above)), growth)


def find_bursts(above: Sequence[float]) -> Iterator[Burst]:
    at = START_S
    while at < len(above):
        end = at
        while end < len(above) and above[end] > BURST_BYTES:
            end += 1
        if end > at:
            yield Burst(at, end - at, fmean(above[at:end]))
        at = max(end, at + 1)


def fit_tables(outlines: Sequence[Outline]) -> ShapeTables:
    levels = [run.level for run in outlines]
    tops = [run.top for run in outlines]
    durations = [float(run.seconds) for run in outlines]
    rates = [len(run.bursts) / run.seconds for run in outlines]
    bursts = [(run, burst) for run in outlines for burst in run.bursts]
    heavy = quantile(sorted(tops), HEAVY)
    return ShapeTables(
        level=table_of(levels),
        top=with_tail(table_of(tops)),
        duration_s=table_of(durations),
        bursts_per_s=table_of(rates),
        burst_share=shares_of([one for one in bursts if one[0].top < heavy]),
        heavy_share=shares_of([one for one in bursts if one[0].top >= heavy]),
        burst_s=table_of([float(burst.for_s) for _run, burst in bursts] or [1.0]),
        burst_at=table_of([burst.at_s / run.seconds for run, burst in bursts] or [0.5]),
        growth=fit_growth(outlines),
        level_follows_top=rank_correlation(levels, tops),
        duration_follows_level=rank_correlation(levels, durations),
        bursts_follow_top=rank_correlation(rates, tops),
        runs=len(outlines),
    )


def shares_of(bursts: Sequence[tuple[Outline, Burst]]) -> Table:
    """Mean heights of bursts, as shares of the highest of their run."""
    return table_of([burst.mean_bytes / run.top for run, burst in bursts] or [1.0])


def table_of(values: Sequence[float]) -> Table:
    ordered = sorted(values)
    return tuple((share, quantile(ordered, share)) for share in SHARES)


def with_tail(table: Table) -> Table:
    highest = table[-1][1]
    return (*table[:-1], *((share, highest * times) for share, times in _TAIL))


def fit_growth(outlines: Sequence[Outline]) -> Table:
    """The mean over the runs that lived so long."""
    seen = [[run.growth[n] for run in outlines if len(run.growth) > n]
            for n in range(len(GROWTH_AT_S))]  # fmt: skip
    rows = [
        (float(at), fmean(values))
        for at, values in zip(GROWTH_AT_S, seen, strict=True)
        if len(values) >= _LEAST_RUNS
    ]
    return tuple(rows) or ((0.0, 1.0),)


def rank_correlation(first: Sequence[float], second: Sequence[float]) -> float:
    """Spearman's; 0 at least, because it is used as a share."""
    ranks = [ranks_of(values) for values in (first, second)]
    middle = (len(first) - 1) / 2
    pairs = list(zip(*ranks, strict=True))
    spread = sum((rank - middle) ** 2 for rank in ranks[0])
    return max(sum((a - middle) * (b - middle) for a, b in pairs) / spread, 0.0) if spread else 0.0


def ranks_of(values: Sequence[float]) -> list[int]:
    order = sorted(range(len(values)), key=lambda at: values[at])
    ranks = [0] * len(values)
    for rank, at in enumerate(order):
        ranks[at] = rank
    return ranks


def history_tables(recent: Sequence[RunSummary], prior: ShapeTables) -> ShapeTables:
    """Level, burst and duration from runs of the class; how bursts are spread, from the prior."""
    durations = table_of([max(run.duration_s, 1.0) for run in recent])
    pace = min(middle_of(durations) / middle_of(prior.duration_s), 1.0)
    return prior._replace(
        level=table_of([float(run.mean_bytes) for run in recent]),
        top=with_tail(table_of([float(max(run.peak_bytes - run.mean_bytes, 0)) for run in recent])),
        duration_s=durations,
        # Agents that live a tenth as long also grow and burst in a tenth of the time.
        bursts_per_s=tuple((share, rate / pace) for share, rate in prior.bursts_per_s),
        burst_s=tuple((share, max(length_s * pace, 1.0)) for share, length_s in prior.burst_s),
        growth=tuple((at_s * pace, level) for at_s, level in prior.growth),
        runs=len(recent),
    )


def middle_of(table: Table) -> float:
    return interpolate(table, 0.5)


def moved(tables: ShapeTables, base_bytes: int, prior_base_bytes: int) -> ShapeTables:
    """For a larger or smaller agent with the same tools: another level, the same bursts. Below the
    smallest level the level shrinks in proportion instead.
    """
    distance = base_bytes - prior_base_bytes
    if tables.level[0][1] + distance > 0:
        return tables._replace(
            level=tuple((share, size + distance) for share, size in tables.level)
        )
    ratio = base_bytes / prior_base_bytes
    return tables._replace(level=tuple((share, size * ratio) for share, size in tables.level))


def draw_pool(tables: ShapeTables, number: int, rng: Random) -> list[list[int]]:
    """`number` runs that together have the quantiles of the tables: bytes for each second."""
    longest_s = int(tables.duration_s[-1][1]) + 2
    curve = [growth_at(tables.growth, at_s) for at_s in range(longest_s)]
    offsets = [rng.random() for _ in range(3)]
    return [
        draw_run(tables, ((at + offsets[0]) / number % 1, *places(at, offsets[1:])), curve, rng)
        for at in range(number)
    ]


def places(at: int, offsets: Sequence[float]) -> tuple[float, float]:
    """The quantiles of level and duration of run `at`."""
    level_at, duration_at = (
        (offset + at * step) % 1 for offset, step in zip(offsets, _STEPS, strict=True)
    )
    return level_at, duration_at


def growth_at(growth: Table, at_s: float) -> float:
    return growth[-1][1] if at_s >= growth[-1][0] else interpolate(growth, at_s)


def draw_run(
    tables: ShapeTables, drawn: tuple[float, float, float], curve: Sequence[float], rng: Random
) -> list[int]:
    top_at, level_at, duration_at = drawn
    if rng.random() < tables.level_follows_top:
        level_at = top_at
    if rng.random() < tables.duration_follows_level:
        duration_at = level_at
    rate_at = top_at if rng.random() < tables.bursts_follow_top else rng.random()
    level, top = interpolate(tables.level, level_at), interpolate(tables.top, top_at)
    seconds = max(int(interpolate(tables.duration_s, duration_at)), 1)
    sizes = [int(level * share) for share in curve[:seconds]]
    expected = interpolate(tables.bursts_per_s, rate_at) * seconds
    bursts = int(expected) + (rng.random() < expected % 1)
    shares = tables.heavy_share if top_at >= HEAVY else tables.burst_share
    # The highest point is reached, however few bursts there are, and left soon.
    for at in range(max(bursts, 1)):
        first = max(int(interpolate(tables.burst_at, rng.random()) * seconds), start_of(sizes))
        if bursts:
            for_s = max(round(interpolate(tables.burst_s, rng.random())), 1)
            raise_to(sizes, first, for_s, level + top * interpolate(shares, rng.random()))
        if not at:
            raise_to(sizes, first, TOP_S, level + top)
    return sizes


def start_of(sizes: Sequence[int]) -> int:
    """Tool calls come after the start of the agent, which is short if its life is."""
    return min(START_S, len(sizes) // 4)


def raise_to(sizes: list[int], first: int, for_s: int, height: float) -> None:
    for at_s in range(first, min(first + for_s, len(sizes))):
        sizes[at_s] = max(sizes[at_s], int(height))
