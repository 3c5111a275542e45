"""Each rule of admission by itself, with the compared numbers at their edges."""

import math
from dataclasses import replace

from ramherd.core.memory import (
    MB,
    Admit,
    Bursts,
    Candidate,
    Estimate,
    History,
    Level,
    Mode,
    Penned,
    Scene,
    Settle,
    Wait,
)
from ramherd.core.model import JobState, Reason, Why
from ramherd.core.policies import GrantPolicy
from ramherd.decide.governor.admit import (
    LOOK_BEHIND,
    Crowd,
    admit,
    ease_oldest,
    find_closed,
    find_obstacle,
    find_rush,
    find_too_big,
    first_grant,
    in_line,
    let_in,
    may_pass,
    needs_more,
    risen,
)
from ramherd.decide.governor.room import Room
from unit.decide.governor.scenes import admitted, pen, scene, waiting_job

POLICY = GrantPolicy()
BASE, SD = 215 * MB, 110 * MB
PRIOR = Estimate(BASE, SD)


def decide(
    at: Scene, *, history: History | None = None, waiting: int = 0, policy: GrantPolicy = POLICY
) -> list[Admit | Wait | Settle]:
    return list(admit(at, history or History(), Room(at, policy), policy, waiting))


def closed(
    at: Scene, *, waiting: int = 0, policy: GrantPolicy = POLICY, **history: object
) -> Reason | None:
    remembered = replace(History(), **history)  # type: ignore[arg-type]
    return find_closed(at, remembered, policy, waiting)


def obstacle(
    at: Scene, *, crowd: Scene | None = None, policy: GrantPolicy = POLICY
) -> Reason | None:
    """For the first job in the queue; the runs come from another scene if one is given."""
    room = Room(at, policy)
    return find_obstacle(at.queue[0], Crowd(crowd or at, policy), at, room, policy)


def test_a_crowd_holds_what_it_uses_and_what_young_ones_will() -> None:
    """A run is young for 20 s, and fresh for one; ending runs still count."""
    runs = (
        pen("r1", 300, 332),
        pen("r2", 10, 215, started_s=80.5),
        pen("r3", 10, 215, started_s=80.0),
        pen("r4", 400, 400, started_s=99.5),
        pen("r5", 20, 215, started_s=99.0),
    )
    crowd = Crowd(replace(scene(4000, *runs), ending=2, starting=3), POLICY)

    assert (crowd.number, crowd.starting) == (7, 3)
    assert crowd.expected_bytes == (300 + 215 + 10 + 400 + 215) * MB
    assert crowd.variance == 5 * SD**2
    assert crowd.fresh_bytes == BASE


def test_nobody_holds_nothing() -> None:
    """A grown run without memory is expected to stay without."""
    nobody = Crowd(scene(4000), POLICY)

    assert (nobody.number, nobody.starting, nobody.fresh_bytes) == (0, 0, 0)
    assert (nobody.expected_bytes, nobody.variance) == (0.0, 0.0)
    assert Crowd(scene(4000, pen("r1", 0, 32)), POLICY).expected_bytes == 0.0


def test_fresh_bytes_add_up() -> None:
    """All runs started within the last second count."""
    fresh = [pen(f"r{n}", 10, 215, started_s=99.5) for n in (1, 2)]

    assert Crowd(scene(4000, *fresh), POLICY).fresh_bytes == 2 * BASE


def test_one_more_adds_its_base_and_its_share_of_the_spread() -> None:
    """The spread of all runs together, times the number of deviations."""
    crowd = Crowd(scene(4000, pen("r1", 300, 332)), POLICY)
    known = Estimate(100 * MB, 50 * MB)

    spread = math.sqrt(SD**2 + (50 * MB) ** 2)
    assert crowd.with_one(100 * MB, known, 1.5) == 300 * MB + 100 * MB + 1.5 * spread


def test_who_was_let_in_belongs_to_the_crowd() -> None:
    """The next job is compared with it as well."""
    crowd = Crowd(replace(scene(4000, pen("r1", 300, 300, started_s=99.5)), starting=2), POLICY)
    crowd.add(120 * MB, Estimate(100 * MB, 50 * MB))

    assert (crowd.number, crowd.starting) == (2, 3)
    assert crowd.expected_bytes == 420 * MB
    assert crowd.variance == SD**2 + (50 * MB) ** 2
    assert crowd.fresh_bytes == BASE + 120 * MB


def test_an_empty_queue_asks_for_nothing() -> None:
    """Whatever keeps jobs from starting."""
    assert decide(scene(4000), waiting=1) == []
    assert in_line(scene(4000), History(), POLICY) == []


def test_one_wait_says_why_nobody_is_let_in() -> None:
    """The Wait is for the next job."""
    queue = [waiting_job(1), waiting_job(2)]

    assert decide(scene(4000, queue=queue), waiting=2) == [
        Wait("next-1", Reason(Why.SOMEBODY_WAITS, waiting=2))
    ]


def test_nobody_is_let_in_while_somebody_waits_or_leaves() -> None:
    """One run is enough: the memory of a leaving run belongs to the live runs."""
    leaving = scene(4000, pen("r1", 200, 232, leaving=True))

    assert closed(scene(4000), waiting=1) == Reason(Why.SOMEBODY_WAITS, waiting=1)
    assert closed(leaving) == Reason(Why.SOMEBODY_WAITS, waiting=1)
    assert closed(leaving, waiting=3) == Reason(Why.SOMEBODY_WAITS, waiting=3)
    assert closed(scene(4000, pen("r1", 200, 232))) is None


def test_max_parallel_counts_those_that_end() -> None:
    """Two may run: one is live, and one has ended but still has its pen."""
    two = GrantPolicy(max_parallel=2)
    at = scene(4000, pen("r1", 200, 232))

    assert closed(at, policy=two) is None
    assert closed(replace(at, ending=1), policy=two) == Reason(Why.MAX_PARALLEL, running=2, limit=2)
    assert closed(replace(at, ending=2), policy=two) == Reason(Why.MAX_PARALLEL, running=3, limit=2)


def test_the_ramp_counts_those_that_end() -> None:
    """Like `--max-parallel`."""
    at = replace(scene(4000, pen("r1", 200, 232)), ramp=2)

    assert closed(at) is None
    assert closed(replace(at, ending=1)) == Reason(Why.RAMP, running=2, limit=2)
    assert closed(replace(at, ending=2)) == Reason(Why.RAMP, running=3, limit=2)


def test_above_calm_one_at_a_time_goes_on() -> None:
    """Except under pressure that other programs cause."""
    level, idle = Level.TIGHT, scene(4000)
    shut = Reason(Why.LEVEL, level="tight")

    assert closed(idle, level=level) is None
    assert closed(scene(4000, pen("r1", 200, 232)), level=level) == shut
    assert closed(replace(idle, ending=1), level=level) == shut
    assert closed(replace(idle, memory_pressure=0.1), level=level) == shut
    assert closed(replace(idle, memory_pressure=0.1), level=Level.CALM) is None


def test_busy_cpus_keep_out_more_than_there_are_cores() -> None:
    """Agents mostly wait for their model."""
    at = replace(scene(4000, pen("r1", 200, 232)), cores=2, cpu_pressure=0.95149)
    shut = Reason(Why.CPU_PRESSURE, pressure=0.951)

    assert closed(at, cpu_gate=True) is None
    assert closed(replace(at, ending=1), cpu_gate=True) == shut
    assert closed(replace(at, ending=2), cpu_gate=True) == shut
    assert closed(replace(at, ending=1), cpu_gate=False) is None


def rushed(at: Scene, **crowd: int) -> Reason | None:
    made = Crowd(at, POLICY)
    for name, value in crowd.items():
        setattr(made, name, value)
    return find_rush(waiting_job(1), made, at, POLICY)


def test_starts_under_way_are_limited() -> None:
    """Sixteen at the same time."""
    assert rushed(scene(4000), starting=15) is None
    assert rushed(scene(4000), starting=16) == Reason(Why.STARTING, starting=16, limit=16)
    assert rushed(scene(4000), starting=17) == Reason(Why.STARTING, starting=17, limit=16)


def test_fresh_runs_are_limited_to_a_quarter_of_the_lease() -> None:
    """The first one starts however large it is."""
    at = scene(1000)

    assert rushed(at, fresh_bytes=0) is None
    assert rushed(scene(400), fresh_bytes=0) is None
    assert rushed(at, fresh_bytes=35 * MB) is None
    assert rushed(at, fresh_bytes=35 * MB + 1) == Reason(
        Why.STAGGER, fresh_bytes=35 * MB + 1, within_s=1.0
    )
    assert rushed(scene(400), fresh_bytes=1) == Reason(Why.STAGGER, fresh_bytes=1, within_s=1.0)


def test_young_runs_that_use_no_more_than_expected_end_the_spreading() -> None:
    """Together, to the byte, and while memory is not under pressure. Fresh runs show nothing."""
    at = scene(1000)

    def spread(*runs: Penned, pressure: float = 0.0) -> bool:
        crowded = replace(scene(1000, *runs), memory_pressure=pressure)
        return rushed(crowded, fresh_bytes=250 * MB) is not None

    below, above = pen("r1", 200, 215, started_s=90.0), pen("r2", 230, 250, started_s=99.0)
    assert rushed(at, fresh_bytes=250 * MB) is not None
    assert spread(pen("r1", 10, 215, started_s=99.1))
    assert not spread(below)
    assert not spread(below, above)
    assert spread(below, replace(above, used_bytes=above.used_bytes + 1))
    # Runs of 20 s and more are not young.
    assert spread(pen("r1", 10, 215, started_s=80.0))
    assert not spread(below, pen("r3", 900, 900, started_s=80.0))
    assert not spread(below, pressure=0.10)
    assert spread(below, pressure=0.11)


def test_a_job_stopped_with_the_whole_lease_needs_more() -> None:
    """Unless there is no more: then it starts, and fails if that is too little."""
    at = replace(scene(450), largest_bytes=900 * MB)

    assert needs_more(returning(1, 450), at)
    assert not needs_more(returning(1, 449), at)
    assert not needs_more(returning(1, 450), scene(450))
    assert not needs_more(returning(1, 450, first_s=None), at)
    assert needs_more(returning(1, 451, first_s=None), at)


def test_a_rush_stops_the_round() -> None:
    """The next job waits, and the jobs behind it are not checked."""
    queue = [waiting_job(n) for n in (1, 2, 3)]
    at = replace(scene(400_000, pen("r1", 200, 232), queue=queue), starting=15)

    actions = decide(at)

    assert admitted(actions) == ["next-1"]
    assert actions[1:] == [Wait("next-2", Reason(Why.STARTING, starting=16, limit=16))]


def test_too_big_is_more_than_the_largest_lease() -> None:
    """To the byte."""
    at = scene(500)

    assert find_too_big(waiting_job(1, need_bytes=500 * MB), at) is None
    assert find_too_big(waiting_job(1, need_bytes=500 * MB + 1), at) == Reason(
        Why.TOO_BIG, need_bytes=500 * MB + 1, budget_bytes=500 * MB
    )


def test_one_that_is_too_big_fails_and_the_next_is_asked() -> None:
    """It does not delay the next job."""
    queue = [waiting_job(1, need_bytes=5000 * MB), waiting_job(2)]

    first, second = decide(scene(4000, queue=queue))

    assert first == Settle(
        "next-1",
        JobState.FAILED,
        Reason(Why.TOO_BIG, need_bytes=5000 * MB, budget_bytes=4000 * MB),
    )
    assert second == Admit("next-2", BASE, Reason(Why.FITS, need_bytes=BASE, have_bytes=4000 * MB))


def test_the_first_grant_is_the_largest_of_need_base_and_quantum_up_to_the_limit() -> None:
    """The estimate of its class counts if the job does not need more."""
    small = replace(scene(4000), estimates={"": Estimate(MB, MB)})

    assert first_grant(waiting_job(1), scene(4000), POLICY) == BASE
    assert first_grant(waiting_job(1, need_bytes=300 * MB), scene(4000), POLICY) == 300 * MB
    assert first_grant(waiting_job(1), small, POLICY) == POLICY.quantum_bytes
    assert first_grant(waiting_job(1, limit_bytes=50 * MB), scene(4000), POLICY) == 50 * MB
    assert first_grant(waiting_job(1, limit_bytes=500 * MB), scene(4000), POLICY) == BASE


def test_the_first_of_all_gets_what_there_is() -> None:
    """Less than its base, but not less than its `memory`, up to the largest lease."""
    job, empty = waiting_job(1, need_bytes=600 * MB), scene(0)

    def alone(lease_mb: int, largest_mb: int, **runs: int) -> Reason | None:
        at = replace(scene(lease_mb, queue=[job]), largest_bytes=largest_mb * MB)
        return obstacle(at)

    assert alone(600, 600) is None
    assert alone(500, 500) is None
    assert alone(500, 900) == Reason(
        Why.NO_ROOM_LEASE, need_bytes=600 * MB, used_bytes=0, lease_bytes=500 * MB
    )
    small = scene(100, queue=[waiting_job(1)])
    assert obstacle(small) is None
    nothing = replace(empty, queue=[waiting_job(1)])
    assert obstacle(nothing) == Reason(
        Why.NO_ROOM_LEASE, need_bytes=BASE, used_bytes=0, lease_bytes=0
    )
    # The memory is granted to a run that does not count here.
    held = scene(100, pen("r1", 100, 99.999999), queue=[waiting_job(1)])
    assert obstacle(held, crowd=empty) is None


def test_one_more_has_to_fit_by_statistics() -> None:
    """Expected use and its spread within 95 % of the lease; starting over needs more room."""
    need = 300 * MB + BASE + 0.5 * math.sqrt(2) * SD
    over = 300 * MB + BASE + 1.5 * math.sqrt(2) * SD

    def with_lease(lease: float, mode: Mode) -> Reason | None:
        at = scene(0, pen("r1", 300, 308), queue=[waiting_job(2, mode=mode)])
        return obstacle(replace(at, lease_bytes=math.ceil(lease / 0.95)))

    assert with_lease(need, Mode.RESUMES) is None
    assert with_lease(over, Mode.STARTS_OVER) is None
    for lease, mode in ((need - 9, Mode.RESUMES), (over - 9, Mode.STARTS_OVER)):
        found = with_lease(lease, mode)
        assert found is not None
        assert found.numbers == {
            "need_bytes": BASE, "used_bytes": 300 * MB, "lease_bytes": math.ceil(lease / 0.95),
        }  # fmt: skip


def test_one_more_may_fill_its_share_of_the_lease_to_the_byte() -> None:
    """95 % of 1000 MB, without any spread."""
    at = scene(1000, pen("r1", 300, 308), queue=[waiting_job(2)])
    exact = replace(at, estimates={"": Estimate(650 * MB, 0)})
    more = replace(at, estimates={"": Estimate(650 * MB + 1, 0)})

    assert obstacle(exact) is None
    assert obstacle(more) is not None


def test_one_more_has_to_fit_into_what_is_not_granted() -> None:
    """The lease is granted, and no run has more than it needs, except for a few bytes."""
    queue = [waiting_job(2)]
    slim = POLICY.slim_bytes

    def granted(grant: int) -> Scene:
        run = replace(pen("r1", 100, 0), grant_bytes=grant, used_bytes=grant - slim)
        return replace(scene(0, run, queue=queue), lease_bytes=2000 * MB)

    fits = replace(granted(1000 * MB), lease_bytes=2000 * MB)
    assert obstacle(fits) is None
    # Idle by statistics, but promised to its run: it cannot be taken back.
    promised = replace(
        pen("r1", 100, 0), grant_bytes=2000 * MB - BASE + 1, promised_bytes=2000 * MB
    )
    full = replace(scene(0, promised, queue=queue), lease_bytes=2000 * MB)
    assert obstacle(full) == Reason(
        Why.NO_ROOM_LEASE, need_bytes=BASE, used_bytes=100 * MB, lease_bytes=2000 * MB
    )
    enough = replace(promised, grant_bytes=2000 * MB - BASE)
    assert obstacle(replace(full, runs=[enough])) is None


def test_no_more_start_in_one_round_than_may_run() -> None:
    """Jobs admitted a moment ago count."""
    queue = [waiting_job(n) for n in (1, 2, 3)]
    at = scene(40_000, queue=queue)

    actions = decide(at, policy=GrantPolicy(max_parallel=2))
    assert admitted(actions) == ["next-1", "next-2"]
    assert actions[2:] == [Wait("next-3", Reason(Why.MAX_PARALLEL, running=2, limit=2))]
    actions = decide(replace(at, ramp=1))
    assert admitted(actions) == ["next-1"]
    assert actions[1:] == [Wait("next-2", Reason(Why.RAMP, running=1, limit=1))]


def test_a_start_takes_its_grant_from_the_room() -> None:
    """From then on it is part of the crowd."""
    at = scene(1000, queue=[waiting_job(1, need_bytes=300 * MB)])
    room, crowd = Room(at, POLICY), Crowd(at, POLICY)

    start = let_in(at.queue[0], crowd, at, room, POLICY)

    assert start == Admit(
        "next-1", 300 * MB, Reason(Why.FITS, need_bytes=300 * MB, have_bytes=1000 * MB)
    )
    assert room.free_bytes == 700 * MB
    assert (crowd.number, crowd.expected_bytes, crowd.variance) == (1, 300 * MB, SD**2)


def test_the_first_of_all_starts_with_less_than_its_base() -> None:
    """Only 100 MB are free."""
    at = scene(100, queue=[waiting_job(1)])

    assert decide(at) == [
        Admit("next-1", 100 * MB, Reason(Why.FITS, need_bytes=BASE, have_bytes=100 * MB))
    ]


def test_equal_priorities_keep_the_order_of_the_queue() -> None:
    """The queue is sorted already; waiting changes the order only between different priorities."""
    queue = [waiting_job(2, queued_s=90.0), waiting_job(1, queued_s=90.0)]

    assert in_line(scene(4000, queue=queue), History(), POLICY) == queue


def test_a_priority_rises_by_one_in_ten_minutes() -> None:
    """In whole steps only."""
    job = waiting_job(1, priority=3, queued_s=100.0)

    assert risen(job, 699.9, POLICY) == 3
    assert risen(job, 700.0, POLICY) == 4
    assert risen(job, 1300.0, POLICY) == 5


def test_the_line_is_by_risen_priority_then_by_place() -> None:
    """A job of low priority that has waited long is equal to jobs of the next priority."""
    queue = [
        waiting_job(5, priority=1, queued_s=1000.0),
        waiting_job(7, priority=1, queued_s=1000.0),
        waiting_job(3, priority=0, queued_s=400.0),
        waiting_job(1, priority=0, queued_s=1000.0),
    ]

    line = in_line(scene(4000, at_s=1000.0, queue=queue), History(), POLICY)
    assert [one.seq for one in line] == [3, 5, 7, 1]


def test_a_job_is_in_line_from_its_time_on() -> None:
    """Until then it waits for its next try."""
    queue = [waiting_job(1, not_before_s=100.5), waiting_job(2, not_before_s=100.0)]

    assert [one.seq for one in in_line(scene(4000, queue=queue), History(), POLICY)] == [2]


def test_only_the_head_of_the_line_is_asked() -> None:
    """As many as may start at the same time, and some behind them."""
    queue = [waiting_job(n) for n in range(1, 100)]

    line = in_line(scene(4000, queue=queue), History(), POLICY)
    assert [one.seq for one in line] == list(range(1, LOOK_BEHIND + POLICY.max_starting + 1))


def test_only_a_large_job_is_passed_and_not_for_ever() -> None:
    """A need of four times its base or more, and within two minutes."""
    at = scene(4000)

    def passes(need: int, queued_s: float = 99.0) -> bool:
        return may_pass(waiting_job(1, need_bytes=need, queued_s=queued_s), at, POLICY)

    assert passes(4 * BASE)
    assert not passes(4 * BASE - 1)
    assert passes(4 * BASE, queued_s=-19.9)
    assert not passes(4 * BASE, queued_s=-20.0)
    # The job could not start even alone.
    assert passes(4000 * MB + 1, queued_s=-1000.0)
    assert not passes(4000 * MB, queued_s=-1000.0)


def test_behind_one_that_does_not_fit_the_small_ones_start() -> None:
    """Only the first job that does not fit gets a Wait."""
    queue = [
        waiting_job(3, need_bytes=3500 * MB, queued_s=990.0),
        waiting_job(4, need_bytes=3600 * MB, queued_s=990.0),
        waiting_job(5),
    ]
    runs = [pen("r1", 300, 332), pen("r2", 300, 332)]

    wait, start = decide(scene(4000, *runs, at_s=1000.0, queue=queue))

    assert isinstance(wait, Wait)
    assert (wait.job, wait.reason.why) == ("next-3", Why.NO_ROOM_LEASE)
    assert isinstance(start, Admit)
    assert start.job == "next-5"


def test_behind_a_large_one_the_next_that_does_not_fit_stops_the_line() -> None:
    """For each job that does not fit, it is checked whether others may pass it."""
    runs = [pen("r1", 800, 832)]
    queue = [waiting_job(2, need_bytes=900 * MB, queued_s=990.0), waiting_job(3), waiting_job(4)]
    small = replace(waiting_job(4), promised_bytes=MB, need_bytes=MB)

    waits = decide(scene(1000, *runs, at_s=1000.0, queue=[*queue[:2], small]))
    assert [(type(one), one.job) for one in waits] == [(Wait, "next-2")]
    both = decide(scene(1000, *runs, at_s=1000.0, queue=[queue[0], small]))
    assert admitted(both) == ["next-4"]


def returning(seq: int, need_mb: int = 3500, **more: object) -> Candidate:
    """A job that was stopped while it was held at its need."""
    return waiting_job(seq, **{"need_bytes": need_mb * MB, "first_s": float(seq), **more})


def test_a_job_returns_if_it_was_stopped_while_held() -> None:
    """Not a job that never ran, or needs no more than its `memory`."""
    assert returning(3).is_returning
    assert returning(3, mode=Mode.STARTS_OVER).is_returning
    assert not returning(3, first_s=None).is_returning
    assert not returning(3, promised_bytes=3500 * MB).is_returning


def test_nobody_drains_for_a_job_that_returns() -> None:
    """Others may always pass it, whether it resumes or starts over."""
    runs = [pen("r1", 300, 332), pen("r2", 300, 332)]

    def starts(first: Candidate) -> list[str]:
        return admitted(decide(scene(4000, *runs, at_s=1000.0, queue=[first, waiting_job(5)])))

    assert starts(returning(4)) == ["next-5"]
    assert starts(returning(4, mode=Mode.STARTS_OVER)) == ["next-5"]
    # A job that never ran is passed only for a while.
    assert starts(returning(4, first_s=None)) == []


def test_a_job_returns_when_its_need_fits() -> None:
    """Its need is its grant: with less it would be stopped again."""
    (start,) = decide(scene(4000, pen("r1", 300, 332), queue=[returning(4, 3000)], at_s=1000.0))

    assert isinstance(start, Admit)
    assert start.grant_bytes == 3000 * MB


def test_the_oldest_job_returns_with_its_base() -> None:
    """No run is older: the others make room when it grows. Leaving runs do not count."""
    queue = [returning(2), returning(3)]
    eased = [replace(queue[0], need_bytes=0), queue[1]]

    assert ease_oldest(queue, scene(4000, pen("r4", 300, 332))) == eased
    assert ease_oldest(queue[::-1], scene(4000, pen("r4", 300, 332))) == eased[::-1]
    assert ease_oldest(queue, scene(4000, pen("r1", 300, 332, leaving=True))) == eased
    assert ease_oldest(queue, scene(4000, pen("r1", 300, 332), pen("r4", 9, 9))) == queue
    assert ease_oldest([waiting_job(1)], scene(4000, pen("r4", 9, 9))) == [waiting_job(1)]
    # Without other runs its need is free.
    assert ease_oldest(queue, scene(4000)) == queue
    # With a lease that is too small for the job, it would be held again.
    whole = scene(3500, pen("r4", 9, 9))
    assert ease_oldest(queue, whole) == eased
    assert ease_oldest(queue, replace(whole, largest_bytes=4000 * MB)) == queue
    # A run of a higher priority counts as older, whenever it was started.
    assert ease_oldest(queue, scene(4000, pen("r4", 300, 332, priority=1))) == queue

    actions = decide(scene(4000, pen("r4", 3000, 3032), queue=queue, at_s=1000.0))
    assert admitted(actions) == ["next-2"]
    # The job keeps its `memory`, and if that does not fit, the others wait.
    asked = returning(2, promised_bytes=900 * MB)
    actions = decide(scene(4000, pen("r4", 3000, 3032), queue=[asked, queue[1]], at_s=1000.0))
    assert [one.job for one in actions] == ["next-2"]
    assert admitted(actions) == []


def test_a_job_that_never_ran_is_younger_than_all() -> None:
    """A higher priority counts before the time."""
    assert waiting_job(1).age > returning(9).age
    assert returning(9, priority=1).age < returning(1).age


def test_a_job_that_was_stopped_often_waits_for_the_end_of_an_older_one_that_bursts() -> None:
    """Five stops, and two bursts or more of an older run; it may start after that run's end."""
    worn, fresh = returning(5, 300, stops=5), returning(6, 300, stops=4)
    bursts = {"job-r2": Bursts(2, 50.0)}

    def line(*runs: Penned, **history: object) -> list[int]:
        remembered = replace(History(bursts=bursts), **history)  # type: ignore[arg-type]
        at = scene(4000, *runs, queue=[worn, fresh])
        return [one.seq for one in in_line(at, remembered, POLICY)]

    assert line(pen("r1", 9, 9), pen("r2", 9, 9)) == [6]
    assert line(pen("r1", 9, 9)) == [5, 6]
    assert line(pen("r2", 9, 9, first_s=5.5)) == [5, 6]
    assert line(pen("r2", 9, 9), bursts={"job-r2": Bursts(1, 50.0)}) == [5, 6]


def test_behind_a_small_one_that_does_not_fit_nobody_starts() -> None:
    """It is the next job, whatever else would fit."""
    runs = [pen("r1", 800, 832)]
    queue = [waiting_job(2), waiting_job(3, promised_bytes=MB, need_bytes=MB)]

    (wait,) = decide(scene(1000, *runs, at_s=1000.0, queue=queue))
    assert (isinstance(wait, Wait), wait.job) == (True, "next-2")


def test_no_job_starts_while_memory_is_short_and_a_run_still_grows() -> None:
    """The run is not held at this moment, but will be at its next quantum."""
    at = scene(1000, pen("r1", 100, 200), pen("r2", 100, 200), queue=[waiting_job(1)])

    assert closed(at, short_s=99.1, grown_s={"r1": 99.9, "r2": 99.5}) == Reason(
        Why.SOMEBODY_WAITS, waiting=1
    )
    assert closed(at, short_s=99.1, grown_s={"r1": 99.75}) is None
    assert closed(at, short_s=98.0, grown_s={"r1": 99.9}) is None


def test_a_job_that_has_just_returned_counts_with_its_need() -> None:
    """In its first second it uses little of the memory that it was given."""
    fresh = pen("r99", 10, 800, started_s=99.5)
    at = scene(1000, fresh, queue=[waiting_job(1)])

    assert Crowd(at, POLICY).expected_bytes == 800 * MB
    assert Crowd(replace(at, at_s=100.5), POLICY).expected_bytes == BASE
