"""Runs drawn from tables have the quantiles of the tables, and tables those of the runs."""

from random import Random
from statistics import fmean, median

from ramherd.core.memory import MB
from ramherd.decide.governor.classes import RunSummary
from ramherd.plan.published_shape import PUBLISHED, PUBLISHED_BASE_BYTES
from ramherd.plan.run_shapes import (
    draw_pool,
    find_bursts,
    fit_tables,
    history_tables,
    middle_of,
    moved,
    outline_of,
    rank_correlation,
)
from ramherd.sim.profiles import Profile, synthetic


def test_a_pool_has_the_level_and_the_durations_of_its_tables() -> None:
    """A pool of 200 runs is enough for the middle and for the rare high bursts."""
    pool = draw_pool(PUBLISHED, 200, Random(1))

    assert abs(median(map(len, pool)) / middle_of(PUBLISHED.duration_s) - 1) < 0.1
    assert abs(median(median(run) for run in pool) / middle_of(PUBLISHED.level) - 1) < 0.05
    assert 8 <= sum(max(run) > 600 * MB for run in pool) <= 18


def test_the_mean_of_the_shipped_prior_is_that_of_the_governor() -> None:
    """Planner and governor expect the same of an agent: 215 MB."""
    pool = draw_pool(PUBLISHED, 200, Random(2))
    seconds = sum(map(len, pool))

    assert abs(sum(map(sum, pool)) / seconds / PUBLISHED_BASE_BYTES - 1) < 0.08


def test_the_same_seed_draws_the_same_runs() -> None:
    """The same question gets the same answer."""
    assert draw_pool(PUBLISHED, 20, Random(3)) == draw_pool(PUBLISHED, 20, Random(3))


def test_tables_fitted_to_runs_draw_runs_like_them() -> None:
    """On the simulator's synthetic runs."""
    profiles = synthetic(4, 105)
    tables = fit_tables([outline_of(profile) for profile in profiles])
    pool = draw_pool(tables, 200, Random(4))

    wanted = fmean(profile.mean_bytes for profile in profiles)
    assert abs(fmean(fmean(run) for run in pool) / wanted - 1) < 0.05
    assert tables.runs == 105


def test_a_burst_is_memory_above_the_level() -> None:
    """From 25 MB on, and not during the start."""
    above = [90.0 * MB] * 10 + [0.0] * 5 + [30.0 * MB, 50.0 * MB] + [0.0] * 3

    assert [(burst.at_s, burst.for_s) for burst in find_bursts(above)] == [(15, 2)]


def test_a_run_of_one_sample_has_an_outline() -> None:
    """A trace file may have one."""
    assert outline_of(Profile("one", (0.0,), (MB,))).seconds == 1


def test_larger_agents_have_the_same_bursts_above_a_higher_level() -> None:
    """Tools are the same, whoever calls them."""
    larger = moved(PUBLISHED, PUBLISHED_BASE_BYTES + 300 * MB, PUBLISHED_BASE_BYTES)
    tiny = moved(PUBLISHED, 20 * MB, PUBLISHED_BASE_BYTES)

    assert middle_of(larger.level) == middle_of(PUBLISHED.level) + 300 * MB
    assert larger.top == PUBLISHED.top
    assert 0 < tiny.level[0][1] < middle_of(tiny.level) < 30 * MB


def test_history_replaces_level_burst_and_duration() -> None:
    """Short runs also grow and burst faster."""
    seen = [RunSummary(400 * MB, 10 * MB, 450 * MB, 30.0)] * 12
    tables = history_tables(seen, PUBLISHED)
    pool = draw_pool(tables, 50, Random(5))

    assert middle_of(tables.level) == 400 * MB
    assert {len(run) for run in pool} == {30}
    assert tables.growth[-1][0] < PUBLISHED.growth[-1][0] / 9


def test_a_correlation_is_a_share() -> None:
    """Never below zero, and zero where nothing varies."""
    assert rank_correlation([1, 2, 3], [10, 20, 30]) == 1
    assert rank_correlation([1, 2, 3], [30, 20, 10]) == 0
    assert rank_correlation([1], [1]) == 0
