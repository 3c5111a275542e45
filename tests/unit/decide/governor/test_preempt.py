"""Each rule of preemption by itself, with the compared numbers at their edges."""

from collections.abc import Sequence
from dataclasses import replace

from ramherd.core.memory import MB, Bursts, Estimate, History, Penned, Scene, Settle, Stop
from ramherd.core.model import JobState, Reason, RunEnd, Why
from ramherd.core.policies import GrantPolicy
from ramherd.decide.governor.growth import waiters
from ramherd.decide.governor.preempt import (
    choose_victim,
    fail_too_big,
    find_kept,
    is_burst_under_way,
    next_bursts,
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
    """A run that is not held has not waited."""
    assert waited_s(held("r1", 200, 97.5), 100.0) == 2.5
    assert waited_s(pen("r1", 200, 200), 100.0) == 0.0


def test_only_the_first_waiter_becomes_urgent() -> None:
    """When all runs together have waited for the patience."""
    at = scene(600, held("r1", 200, 97.0), held("r2", 200, 98.0))

    assert urgent(at) == {"r1": 100.0}
    assert urgent(replace(at, at_s=99.999)) == {}


def test_an_urgent_waiter_stays_so_while_it_is_held() -> None:
    """Even if it is not the first; its mark has the time of this check."""
    at = scene(600, held("r1", 200, 99.9), held("r2", 200, 99.9))

    assert urgent(at, r2=99.0) == {"r2": 100.0}


def test_an_urgent_mark_is_forgotten_after_two_seconds() -> None:
    """It has finished growing."""
    at = scene(600, pen("r1", 200, 232))

    assert urgent(at, r1=98.1) == {"r1": 98.1}
    assert urgent(at, r1=98.0) == {}
    # No run waits or has waited: there is nothing to do.
    history = History()
    assert next_urgent([], at, history, POLICY) is history.urgent_s


def test_a_mark_is_kept_while_nobody_waits_and_others_are_new() -> None:
    """Each mark is checked by itself."""
    at = scene(600, held("r1", 200, 90.0), pen("r2", 200, 232))

    assert urgent(at, r2=99.0) == {"r1": 100.0, "r2": 99.0}


def test_nobody_is_stopped_while_nobody_waits_and_nothing_is_owed() -> None:
    """However long others were urgent."""
    assert decide(scene(600, pen("r1", 200, 200), pen("r2", 200, 200)), r1=99.0) == []


def test_the_youngest_is_stopped_for_an_urgent_waiter() -> None:
    """With the name of the waiting run and the time it has waited."""
    runs = (held("r1", 200, 99.8766), pen("r2", 200, 200), pen("r3", 200, 200))
    at = scene(600, *runs)

    assert decide(at, r1=99.0) == [Stop("r3", RunEnd.PREEMPTED, patience_over("job-r1", 0.123))]
    named = replace(runs[0], name="lint")
    assert decide(replace(at, runs=[named, *runs[1:]]), r1=99.0) == [
        Stop("r3", RunEnd.PREEMPTED, patience_over("lint", 0.123))
    ]


def test_a_waiter_that_is_the_youngest_is_stopped_itself() -> None:
    """It does not make room for itself: its reason is that older runs go first."""
    at = scene(600, pen("r1", 200, 200), held("r2", 200, 90.0, used_bytes=201 * MB))
    stop = Stop("r2", RunEnd.PREEMPTED, Reason(Why.YOUNGEST_WAITS, used_bytes=201 * MB))

    assert decide(at, r2=99.0) == [stop]
    bursts = next_bursts([stop], waiters(at), at, History(), POLICY)
    assert bursts == {"job-r2": Bursts(1, 100.0)}


def test_nobody_is_stopped_while_a_run_grows_or_the_oldest_is_not_urgent() -> None:
    """Nor for a run that is urgent behind it."""
    runs = (held("r1", 200, 99.8), held("r2", 200, 99.8), pen("r3", 200, 200))
    at = scene(600, *runs)

    assert decide(at) == []
    assert decide(at, r2=99.0) == []
    assert decide(at, raised=runs[:1], r1=99.0) == []
    assert decide(at, raised=runs[1:2], r1=99.0) == []
    assert decide(at, r1=99.0) != []
    room, history = Room(at, POLICY), History(urgent_s={"r1": 99.0})
    assert stop_for_waiter([], runs, at, history, room) == []


def test_one_leaves_at_a_time() -> None:
    """Its memory may be enough; two live runs count as two, however many leave."""
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
    """The first waiting run has just been served."""
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
    """And no more than that; the oldest stays, however large the debt."""
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
    """No run waits: the youngest is stopped anyway, even while another leaves."""
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
    """Held for its time, with less than the largest lease, and without growth in this round."""
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
    # Of two runs, the younger one is stopped.
    two = replace(small, runs=[alone, held("r2", 0, 70.0)])
    assert [stop.run for stop in decide(two)] == ["r2"]


def too_big(at: Scene, raised: Sequence[Penned] = ()) -> list[Settle]:
    room = Room(at, POLICY)
    for run in raised:
        room.grow(run, 0, GROWTH)
    return fail_too_big(at, room)


def test_alone_with_the_whole_budget_and_held_is_too_big() -> None:
    """The reason has both numbers; in every other case the run continues."""
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


def test_the_largest_younger_run_that_is_held_makes_room() -> None:
    """Half grown, it blocks the waiting run and makes no progress. Otherwise the youngest does."""
    first, small, large = held("r1", 200, 90.0), held("r2", 300, 99.0), held("r3", 400, 99.0)
    youngest = pen("r4", 900, 900)

    assert choose_victim(first, [first, small, large, youngest]) is large
    assert choose_victim(first, [first, pen("r2", 300, 300), youngest]) is youngest
    # A run that starts over would lose all its work, and an older run goes before the waiting one.
    over = replace(large, resumes=False)
    assert choose_victim(first, [first, small, over, youngest]) is small
    assert choose_victim(large, [first, small, large, youngest]) is youngest
    assert choose_victim(large, [first, small, large]) is large


def test_a_run_that_was_stopped_least_often_makes_room() -> None:
    """Runs with at most one stop more than the others are candidates."""
    first = held("r1", 200, 90.0)
    runs = [held("r2", 300, 99.0), held("r3", 400, 99.0, stops=1), held("r4", 500, 99.0, stops=2)]

    assert choose_victim(first, [first, *runs]) is runs[1]
    assert choose_victim(first, [first, *runs[1:]]) is runs[2]


def test_a_burst_under_way_is_waited_for() -> None:
    """It gives back more than the victim would, within 7 s after it has stopped growing."""
    victim, burst = held("r2", 200, 99.0), pen("r1", 700, 732)
    at = replace(scene(900, burst, victim), estimates={"": Estimate(100 * MB, 0)})

    def waits(run: Penned, grown_s: float = 94.0, *, victim: Penned = victim) -> bool:
        history = History(grown_s={run.run: grown_s})
        return is_burst_under_way(victim, [run, victim], at, history, POLICY)

    assert waits(burst)
    assert waits(burst, 93.1)
    assert not waits(burst, 93.0)
    assert not waits(held("r1", 700, 99.0))
    assert not waits(burst, victim=held("r2", 600, 99.0))
    assert waits(burst, victim=held("r2", 599, 99.0))
    assert not is_burst_under_way(victim, [burst, victim], at, History(), POLICY)


def test_nobody_is_stopped_while_a_burst_is_under_way() -> None:
    """The patience of the waiting run is over; the burst ends by itself."""
    at = scene(1200, held("r1", 200, 90.0), pen("r2", 700, 700), pen("r3", 300, 300))
    room = Room(at, POLICY)

    def stopped(**grown_s: float) -> list[str]:
        history = History(urgent_s={"r1": 100.0}, grown_s=grown_s)
        return [stop.run for stop in preempt(waiters(at), at, history, room, POLICY)]

    assert stopped(r2=95.0) == []
    assert stopped(r2=90.0) == ["r3"]
    assert stopped() == ["r3"]


def counted(at_s: float, stops: Sequence[Stop], **known: Bursts) -> dict[str, Bursts]:
    at = scene(900, held("r1", 200, 90.0), pen("r2", 700, 700), at_s=at_s)
    return dict(next_bursts(stops, waiters(at), at, History(bursts=known), POLICY))


def test_bursts_for_which_others_leave_are_counted_by_job() -> None:
    """Runs that leave within 10 s leave for the same burst; jobs that are gone are forgotten."""
    stop = Stop("r2", RunEnd.PREEMPTED, patience_over("job-r1", 5.0))
    job = "job-r1"

    assert counted(100.0, [stop]) == {job: Bursts(1, 100.0)}
    assert counted(100.0, [stop], **{job: Bursts(1, 90.1)}) == {job: Bursts(1, 100.0)}
    assert counted(100.0, [stop], **{job: Bursts(1, 90.0)}) == {job: Bursts(2, 100.0)}
    other = {"job-r2": Bursts(3, 10.0)}
    assert counted(100.0, [stop], **other) == {job: Bursts(1, 100.0), **other}
    assert counted(100.0, [stop], gone=Bursts(3, 10.0)) == {job: Bursts(1, 100.0)}
    too_long = Stop("r2", RunEnd.PREEMPTED, held_too_long(31.0))
    assert counted(100.0, [too_long], **other) == other
    assert counted(100.0, []) == {}


def test_a_job_that_bursts_repeatedly_keeps_its_room() -> None:
    """For 20 s after the second burst, 40 s after the third, from 0.6 of the lease on."""

    def kept(grant_mb: float, times: int, idle_s: float) -> set[str]:
        at = scene(1000, pen("r1", 100, grant_mb), pen("r2", 100, 100))
        history = History(
            bursts={"job-r1": Bursts(times, 0.0)}, idle_since_s={"r1": 100.0 - idle_s}
        )
        return find_kept(at, history, POLICY)

    assert kept(600, 2, 19.9) == {"r1"}
    assert kept(600, 2, 20.0) == set()
    assert kept(600, 3, 39.9) == {"r1"}
    assert kept(600, 1, 0.0) == set()
    assert kept(599, 2, 0.0) == set()
    at = scene(1000, pen("r1", 100, 600))
    assert find_kept(at, History(bursts={"job-r1": Bursts(2, 0.0)}), POLICY) == set()
    assert find_kept(at, History(idle_since_s={"r1": 99.0}), POLICY) == set()


def urgent_stops(at: Scene, **history: object) -> list[str]:
    remembered = replace(History(urgent_s={"r2": 100.0}), **history)  # type: ignore[arg-type]
    room = Room(at, POLICY)
    return [stop.run for stop in stop_for_waiter(waiters(at), at.runs, at, remembered, room)]


def test_a_second_run_is_stopped_only_when_the_waiter_had_time_to_grow() -> None:
    """A second after the last stop, for whichever job that was."""
    at = scene(600, pen("r1", 100, 100), held("r2", 200, 90.0), held("r3", 200, 90.0))

    assert urgent_stops(at, bursts={"job-r9": Bursts(1, 99.0)}) == ["r3"]
    assert urgent_stops(at, bursts={"job-r9": Bursts(1, 99.1)}) == []


def test_no_run_is_stopped_while_another_is_still_growing() -> None:
    """Between two quanta it is not held."""
    at = scene(600, pen("r1", 100, 132), held("r2", 200, 90.0), held("r3", 200, 90.0))

    assert urgent_stops(at, grown_s={"r1": 99.9}) == []
    assert urgent_stops(at, grown_s={"r1": 99.75}) == ["r3"]
    # A held one does not count, and neither does one that has grown in this very round.
    assert urgent_stops(at, grown_s={"r3": 99.9}) == ["r3"]
    assert urgent_stops(at, grown_s={"r1": 100.0}) == ["r3"]
