"""The bar: the governor's results on traces of real agents, four copies in file order."""

import time
from random import Random

import pytest

from ramherd.core.memory import Mode
from ramherd.sim.bench import best_fixed
from ramherd.sim.course import Course, make_course
from ramherd.sim.profiles import synthetic
from ramherd.sim.simulate import make_jobs, run_grants, simulate
from ramherd.sim.world import level_ground
from sim.traces import FOUND, courses

GB = 10**9
FOUR, TWELVE = 4 * GB, 128 * GB // 10


@pytest.mark.parametrize(
    ("budget", "over_plain", "over_best"), [(FOUR, 1.65, 1.5), (TWELVE, 1.5, 1.0)]
)
def test_grants_come_within_4_percent_of_the_oracle(
    budget: int, over_plain: float, over_best: float
) -> None:
    """No kill, no loss, little repeated work, and much faster than every fixed number."""
    herd = courses() * 4
    ours = simulate(herd, budget)
    plain = simulate(herd, budget, f"fixed:{budget // (500 * 10**6)}", oracle_s=ours.oracle_s)
    _, best_s = best_fixed(herd, budget)

    # The bar is for the published traces; the built-in ones, all alike, are slightly harder.
    assert ours.oracle_share >= (0.96 if FOUND.is_file() else 0.95)
    assert (ours.tally.oom_kills, ours.tally.failed, ours.lost) == (0, 0, 0)
    assert ours.redone_share <= 0.03
    assert plain.tally.makespan_s >= over_plain * ours.tally.makespan_s
    assert best_s >= over_best * ours.tally.makespan_s


def test_agents_that_cannot_resume_lose_little() -> None:
    """They are admitted with more room, since a stop costs them all their work."""
    assert simulate(courses() * 4, FOUR, mode=Mode.STARTS_OVER).oracle_share >= 0.88


@pytest.mark.parametrize("seed", [5, 6])
def test_another_order_does_as_well(seed: int) -> None:
    """Nothing is tuned to the order of the file."""
    herd = list(courses()) * 4
    Random(seed).shuffle(herd)

    ours = simulate(herd, FOUR)

    assert ours.oracle_share >= 0.95
    assert ours.tally.oom_kills == ours.lost == 0


@pytest.mark.parametrize("seed", [5, 6])
def test_other_agents_do_as_well(seed: int) -> None:
    """Nothing is tuned to these agents."""
    herd = [make_course(profile) for profile in synthetic(seed, 200)]

    ours = simulate(herd, FOUR)

    assert ours.oracle_share >= 0.93
    assert ours.tally.oom_kills == ours.lost == 0


@pytest.mark.xdist_group("serial")
def test_an_hour_of_fifty_runs_takes_five_seconds() -> None:
    """Of processor time: the machine may be busy with something else."""
    sizes = [size for profile in synthetic(1, 600) for size in make_course(profile).bytes]
    herd = [
        Course(f"hour-{n}", tuple(sizes[n * 3600 : (n + 1) * 3600]), tuple(range(3600)))
        for n in range(50)
    ]
    started = time.process_time()
    tally = run_grants(make_jobs(herd), level_ground(13 * GB))

    assert tally.done == 50
    assert time.process_time() - started <= 5.0
