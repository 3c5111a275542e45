"""Leaks, memory that only looks like a leak, and the restarts."""

from dataclasses import replace

import pytest

from ramherd.core.memory import MB
from ramherd.core.model import RunEnd, Stop, Why
from ramherd.core.policies import RecyclePolicy
from ramherd.decide.governor.leaks import (
    KEEP_POINTS,
    LEAST_POINTS,
    LEAST_RISE_BYTES,
    IdleSamples,
    find_leak,
    is_steady,
    next_samples,
    noise,
    trend,
    valleys,
)
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
    """Each pair is reduced to its lower point."""
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
    """Its session needs that much: the mark doubles, and the run continues."""
    watches = Watches(recycled_s={"j1": 100.0})
    watches, stops = recycle([Own("r2", "j1", 600 * MB)], watches, 300.0, POLICY)

    assert stops == []
    assert watches.marks == {"j1": 1000 * MB}
    later = replace(watches, marks={})
    assert len(recycle([Own("r2", "j1", 600 * MB)], later, 900.0, POLICY)[1]) == 1


def test_samples_within_one_interval_are_their_lowest() -> None:
    """At the time of the first one."""
    watch = IdleSamples(((5.0, 50), (10.0, 100)), 2.0)

    assert next_samples(watch, 11.9, 90) == IdleSamples(((5.0, 50), (10.0, 90)), 2.0)
    assert next_samples(watch, 11.9, 110) == watch
    assert next_samples(watch, 12.0, 110) == IdleSamples((*watch.points, (12.0, 110)), 2.0)


def test_a_full_watch_becomes_half_as_dense() -> None:
    """Each pair is reduced to its lower value, at the time of its first point."""
    points = tuple((float(n), 100 - n % 2) for n in range(KEEP_POINTS - 1))
    full = next_samples(IdleSamples(points, 1.0), float(KEEP_POINTS - 1), 7)

    assert len(full.points) == KEEP_POINTS
    assert full.every_s == 1.0
    thin = next_samples(full, float(KEEP_POINTS), 3)
    assert len(thin.points) == KEEP_POINTS // 2
    assert thin.every_s == 2.0
    assert thin.points[:2] == ((0.0, 99), (2.0, 99))
    assert thin.points[-1] == (KEEP_POINTS - 2.0, 7)


def test_valleys_are_the_lowest_of_twelve_windows() -> None:
    """The last point belongs to the last window; of equal points the first is kept."""
    points = [(float(t), 100 + t % 3) for t in range(37)]

    assert valleys(points) == [(float(t), 100) for t in range(0, 36, 3)]
    assert valleys([(5.0, 3), (5.0, 2), (5.0, 9)]) == [(5.0, 2)]
    assert valleys([(0.0, 5), (12.0, 4), (11.5, 1)])[-1] == (11.5, 1)


def test_a_trend_is_the_middle_slope_and_the_share_that_rises() -> None:
    """Pairs of the same time do not count."""
    assert trend([(0.0, 0), (1.0, 2), (2.0, 4)]) == (2.0, 1.0)
    assert trend([(0.0, 0), (1.0, 5), (2.0, 0)]) == (0.0, 1 / 3)
    assert trend([(0.0, 9), (0.0, 0), (2.0, 4)]) == (2.0, 0.5)
    assert trend([(0.0, 4), (1.0, 4)]) == (0.0, 0.0)


def test_a_trend_has_to_last() -> None:
    """In the last third its slope is at least two fifths of the whole."""

    def bent(slope: int) -> list[tuple[float, int]]:
        early = [(float(t), 10 * t) for t in range(8)]
        return early + [(8.0 + t, 80 + slope * t) for t in range(4)]

    assert is_steady(bent(4), 10.0)
    assert not is_steady(bent(3), 10.0)
    # At least three points are needed.
    assert is_steady([(0.0, 0), (1.0, 0), (2.0, 9), (3.0, 10)], 10.0)
    assert not is_steady([(0.0, 0), (1.0, 9), (2.0, 9), (3.0, 10)], 10.0)


def test_noise_is_the_middle_distance_from_the_line() -> None:
    """Half of the valleys are nearer."""
    assert noise([(0.0, 0), (1.0, 10), (2.0, 20)], 10.0) == 0.0
    assert noise([(0.0, 0), (1.0, 13), (2.0, 20), (3.0, 36), (4.0, 41)], 10.0) == 1.0


def line(number: int, slope: float) -> list[tuple[float, int]]:
    return [(float(t), int(slope * t)) for t in range(number)]


def test_a_few_points_are_no_leak() -> None:
    """Three for each window are needed."""
    assert find_leak(line(LEAST_POINTS - 1, 10.0 * MB)) is None
    found = find_leak(line(LEAST_POINTS, 10.0 * MB))
    assert found is not None
    assert (found.slope_bytes_per_s, found.certainty) == (10.0 * MB, 1.0)
    assert found.used_bytes == 10 * MB * (LEAST_POINTS - 1)


def test_a_small_rise_is_no_leak() -> None:
    """It is less than the variation of idle agents."""
    points = line(121, (LEAST_RISE_BYTES + MB) / 110)
    low = valleys(points)

    assert low[-1][0] - low[0][0] == 110.0
    assert find_leak(points) is not None
    assert find_leak(line(121, (LEAST_RISE_BYTES - MB) / 110)) is None


def test_points_that_lie_together_are_no_leak() -> None:
    """At least half of the windows need a point."""
    together = [(t / 100, 0) for t in range(40)]

    assert find_leak([*together, (100.0, 900 * MB), (101.0, 910 * MB)]) is None
    assert find_leak([(5.0, 0)] * 40) is None


def test_falling_memory_is_no_leak() -> None:
    """Nor is constant memory."""
    assert find_leak([(float(t), (900 - t) * MB) for t in range(200)]) is None
    assert find_leak([(float(t), 900 * MB) for t in range(200)]) is None


def in_windows(*windows: int) -> list[tuple[float, int]]:
    """A leak seen in these of twelve windows of ten seconds each, eight points in each."""
    times = [10 * window + second for window in windows for second in range(8)]
    return [(float(t), 10 * MB * t) for t in (*times, 120)]


def test_half_of_the_windows_are_enough() -> None:
    """Five of twelve are not."""
    assert find_leak(in_windows(0, 2, 4, 6, 8, 11)) is not None
    assert find_leak(in_windows(0, 2, 5, 8, 11)) is None


def test_memory_that_falls_as_often_as_this_is_no_leak() -> None:
    """It rises overall, and in its last third; 10 of 66 pairs of valleys fall."""
    up_and_down = [
        (float(3 * window + n), (300 + 100 * window + (150 if window % 2 else -150)) * MB)
        for window in range(12)
        for n in range(3)
    ]

    assert find_leak(up_and_down) is None


def test_a_slow_leak_is_one_too() -> None:
    """A byte a second, for a year."""
    assert find_leak([(1e6 * t, 1_000_000 * t) for t in range(40)]) is not None


def test_the_least_rise_is_enough() -> None:
    """To the byte: the valleys of this line are 128 s apart."""
    slope = LEAST_RISE_BYTES // 128

    assert find_leak([(float(t), slope * t) for t in range(139) if t != 127]) is not None


def test_when_the_samples_begin_does_not_matter() -> None:
    """Only the distances between them matter."""
    late = [(1e5 + t, size) for t, size in line(121, (LEAST_RISE_BYTES - MB) / 110)]

    assert find_leak(late) is None


def test_windows_are_equal_parts_from_the_first_moment_to_the_last() -> None:
    """Two seconds each; the last point belongs to the last window."""
    points = [(100.0 + t, 50 + t) for t in range(12)]

    assert valleys([*points, (124.0, 99)]) == [*points[::2], (124.0, 99)]


def test_a_trend_may_be_less_than_a_byte_a_second() -> None:
    """All pairs rise."""
    assert trend([(0.0, 0), (2.0, 1), (4.0, 2)]) == (0.5, 1.0)


def test_the_last_third_is_looked_at() -> None:
    """Four valleys of twelve; three of four, which is the minimum."""
    flat_end = [(8.0, 0), (9.0, 15), (10.0, 15), (11.0, 16)]
    before = [(float(t), 0) for t in range(8)]

    assert is_steady([*before, *flat_end], 10.0)
    assert not is_steady(flat_end, 10.0)


def test_half_of_the_distances_are_at_most_the_noise() -> None:
    """From the median."""
    sizes = (0, 1, 5, 30, 100)

    assert noise([(float(t), size) for t, size in enumerate(sizes)], 0.0) == 5
