"""Each question of making room by itself: the numbers it compares, at their edges."""

from collections.abc import Sequence
from dataclasses import replace

from ramherd.core.memory import MB, History, Penned, Scene, Settle, Stop
from ramherd.core.model import JobState, Reason, RunEnd, Why
from ramherd.core.policies import GrantPolicy
from ramherd.decide.governor.growth import waiters
from ramherd.decide.governor.preempt import (
    fail_too_big,
    next_urgent,
    preempt,
    step_aside,
    stop_for_debt,
    stop_for_waiter,
    stop_held,
    waited_s,
)
from ramherd.decide.governor.room import Room
from unit.decide.governor.scenes import held, pen, scene

POLICY = GrantPolicy()
GROWTH = Reason(Why.GROWTH, used_bytes=0, free_bytes=0)


def urgent(at: Scene, **urgent_s: float) -> dict[str, float]:
    return dict(next_urgent(waiters(at), at, History(urgent_s=urgent_s), POLICY))


def decide(at: Scene, raised: Sequence[Penned] = (), **urgent_s: float) -> list[Stop]:
    room = Room(at, POLICY)
    for run in raised:
        room.grow(run, 0, GROWTH)
    return preempt(waiters(at), at, History(urgent_s=urgent_s), room, POLICY)


def patience_over(waiter: str, waited_s: float) -> Reason:
    return Reason(Why.PATIENCE_OVER, waiter=waiter, waited_s=waited_s)


def held_too_long(held_s: float) -> Reason:
    return Reason(Why.HELD_TOO_LONG, held_s=held_s, limit_s=POLICY.max_hold_s)


def test_a_run_waits_since_it_was_held() -> None:
    """One that is not held has not waited."""
    assert waited_s(held("r1", 200, 97.5), 100.0) == 2.5
    assert waited_s(pen("r1", 200, 200), 100.0) == 0.0


def test_only_the_first_waiter_becomes_urgent() -> None:
    """When all of them together have waited for the patience."""
    at = scene(600, held("r1", 200, 99.0), held("r2", 200, 98.0))

    assert urgent(at) == {"r1": 100.0}
    assert urgent(replace(at, at_s=99.999)) == {}


def test_an_urgent_waiter_stays_so_while_it_is_held() -> None:
    """Also if it is not the first; its mark is of this look."""
    at = scene(600, held("r1", 200, 99.9), held("r2", 200, 99.9))

    assert urgent(at, r2=99.0) == {"r2": 100.0}


def test_an_urgent_mark_is_forgotten_after_two_seconds() -> None:
    """It has finished growing."""
    at = scene(600, pen("r1", 200, 232))

    assert urgent(at, r1=98.1) == {"r1": 98.1}
    assert urgent(at, r1=98.0) == {}
    # Nobody waits and nobody has: there is nothing to do.
    history = History()
    assert next_urgent([], at, history, POLICY) is history.urgent_s


def test_a_mark_is_kept_while_nobody_waits_and_others_are_new() -> None:
    """Each is looked at by itself."""
    at = scene(600, held("r1", 200, 90.0), pen("r2", 200, 232))

    assert urgent(at, r2=99.0) == {"r1": 100.0, "r2": 99.0}


def test_nobody_is_stopped_while_nobody_waits_and_nothing_is_owed() -> None:
    """However long others were urgent."""
    assert decide(scene(600, pen("r1", 200, 200), pen("r2", 200, 200)), r1=99.0) == []


def test_the_youngest_is_stopped_for_an_urgent_waiter() -> None:
    """With the waiter's name and what it has waited."""
    runs = (held("r1", 200, 99.8766), pen("r2", 200, 200), pen("r3", 200, 200))
    at = scene(600, *runs)

    assert decide(at, r1=99.0) == [Stop("r3", RunEnd.PREEMPTED, patience_over("job-r1", 0.123))]
    named = replace(runs[0], name="lint")
    assert decide(replace(at, runs=[named, *runs[1:]]), r1=99.0) == [
        Stop("r3", RunEnd.PREEMPTED, patience_over("lint", 0.123))
    ]


def test_nobody_is_stopped_for_a_waiter_that_got_something_or_is_not_urgent() -> None:
    """Nor for one that is urgent behind it."""
    runs = (held("r1", 200, 99.8), held("r2", 200, 99.8), pen("r3", 200, 200))
    at = scene(600, *runs)

    assert decide(at) == []
    assert decide(at, r2=99.0) == []
    assert decide(at, raised=runs[:1], r1=99.0) == []
    assert decide(at, raised=runs[1:2], r1=99.0) != []
    room, history = Room(at, POLICY), History(urgent_s={"r1": 99.0})
    assert stop_for_waiter([], runs, at, history, room) == []


def test_one_leaves_at_a_time() -> None:
    """What it frees may be enough; two that run are two, however many leave."""
    runs = (held("r1", 200, 60), pen("r2", 200, 200), pen("r3", 200, 200, leaving=True))

    assert decide(scene(600, *runs), r1=99.0) == []
    assert decide(scene(600, *runs[:2]), r1=99.0) == [
        Stop("r2", RunEnd.PREEMPTED, patience_over("job-r1", 40.0))
    ]


def test_a_run_held_for_its_time_is_stopped_unless_it_is_the_oldest() -> None:
    """One at a time, the older one first."""
    runs = (held("r1", 200, 10), held("r2", 200, 70.0), held("r3", 200, 69.0))
    at = scene(600, *runs)

    assert stop_held(runs, at, POLICY) == [Stop("r2", RunEnd.PREEMPTED, held_too_long(30.0))]
    late = replace(runs[1], held_since_s=70.001)
    assert stop_held((runs[0], late), at, POLICY) == []
    assert stop_held((runs[0], late, runs[2]), at, POLICY) == [
        Stop("r3", RunEnd.PREEMPTED, held_too_long(31.0))
    ]
    third = replace(runs[1], held_since_s=66.66666)
    assert stop_held((runs[0], third), at, POLICY)[0].reason == held_too_long(33.333)


def test_one_held_for_long_goes_when_nobody_goes_for_a_waiter() -> None:
    """The first waiter is served just now."""
    runs = (held("r1", 200, 99), held("r2", 200, 60), pen("r3", 200, 200))

    assert decide(scene(600, *runs), raised=runs[:1]) == [
        Stop("r2", RunEnd.PREEMPTED, held_too_long(40.0))
    ]


def debt(at: Scene) -> list[Stop]:
    live = [run for run in at.runs if not run.leaving]
    return stop_for_debt(live, at, Room(at, POLICY))


def owed(granted_mb: int, lease_mb: int) -> Reason:
    return Reason(Why.DEBT, granted_bytes=granted_mb * MB, lease_bytes=lease_mb * MB)


def test_the_youngest_go_until_the_debt_is_paid() -> None:
    """And no more than that; the oldest stays, whatever is owed."""
    runs = [pen(f"r{n}", 100, 100) for n in (1, 2, 3, 4)]

    assert debt(scene(300, *runs)) == [Stop("r4", RunEnd.PREEMPTED, owed(400, 300))]
    assert debt(scene(200, *runs)) == [
        Stop(name, RunEnd.PREEMPTED, owed(400, 200)) for name in ("r4", "r3")
    ]
    assert [stop.run for stop in debt(scene(0, *runs))] == ["r4", "r3", "r2"]


def test_what_those_hold_that_leave_is_paid_already() -> None:
    """To the byte."""
    runs = (pen("r1", 100, 100), pen("r2", 100, 100), pen("r3", 100, 100, leaving=True))

    assert debt(scene(200, *runs)) == []
    less = replace(scene(200, *runs), lease_bytes=200 * MB - 1)
    assert [stop.run for stop in debt(less)] == ["r2"]


def test_debt_comes_before_waiters() -> None:
    """Nobody waits: the youngest goes all the same, also while another leaves."""
    runs = (pen("r1", 200, 200), pen("r2", 200, 200))

    assert decide(scene(300, *runs)) == [Stop("r2", RunEnd.PREEMPTED, owed(400, 300))]
    leaving = pen("r3", 50, 50, leaving=True)
    assert [stop.run for stop in decide(scene(300, *runs, leaving))] == ["r2"]
    waiter = (held("r1", 200, 60), pen("r2", 200, 200))
    assert decide(scene(300, *waiter), r1=99.0)[0].reason == owed(400, 300)


def aside(at: Scene, raised: Sequence[Penned] = ()) -> list[Stop]:
    room = Room(at, POLICY)
    for run in raised:
        room.grow(run, 0, GROWTH)
    return step_aside(at.runs, at, room, POLICY)


def test_the_last_run_steps_aside_while_the_budget_is_small() -> None:
    """Held for its time, in less than there could be, and nothing for it in this round."""
    alone = held("r1", 500, 70.0)
    small = replace(scene(500, alone), largest_bytes=500 * MB + 1)

    assert aside(small) == [Stop("r1", RunEnd.PREEMPTED, held_too_long(30.0))]
    assert aside(small, raised=[alone]) == []
    assert aside(scene(500, alone)) == []
    assert aside(replace(small, largest_bytes=499 * MB)) == []
    assert aside(replace(small, runs=[replace(alone, held_since_s=70.001)])) == []
    assert aside(replace(small, runs=[])) == []
    third = replace(small, runs=[replace(alone, held_since_s=66.66666)])
    assert aside(third)[0].reason == held_too_long(33.333)
    assert decide(small) == aside(small)
    # With two of them it is the younger that goes.
    two = replace(small, runs=[alone, held("r2", 0, 70.0)])
    assert [stop.run for stop in decide(two)] == ["r2"]


def too_big(at: Scene, raised: Sequence[Penned] = ()) -> list[Settle]:
    room = Room(at, POLICY)
    for run in raised:
        room.grow(run, 0, GROWTH)
    return fail_too_big(at, room)


def test_alone_with_the_whole_budget_and_held_is_too_big() -> None:
    """With the numbers of both; in every other case it goes on."""
    alone = held("r1", 500, 99.0, used_bytes=501 * MB)
    whole = scene(500, alone)

    assert too_big(whole) == [
        Settle(
            "job-r1",
            JobState.FAILED,
            Reason(Why.OUTGREW_BUDGET, budget_bytes=500 * MB, used_bytes=501 * MB),
        )
    ]
    assert too_big(replace(whole, largest_bytes=499 * MB)) != []
    assert too_big(replace(whole, largest_bytes=500 * MB + 1)) == []
    assert too_big(whole, raised=[alone]) == []
    assert too_big(replace(whole, runs=[replace(alone, leaving=True)])) == []
    assert too_big(replace(whole, runs=[replace(alone, held_since_s=None)])) == []
    assert too_big(replace(whole, runs=[alone, pen("r2", 0, 0)])) == []
    assert too_big(replace(whole, runs=[])) == []
