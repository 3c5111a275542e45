"""Herds that are hard on a governor: agents with large bursts, and sets with a few giants."""

from collections.abc import Iterable, Sequence
from random import Random
from statistics import mean, median

from ramherd.core.memory import MB
from ramherd.core.policies import GrantPolicy
from ramherd.sim.course import Course
from ramherd.sim.simulate import make_jobs, run_grants
from ramherd.sim.world import level_ground

GIB = 1 << 30
BASE_BYTES = 110 * MB
# Tool calls of a build or a test suite: two in the life of an agent.
BURSTS = 2
BURST_S = 3
BURST_BYTES = (GIB, 3 * GIB // 2)
# The lifetime of an agent: that of real CLIs with a short task, and with a longer one.
SHORT_S, LONG_S = (5, 20), (30, 60)
# The share of giants among the jobs, and the share of the budget that they need.
GIANTS = 0.015
GIANT_SHARES = (0.85, 0.95)


def burst_herd(
    seed: int, number: int, bursting: int, life_s: tuple[int, int] = LONG_S
) -> list[Course]:
    """`number` agents, `bursting` of them with bursts, in any order."""
    draw = Random(seed)
    herd = [burst_course(draw, BURSTS if at < bursting else 0, life_s) for at in range(number)]
    draw.shuffle(herd)
    return herd


def burst_course(draw: Random, bursts: int, life_s: tuple[int, int]) -> Course:
    """The bursts begin anywhere after the first two seconds, but do not overlap."""
    calm_s = max(draw.randint(*life_s) - bursts * BURST_S, 3)
    starts = sorted(draw.randint(2, calm_s) for _ in range(bursts))
    sizes, calls = [BASE_BYTES] * calm_s, list(range(calm_s))
    for at in reversed(starts):
        sizes[at:at] = [BASE_BYTES + draw.randint(*BURST_BYTES)] * BURST_S
        calls[at:at] = [-1] * BURST_S
    for second, call in enumerate(calls):
        is_open = call < 0 and second > 0 and sizes[second] == sizes[second - 1]
        calls[second] = calls[second - 1] if is_open else second
    return Course("bursts" if bursts else "calm", tuple(sizes), tuple(calls))


def wall_s(herds: Sequence[Sequence[Course]], budget_bytes: int, cap: int | None = None) -> float:
    """The mean time of all herds, with a fixed number of runs at most or as many as fit."""
    policy = GrantPolicy(max_parallel=cap)
    played = [run_grants(make_jobs(herd), level_ground(budget_bytes), policy) for herd in herds]
    return mean(tally.makespan_s for tally in played)


def best_number(
    herds: Sequence[Sequence[Course]], budget_bytes: int, numbers: Iterable[int]
) -> tuple[float, int]:
    """The fixed number with which all herds together are fastest. (seconds, number)"""
    return min((wall_s(herds, budget_bytes, number), number) for number in numbers)


def heavy_herd(courses: Sequence[Course], budget_bytes: int, seed: int) -> list[Course]:
    """The same jobs in another order; every 67th is a giant."""
    draw = Random(seed)
    herd = list(courses)
    draw.shuffle(herd)
    for at in draw.sample(range(len(herd)), max(round(GIANTS * len(herd)), 1)):
        herd[at] = giant(herd[at], int(draw.uniform(*GIANT_SHARES) * budget_bytes))
    return herd


def giant(course: Course, peak_bytes: int) -> Course:
    """Stretches the memory above the median, so that the highest second reaches `peak_bytes`."""
    calm = int(median(course.bytes))
    stretch = (peak_bytes - calm) / max(course.peak_bytes - calm, 1)
    sizes = (size if size <= calm else calm + int((size - calm) * stretch) for size in course.bytes)
    return Course(f"giant {course.name}", tuple(sizes), course.calls)
