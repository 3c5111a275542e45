"""What leaks and what only looks like it, and what is done about it."""

from dataclasses import replace

import pytest

from ramherd.core.memory import MB
from ramherd.core.model import RunEnd, Stop, Why
from ramherd.core.policies import RecyclePolicy
from ramherd.decide.governor.leaks import KEEP_POINTS, IdleSamples, find_leak, next_samples
from ramherd.decide.governor.recycle import Own, Watches, recycle
from ramherd.sim.leak_set import score

POLICY = RecyclePolicy(recycle_at_bytes=500 * MB)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_leaks_are_told_from_what_looks_like_them(seed: int) -> None:
    """From 50 MB an hour to 70 MB a second, among sawtooth, ramps, caches and bursts."""
    found = score(seed, 500)

    assert found.precision >= 0.95, found.false
    assert found.recall >= 0.95, found.missed


def test_a_leak_says_how_long_it_takes_to_the_limit() -> None:
    """A megabyte a second, 150 MB away."""
    leak = find_leak([(float(t), (200 + t) * MB) for t in range(150)])

    assert leak is not None
    assert leak.slope_bytes_per_s == pytest.approx(MB, rel=0.02)
    assert leak.left_s(499 * MB) == pytest.approx(150, rel=0.05)


def test_a_day_of_samples_takes_no_more_room_than_a_minute() -> None:
    """Pairs become their lower one."""
    watch = IdleSamples()
    for second in range(20_000):
        watch = next_samples(watch, float(second), second * MB)

    assert len(watch.points) <= KEEP_POINTS
    assert watch.points[0] == (0.0, 0)


def test_an_agent_at_its_mark_is_recycled_between_turns() -> None:
    """Not while a tool call is open, and not within a turn."""
    busy = Own("r1", "j1", None)
    within = Own("r1", "j1", 600 * MB, turn_over=False)
    between = Own("r1", "j1", 600 * MB)

    assert recycle([busy], Watches(), 10.0, POLICY)[1] == []
    assert recycle([within], Watches(), 10.0, POLICY)[1] == []
    _, (stop,) = recycle([between], Watches(), 10.0, POLICY)
    assert stop.end is RunEnd.RECYCLED
    assert stop.reason.why is Why.OVER_MARK


def test_a_leak_is_ended_before_it_reaches_its_mark() -> None:
    """When less than a minute is left at its pace."""
    watches, second = Watches(), 0
    stops: list[Stop] = []
    while not stops:
        second += 1
        own = Own("r1", "j1", 200 * MB + 2 * second * MB)
        watches, stops = recycle([own], watches, float(second), POLICY)

    assert stops[0].reason.why is Why.LEAK
    assert 300 <= 200 + 2 * second < 500


def test_a_run_back_at_its_mark_soon_does_not_leak() -> None:
    """Its session needs that much: the mark doubles, and it is left alone."""
    watches = Watches(recycled_s={"j1": 100.0})
    watches, stops = recycle([Own("r2", "j1", 600 * MB)], watches, 300.0, POLICY)

    assert stops == []
    assert watches.marks == {"j1": 1000 * MB}
    later = replace(watches, marks={})
    assert len(recycle([Own("r2", "j1", 600 * MB)], later, 900.0, POLICY)[1]) == 1
