"""Each rule of the governor on the smallest scene that shows it."""

from dataclasses import replace

from ramherd.core.memory import (
    MB,
    Admit,
    Bursts,
    Estimate,
    GrantAction,
    History,
    Level,
    Mode,
    Scene,
    SetLevel,
    Settle,
    Trim,
    Wait,
)
from ramherd.core.model import JobState, Reason, Why
from ramherd.core.policies import GrantPolicy
from ramherd.decide.governor.govern import govern
from unit.decide.governor.scenes import admitted, grants, held, pen, scene, stops, waiting_job

POLICY = GrantPolicy()
# A held run gets the distance to its mark plus a quantum.
STEP = POLICY.quantum_bytes + POLICY.arm_below_bytes + POLICY.near_bytes


def decide(at: Scene, history: History | None = None) -> list[GrantAction]:
    return govern(at, history or History(), POLICY)[1]


def why(actions: list[GrantAction]) -> list[Why]:
    return [action.reason.why for action in actions]


def test_the_oldest_waiter_is_served_first() -> None:
    """One quantum is free, and two runs wait for it."""
    actions = decide(scene(445, held("r2", 200, 99), held("r1", 200, 99.5)))

    assert grants(actions) == {"r1": 200 * MB + STEP}


def test_idle_memory_of_others_comes_before_a_stop() -> None:
    """The lease is fully granted, but one run does not use its grant."""
    actions = decide(scene(600, held("r1", 200, 90), pen("r2", 100, 400)))

    assert grants(actions) == {"r2": 400 * MB - STEP, "r1": 200 * MB + STEP}
    assert stops(actions) == []


def test_what_was_promised_is_not_taken_for_growth() -> None:
    """`memory` of a job is a promise."""
    promised = pen("r2", 100, 400, promised_bytes=400 * MB)
    actions = decide(scene(600, held("r1", 200, 99), promised))

    assert grants(actions) == {}


def test_the_youngest_makes_room_when_patience_is_over() -> None:
    """Not before, and not the oldest."""
    runs = (held("r1", 200, 98), pen("r2", 200, 200), pen("r3", 200, 200))

    assert stops(decide(scene(600, *runs, at_s=100.0))) == []
    actions = decide(scene(600, *runs, at_s=103.5))
    assert stops(actions) == ["r3"]
    assert actions[-1].reason.numbers["waited_s"] == 5.5


def test_patience_is_shared_by_all_who_wait() -> None:
    """Three runs that wait for two seconds lose as much as one run that waits for six. The largest
    of the held runs is stopped.
    """
    runs = [held("r1", 200, 98), held("r2", 201, 98), held("r3", 200, 98)]

    assert stops(decide(scene(801, *runs, pen("r4", 200, 200)))) == ["r2"]
    assert stops(decide(scene(801, *runs[:2], pen("r4", 400, 400)))) == []


def test_growth_that_is_refused_makes_memory_short() -> None:
    """Then the second run waits until the first has what it needs."""
    first, second = held("r1", 200, 99.5), held("r2", 200, 99.5)
    history, _ = govern(scene(400, first, second), History(), POLICY)
    assert history.short_s == 100.0

    later = scene(900, first, second, at_s=101.0)
    assert list(grants(decide(later, history))) == ["r1"]
    assert list(grants(decide(replace(later, at_s=102.0), history))) == ["r1", "r2"]
    assert govern(later, History(), POLICY)[0].short_s is None


def test_the_governor_remembers_who_grew_and_for_whom_others_left() -> None:
    """Both count when the next run has to make room."""
    history, _ = govern(scene(900, held("r1", 200, 99.5)), History(), POLICY)
    assert history.grown_s == {"r1": 100.0}

    runs = (held("r1", 200, 90), pen("r2", 200, 200))
    history, actions = govern(scene(400, *runs), History(), POLICY)
    assert stops(actions) == ["r2"]
    assert history.bursts == {"job-r1": Bursts(1, 100.0)}


def test_what_a_job_with_bursts_keeps_is_given_to_nobody() -> None:
    """It made others leave twice: its room is kept for 20 s after its memory fell."""
    at = scene(1000, pen("r1", 100, 900), queue=[waiting_job(2)], at_s=100.0)
    twice = History(bursts={"job-r1": Bursts(2, 90.0)})

    assert admitted(decide(at, twice)) == []
    assert admitted(decide(at)) == ["next-2"]


def test_one_that_still_grows_does_not_wait_again() -> None:
    """Its patience ran out a second ago, and one leaving run was not enough."""
    runs = (held("r1", 200, 100), pen("r2", 200, 200))

    assert stops(decide(scene(400, *runs), History(urgent_s={"r1": 99.0}))) == ["r2"]
    assert stops(decide(scene(400, *runs), History(urgent_s={"r1": 90.0}))) == []


def test_nobody_else_is_stopped_while_one_leaves() -> None:
    """Its memory may be enough."""
    runs = (held("r1", 200, 50), pen("r2", 200, 200), pen("r3", 200, 200, leaving=True))

    assert stops(decide(scene(600, *runs))) == []


def test_a_run_held_for_long_is_stopped_itself() -> None:
    """It may hold a lock that the runs that would make room for it need."""
    runs = (pen("r1", 300, 300), held("r2", 200, 70), pen("r3", 100, 100))
    actions = decide(scene(600, *runs), History(urgent_s={}))

    # The patience of the first waiting run is over as well, and the youngest goes first.
    assert stops(actions) == ["r3"]
    actions = decide(scene(600, pen("r1", 300, 300), held("r2", 300, 70)))
    assert stops(actions) == ["r2"]


def test_a_job_that_alone_needs_more_than_the_budget_fails() -> None:
    """It has the whole budget and needs more."""
    actions = decide(scene(500, held("r1", 500, 99)))

    (failed,) = (action for action in actions if isinstance(action, Settle))
    assert failed.state is JobState.FAILED
    assert failed.reason.why is Why.OUTGREW_BUDGET


def test_a_job_that_does_not_fit_while_others_use_the_machine_steps_aside() -> None:
    """The budget is small only for now."""
    alone = replace(scene(500, held("r1", 500, 60)), largest_bytes=900 * MB)

    assert stops(decide(alone)) == ["r1"]
    assert not any(isinstance(action, Settle) for action in decide(alone))


def test_a_grant_follows_usage_down_after_a_while() -> None:
    """To the used bytes and the headroom."""
    at = scene(1000, pen("r1", 100, 300))
    history, actions = govern(at, History(), POLICY)
    assert actions == []

    _, actions = govern(replace(at, at_s=105.0), history, POLICY)
    assert grants(actions) == {"r1": 100 * MB + POLICY.headroom_bytes}


def test_debt_takes_idle_grants_and_then_the_youngest() -> None:
    """300 MB are missing: 92 MB of them are idle, the youngest holds the rest."""
    runs = (pen("r1", 300, 300), pen("r2", 200, 300), pen("r3", 300, 300))
    actions = decide(scene(600, *runs, queue=[waiting_job(4)]))

    assert grants(actions) == {"r2": 200 * MB + POLICY.slim_bytes}
    assert stops(actions) == ["r3"]
    assert admitted(actions) == []


def test_those_on_their_way_out_count_towards_the_debt() -> None:
    """One run leaves with 300 MB, and 200 MB are missing."""
    runs = (pen("r1", 300, 300), pen("r2", 300, 300), pen("r3", 300, 300, leaving=True))

    assert stops(decide(scene(700, *runs))) == []


def test_as_many_are_let_in_as_statistics_allow() -> None:
    """With 16 grown runs there is room for one of the prior's size, but not for two."""
    runs = [pen(f"r{n}", 200, 232) for n in range(1, 17)]
    actions = decide(scene(4000, *runs, at_s=1000.0, queue=[waiting_job(n) for n in range(20, 24)]))

    assert admitted(actions) == ["next-20"]
    assert why(actions)[-1] is Why.NO_ROOM_LEASE


def test_agents_that_start_over_are_let_in_with_more_room() -> None:
    """In the same scene none of them is admitted."""
    runs = [pen(f"r{n}", 200, 232) for n in range(1, 17)]
    queue = [waiting_job(20, mode=Mode.STARTS_OVER)]

    assert admitted(decide(scene(4000, *runs, at_s=1000.0, queue=queue))) == []


def test_starts_are_spread() -> None:
    """Starts within a second are expected to hold a quarter of the lease; the first one starts
    however large it is.
    """
    queue = [waiting_job(n) for n in range(20, 30)]
    actions = decide(scene(4000, queue=queue))
    assert admitted(actions) == ["next-20", "next-21", "next-22", "next-23"]
    assert why(actions)[-1] is Why.STAGGER

    fresh = [pen(f"r{n}", 10, 215, started_s=99.5) for n in range(1, 5)]
    assert why(decide(scene(4000, *fresh, queue=queue))) == [Why.STAGGER]
    # Runs that have grown to what was expected of them end the spreading; larger ones do not.
    settled = [replace(run, started_s=99.0) for run in fresh]
    assert len(admitted(decide(scene(4000, *settled, queue=queue)))) == 10
    larger = [replace(run, used_bytes=216 * MB, grant_bytes=250 * MB) for run in settled]
    assert len(admitted(decide(scene(4000, *larger, queue=queue)))) == 4

    big = replace(scene(4000, queue=queue), estimates={"": Estimate(1500 * MB, 100 * MB)})
    assert len(admitted(decide(big))) == 1


def test_only_so_many_starts_are_under_way() -> None:
    """Hundreds of simultaneous starts delay each other, however much memory there is."""
    queue = [waiting_job(n) for n in range(1, 31)]
    at = replace(scene(400_000, pen("r1", 10, 215), queue=queue), starting=14)

    actions = decide(at)

    assert len(admitted(actions)) == 2
    assert actions[-1].reason.numbers == {"starting": 16, "limit": 16}


def test_a_learned_class_decides_what_is_expected() -> None:
    """A class of 1 GB is not admitted where the prior would be."""
    runs = [pen("r1", 200, 232)]
    at = scene(1300, *runs, at_s=1000.0, queue=[waiting_job(2, label="big")])
    known = replace(at, estimates={"big": Estimate(1000 * MB, 100 * MB)})

    assert admitted(decide(at)) == ["next-2"]
    assert admitted(decide(known)) == []


def test_small_jobs_are_let_in_as_such() -> None:
    """Their `memory` counts before any run was seen: where a job of unknown size does not fit,
    three of these start in a second.
    """
    small = {"need_bytes": 40 * MB, "promised_bytes": 40 * MB}
    room = pen("r1", 200, 232)
    unknown = decide(scene(500, room, at_s=1000.0, queue=[waiting_job(1, mode=Mode.STARTS_OVER)]))
    promised = decide(
        scene(500, room, at_s=1000.0, queue=[waiting_job(seq, **small) for seq in range(9)])
    )

    assert admitted(unknown) == []
    assert admitted(promised) == ["next-0", "next-1", "next-2"]
    assert why(promised)[-1] is Why.STAGGER


def test_a_tiny_job_is_not_held_before_it_has_begun() -> None:
    """However small its `memory` is."""
    (start,) = decide(scene(500, queue=[waiting_job(1, promised_bytes=MB)]))

    assert isinstance(start, Admit)
    assert start.grant_bytes == POLICY.quantum_bytes


def test_small_jobs_pass_a_large_one_for_a_while() -> None:
    """Then the large one is next, and runs end until it fits."""
    runs = [pen("r1", 200, 232), pen("r2", 200, 232)]
    queue = [waiting_job(3, need_bytes=3500 * MB, queued_s=990.0), waiting_job(4)]

    early = decide(scene(4000, *runs, at_s=1000.0, queue=queue))
    late = decide(scene(4000, *runs, at_s=1200.0, queue=queue))

    assert admitted(early) == ["next-4"]
    assert admitted(late) == []
    assert isinstance(late[-1], Wait)


def test_a_low_priority_rises_with_time() -> None:
    """After twenty minutes it comes before a new job of the next priority."""
    fresh = waiting_job(9, priority=1, queued_s=1990.0)
    patient = waiting_job(1, priority=0, queued_s=800.0)

    assert admitted(decide(scene(4000, at_s=2000.0, queue=[fresh, patient]))) == [
        "next-1",
        "next-9",
    ]
    recent = replace(patient, queued_s=1900.0)
    assert admitted(decide(scene(4000, at_s=2000.0, queue=[fresh, recent]))) == ["next-9", "next-1"]


def test_busy_cpus_keep_new_runs_out_until_they_calm_down() -> None:
    """Two marks: closed at 0.9, open again below 0.75."""
    at = scene(4000, pen("r1", 200, 232), at_s=1000.0, queue=[waiting_job(2)])
    history, actions = govern(replace(at, cpu_pressure=0.95), History(), POLICY)
    assert why(actions) == [Why.CPU_PRESSURE]

    history, actions = govern(replace(at, cpu_pressure=0.8), history, POLICY)
    assert admitted(actions) == []
    _, actions = govern(replace(at, cpu_pressure=0.7), history, POLICY)
    assert admitted(actions) == ["next-2"]


def test_pressure_makes_it_tight_until_it_is_well_below() -> None:
    """The level changes once, not at every check."""
    at = scene(4000, pen("r1", 200, 232), at_s=1000.0, queue=[waiting_job(2)])
    history, actions = govern(replace(at, memory_pressure=0.3), History(), POLICY)
    assert history.level is Level.TIGHT
    assert [action.reason.why for action in actions if isinstance(action, SetLevel)] == [
        Why.MEMORY_PRESSURE
    ]

    history, actions = govern(replace(at, memory_pressure=0.15), history, POLICY)
    assert history.level is Level.TIGHT
    assert not any(isinstance(action, SetLevel) for action in actions)
    later = replace(at, memory_pressure=0.05, at_s=1000.0 + POLICY.level_lasts_s)
    history, _ = govern(later, history, POLICY)
    assert history.level is Level.CALM


def test_a_budget_under_two_bases_runs_one_at_a_time() -> None:
    """The next one starts when the last has ended."""
    queue = [waiting_job(2)]
    history, actions = govern(scene(400, pen("r1", 100, 132), queue=queue), History(), POLICY)
    assert history.level is Level.SINGLE
    assert admitted(actions) == []

    assert admitted(decide(scene(400, queue=queue), history)) == ["next-2"]


def test_a_debt_of_ten_seconds_runs_one_at_a_time() -> None:
    """The debt cannot be paid: the oldest run alone is above the lease."""
    at = scene(600, pen("r1", 700, 700), at_s=100.0)
    history, _ = govern(at, History(), POLICY)
    assert history.level is Level.CALM
    history, _ = govern(replace(at, at_s=101.0), history, POLICY)
    assert history.level is Level.TIGHT

    history, _ = govern(replace(at, at_s=110.0), history, POLICY)
    assert history.level is Level.SINGLE


def test_starts_that_fail_for_memory_step_the_level_down() -> None:
    """One failed start makes it tight, three make it single."""
    at = scene(4000, pen("r1", 200, 232), at_s=1000.0, queue=[waiting_job(2)])

    assert govern(replace(at, failed_starts=1), History(), POLICY)[0].level is Level.TIGHT
    assert govern(replace(at, failed_starts=3), History(), POLICY)[0].level is Level.SINGLE


def test_runs_on_their_way_out_make_no_level() -> None:
    """The memory that they hold until their pens are empty is free in a moment, so it does not
    reduce the budget.
    """
    at = scene(300, pen("r1", 200, 232), queue=[waiting_job(2)])
    ending = replace(at, ending=3, ending_bytes=700 * MB)

    assert why(decide(at))[0] is Why.SMALL_BUDGET
    assert not [action for action in decide(ending) if isinstance(action, SetLevel)]


def test_a_new_level_is_an_action_with_its_reason() -> None:
    """It is the first action."""
    at = replace(scene(4000, pen("r1", 200, 232), at_s=1000.0), failed_starts=1)

    assert decide(at)[0] == SetLevel(Level.TIGHT, Reason(Why.FAILED_STARTS, starts=1))


def test_the_queue_is_told_how_many_wait_for_memory() -> None:
    """Even if there is room for the next job."""
    at = scene(9000, held("r1", 200, 99.5), held("r2", 200, 99.5), queue=[waiting_job(3)])

    assert [one for one in decide(at) if isinstance(one, Wait | Admit)] == [
        Wait("next-3", Reason(Why.SOMEBODY_WAITS, waiting=2))
    ]


def test_while_a_run_is_stopped_nothing_is_decided_about_the_queue() -> None:
    """The memory that becomes free is known at the next check."""
    at = scene(600, pen("r1", 400, 400), pen("r2", 400, 400), queue=[waiting_job(3)])
    actions = decide(at)

    assert stops(actions) == ["r2"]
    assert not [one for one in actions if isinstance(one, Wait | Admit)]


def test_page_cache_is_left_alone_while_there_is_debt() -> None:
    """Debt is paid by grants and stops."""
    at = scene(600, pen("r1", 700, 700, cache_bytes=100 * MB, cache_full=True))

    assert not [one for one in decide(at) if isinstance(one, Trim)]
