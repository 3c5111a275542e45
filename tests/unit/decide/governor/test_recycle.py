"""Planned restarts: the compared numbers at their edges."""

from ramherd.core.memory import MB
from ramherd.core.model import Reason, RunEnd, Stop, Why
from ramherd.core.policies import RecyclePolicy
from ramherd.decide.governor.leaks import IdleSamples, Leak
from ramherd.decide.governor.recycle import Own, Watches, find_reason, near_mark, recycle

POLICY = RecyclePolicy(recycle_at_bytes=500 * MB)
OVER = Reason(Why.OVER_MARK, own_bytes=500 * MB, mark_bytes=500 * MB)


def test_a_run_at_its_mark_is_stopped_with_both_numbers() -> None:
    """The time is remembered for its job."""
    watches, stops = recycle([Own("r1", "j1", 500 * MB)], Watches(), 10.0, POLICY)

    assert stops == [Stop("r1", RunEnd.RECYCLED, OVER)]
    assert watches.recycled_s == {"j1": 10.0}
    assert watches.marks == {}
    assert recycle([Own("r1", "j1", 500 * MB - 1)], Watches(), 10.0, POLICY)[1] == []


def test_each_run_is_looked_at_by_itself() -> None:
    """A run with an open tool call, or within a turn, does not hide the next."""
    seen = [
        Own("r1", "j1", None),
        Own("r2", "j2", 900 * MB, turn_over=False),
        Own("r3", "j3", 500 * MB),
        Own("r4", "j4", 500 * MB),
    ]
    before = Watches(recycled_s={"j0": 1.0}, marks={"j0": 7})

    watches, stops = recycle(seen, before, 10.0, POLICY)

    assert [stop.run for stop in stops] == ["r3", "r4"]
    assert watches.recycled_s == {"j0": 1.0, "j3": 10.0, "j4": 10.0}
    assert watches.marks == {"j0": 7}
    assert set(watches.watch) == {"r1", "r2", "r3", "r4"}


def test_one_that_is_back_within_its_time_gets_twice_the_mark() -> None:
    """At the end of that time it is recycled like any other."""
    own = Own("r2", "j1", 500 * MB)
    within = POLICY.back_within_s

    watches, stops = recycle([own], Watches({}, {"x": 1}, {"j1": 0.0}), within - 0.1, POLICY)
    assert (watches.marks, stops) == ({"x": 1, "j1": 1000 * MB}, [])
    assert recycle([own], Watches(recycled_s={"j1": 0.0}), within, POLICY)[1] != []
    late = Watches(recycled_s={"j1": within})
    assert recycle([own], late, 2 * within - 0.1, POLICY)[1] == []
    # The restart of another job does not count.
    assert recycle([own], Watches(recycled_s={"j9": 0.0}), 1.0, POLICY)[1] != []


def test_a_doubled_mark_doubles_again() -> None:
    """It is compared with the mark of its job."""
    watches = Watches(marks={"j1": 1000 * MB}, recycled_s={"j1": 0.0})

    assert recycle([Own("r", "j1", 999 * MB)], watches, 1.0, POLICY) == (
        Watches({"r": IdleSamples(((1.0, 999 * MB),))}, watches.marks, watches.recycled_s),
        [],
    )
    after, _ = recycle([Own("r", "j1", 1000 * MB)], watches, 1.0, POLICY)
    assert after.marks == {"j1": 2000 * MB}


def test_samples_are_of_idle_moments_of_living_runs() -> None:
    """An open tool call adds no sample; a run that is gone is forgotten."""
    before = Watches({"r1": IdleSamples(((1.0, 5),)), "gone": IdleSamples(((1.0, 5),))})

    watches, _ = recycle([Own("r1", "j1", None)], before, 10.0, POLICY)
    assert watches.watch == {"r1": IdleSamples(((1.0, 5),))}
    watches, _ = recycle([Own("r1", "j1", 9)], before, 10.0, POLICY)
    assert watches.watch == {"r1": IdleSamples(((1.0, 5), (10.0, 9)))}


LEAKING = IdleSamples(tuple((float(t), (100 + t) * MB) for t in range(200)))


def test_a_trend_is_looked_for_from_half_of_the_mark_on() -> None:
    """The trend takes a while to calculate."""
    assert find_reason(300 * MB, 310 * MB, LEAKING, POLICY) is not None
    assert find_reason(155 * MB, 310 * MB, LEAKING, POLICY) is not None
    assert find_reason(155 * MB, 310 * MB + 1, LEAKING, POLICY) is not None
    assert find_reason(155 * MB - 1, 310 * MB, LEAKING, POLICY) is None
    assert find_reason(310 * MB, 310 * MB, IdleSamples(), POLICY) == Reason(
        Why.OVER_MARK, own_bytes=310 * MB, mark_bytes=310 * MB
    )


def test_a_leak_counts_when_its_mark_is_near() -> None:
    """Within the horizon, with pace, time left and certainty."""
    leak = Leak(slope_bytes_per_s=3.0, certainty=0.98765, used_bytes=100)
    mark = 100 + int(3 * POLICY.horizon_s)

    assert near_mark(leak, mark, POLICY) == Reason(
        Why.LEAK,
        slope_bytes=180,
        left_s=POLICY.horizon_s,
        certainty=0.988,
        mark_bytes=mark,
    )
    assert near_mark(leak, mark + 1, POLICY) is None
    near = near_mark(leak, 110, POLICY)
    assert near is not None
    assert near.numbers["left_s"] == 3.3
    assert leak.left_s(99) == 0.0
