"""One decision about a whole snapshot."""

from itertools import product

import pytest

from ramherd.core.model import (
    Action,
    Clear,
    Finish,
    JobState,
    Kill,
    Machine,
    PenReading,
    Reason,
    RunEnd,
    RunView,
    Settle,
    Stop,
    Wait,
    Warn,
    Why,
)
from ramherd.core.units import GIB, MIB
from ramherd.decide.engine import MEMORY, decide, refuse_waits
from support.make import exited, job, policy, run, snapshot, status, stopping


def of_run(actions: list[Action], name: str) -> list[type[Action]]:
    found = (Stop, Kill, Clear, Finish, Warn)
    return [type(action) for action in actions if isinstance(action, found) and action.run == name]


def test_a_run_is_stopped_for_one_reason_only() -> None:
    """It is interrupted, over its limit, over its time and the youngest: the first rule applies."""
    bad = job("bad", memory_limit_bytes=MIB, timeout_s=1.0)
    runs = [run("old"), run("bad", bad, used=9 * GIB, started_s=50.0, kernel_limits=False)]

    def stops(interrupts: int) -> list[tuple[str, RunEnd]]:
        actions = decide(snapshot(*runs, fleet=9 * GIB, interrupts=interrupts), policy())
        return [(action.run, action.end) for action in actions if isinstance(action, Stop)]

    assert stops(1) == [("old", RunEnd.CANCELLED), ("bad", RunEnd.CANCELLED)]
    assert stops(0) == [("bad", RunEnd.LIMIT_KILL)]


def test_after_a_signal_nothing_starts() -> None:
    """Queued jobs are cancelled, including those in their back-off."""
    queue = [status("a"), status("b", not_before_s=999.0)]

    actions = decide(snapshot(run("r"), queue=queue, interrupts=1), policy())

    reason = Reason(Why.INTERRUPTED, signals=1)
    assert actions == [
        Stop("r", RunEnd.CANCELLED, reason),
        Settle("id-a", JobState.CANCELLED, reason),
        Settle("id-b", JobState.CANCELLED, reason),
    ]


def test_who_starts_is_decided_elsewhere() -> None:
    """This decision only cancels the queue."""
    over = run("over", procs=0, exit=exited(), output_closed=True)

    actions = decide(snapshot(over, queue=[status("a")]), policy())

    assert [type(action) for action in actions] == [Finish]


def test_the_youngest_goes_by_the_hard_limit_not_by_the_budget_of_the_moment() -> None:
    """Memory used by other programs lowers the budget, but ends no run of ours."""
    others = Machine(16 * GIB, 4 * GIB)
    runs = [run("a"), run("b", started_s=1.0)]

    assert of_run(decide(snapshot(*runs, machine=others, fleet=7 * GIB), policy()), "b") == []
    assert of_run(decide(snapshot(*runs, machine=others, fleet=9 * GIB), policy()), "b") == [Stop]


def test_a_quiet_herd_needs_nothing() -> None:
    """With live runs and an empty queue there is no action, and the loop may sleep."""
    assert decide(snapshot(run("a"), run("b")), policy()) == []


@pytest.mark.parametrize("why", MEMORY)
def test_with_no_wait_nobody_waits_for_memory(why: Why) -> None:
    """The job fails with the reason it would have waited for, and all numbers of that reason."""
    wait = Wait("id-a", Reason(why, need_bytes=5, waiting=1))

    (order,) = refuse_waits([wait], policy(no_wait=True))

    reason = Reason(Why.NO_WAIT, obstacle=why.value, need_bytes=5, waiting=1)
    assert order == Settle("id-a", JobState.FAILED, reason)
    assert list(refuse_waits([wait], policy())) == [wait]


@pytest.mark.parametrize("why", sorted(set(Why) - set(MEMORY)))
def test_with_no_wait_all_else_is_waited_for(why: Why) -> None:
    """`--max-parallel`, a ramp, starts under way and busy CPUs are no lack of memory."""
    wait, stop = Wait("id-a", Reason(why)), Stop("r", RunEnd.PREEMPTED, Reason(Why.PATIENCE_OVER))

    assert list(refuse_waits([stop, wait], policy(no_wait=True))) == [stop, wait]


EXITS = (None, exited(0))
STOPS = (None, *(stopping(end, 100.0) for end in (RunEnd.CANCELLED, RunEnd.PREEMPTED)))
TIMES = (None, 0.0)


def every_run() -> list[RunView]:
    """All forms of a run, except those that were refused: leftover processes are ended only after
    the first process has exited.
    """
    return [
        run(
            "r", job("r", timeout_s=1.0), pen=PenReading(procs=procs), exit=exit_, stop=stop,
            clearing_s=clearing, killed_s=killed, output_closed=closed,
        )
        for procs, exit_, stop, clearing, killed, closed in product(
            (0, 1), EXITS, STOPS, TIMES, TIMES, (False, True)
        )
        if exit_ is not None or clearing is None
    ]  # fmt: skip


@pytest.mark.parametrize("interrupts", [0, 1, 2])
def test_a_run_that_is_over_gets_no_other_action(interrupts: int) -> None:
    """A finished run is forgotten: no later action would find it."""
    for one in every_run():
        found = of_run(decide(snapshot(one, interrupts=interrupts), policy()), "r")
        assert found == [Finish] or Finish not in found
        assert len(found) == len(set(found))


def test_a_refused_run_that_was_told_to_end_gets_no_other_action() -> None:
    """Its child may still be leaving the pen when the keeper reports the failure."""
    refused = run("r", procs=1, refused=(2, "cannot start"), stop=stopping(RunEnd.PREEMPTED, 100.0))

    assert of_run(decide(snapshot(refused), policy()), "r") == [Finish]


def test_nobody_is_warned_of_a_run_that_is_over() -> None:
    """A finished run is forgotten, and the loop would not find it."""
    over = run("r", procs=0, exit=exited(), output_closed=True, engine="/run/docker.sock")

    assert of_run(decide(snapshot(over), policy()), "r") == [Finish]


def test_a_run_that_talks_to_a_container_engine_is_warned_of_once() -> None:
    """Containers that the engine starts are neither counted nor ended."""
    talks, said = run("talks", engine="/s"), run("said", engine="/s", warned=True)

    actions = decide(snapshot(talks, said, run("quiet")), policy())

    assert actions == [Warn("talks", Reason(Why.CONTAINERS, socket="/s"))]


def test_a_process_that_is_ready_for_the_next_job_is_not_stopped() -> None:
    """Its run is done, even if its timeout or the agent's limits are reached at the same moment."""
    ready = run("r", job("r", timeout_s=1.0), started_s=0.0, ready=True)

    assert decide(snapshot(ready, interrupts=1), policy()) == [
        Finish("r", RunEnd.DONE, Reason(Why.SAID_DONE))
    ]
