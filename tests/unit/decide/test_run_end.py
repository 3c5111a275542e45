"""When a run is stopped, killed, cleared and over."""

import errno
from typing import Any

import pytest

from ramherd.core.agent_task import Brief
from ramherd.core.model import Clear, Finish, Kill, Reason, RunEnd, RunView, Stop, Why
from ramherd.core.units import GIB, MIB
from ramherd.decide.run_end import (
    clear_leftovers,
    finish_ended,
    is_failed_start,
    kill_overdue,
    next_deadline_s,
    stop_interrupted,
    stop_over_budget,
    stop_over_limit,
    stop_timed_out,
)
from support.make import exited, job, policy, run, snapshot, status, stopping

LIVE = run("live")
ENDED = run("ended", exit=exited())
TOLD = run("told", stop=stopping(RunEnd.TIMEOUT))
REFUSED = run("refused", refused=(2, "cannot start x"))


def test_a_signal_stops_every_live_run() -> None:
    """Runs that have ended, never began, or are already told to end are not told again."""
    now = snapshot(LIVE, ENDED, TOLD, REFUSED, run("other"), interrupts=1)

    reason = Reason(Why.INTERRUPTED, signals=1)
    assert stop_interrupted(now) == [
        Stop("live", RunEnd.CANCELLED, reason),
        Stop("other", RunEnd.CANCELLED, reason),
    ]
    assert stop_interrupted(snapshot(LIVE)) == []


def test_a_run_is_stopped_at_its_timeout() -> None:
    """The reason has the limit and the elapsed time; a job without a timeout runs forever."""
    timed = job("t", timeout_s=30.0)
    runs = [
        run("late", timed, started_s=69.12345),
        run("just", timed, started_s=70.0),
        run("early", timed, started_s=70.5),
        run("free", started_s=0.0),
        run("ended", timed, exit=exited()),
    ]

    assert stop_timed_out(snapshot(*runs, at_s=100.0)) == [
        Stop("late", RunEnd.TIMEOUT, Reason(Why.TIMEOUT, limit_s=30.0, ran_s=30.877)),
        Stop("just", RunEnd.TIMEOUT, Reason(Why.TIMEOUT, limit_s=30.0, ran_s=30.0)),
    ]


def test_a_timeout_does_not_count_what_a_run_was_held_for() -> None:
    """The run was frozen for lack of memory, through no fault of its own."""
    timed = job("t", timeout_s=30.0)
    held, late = (run("r", timed, started_s=50.0, uncounted_s=held_s) for held_s in (20.5, 20.0))

    assert stop_timed_out(snapshot(held, at_s=100.0)) == []
    assert stop_timed_out(snapshot(late, at_s=100.0)) == [
        Stop("r", RunEnd.TIMEOUT, Reason(Why.TIMEOUT, limit_s=30.0, ran_s=30.0))
    ]


def test_where_the_kernel_holds_no_limit_we_do() -> None:
    """Above its memory_limit, with the limit and the peak; not where the kernel enforces it."""
    limited = job("l", memory_limit_bytes=GIB)
    over = run("over", limited, used=GIB + 1, peak=2 * GIB, kernel_limits=False)
    at = run("at", limited, used=GIB, kernel_limits=False)
    held = run("held", limited, used=GIB + 1, kernel_limits=True)
    free = run("free", used=9 * GIB, kernel_limits=False)

    reason = Reason(Why.LIMIT_KILL, limit_bytes=GIB, peak_bytes=2 * GIB)
    assert stop_over_limit(snapshot(over, at, held, free)) == [
        Stop("over", RunEnd.LIMIT_KILL, reason)
    ]


def over_budget(*runs: RunView, fleet: int = GIB + 65 * MIB) -> list[str]:
    stops = stop_over_budget(snapshot(*runs, fleet=fleet), GIB, policy())
    return [stop.run for stop in stops if isinstance(stop, Stop)]


def test_over_the_budget_the_youngest_goes_back_into_the_queue() -> None:
    """One at a time, with the memory of the fleet and its limit."""
    now = snapshot(
        run("oldest", started_s=1), run("youngest", started_s=3), run("middle", started_s=2),
        fleet=GIB + 65 * MIB,
    )  # fmt: skip

    reason = Reason(Why.OVER_BUDGET, used_bytes=GIB + 65 * MIB, budget_bytes=GIB)
    assert stop_over_budget(now, GIB, policy()) == [Stop("youngest", RunEnd.PREEMPTED, reason)]


def test_a_fleet_below_its_mark_is_left_alone() -> None:
    """The fleet may exceed the budget by 64 MiB: the hard limit is at 256 MiB."""
    assert over_budget(run("a"), run("b", started_s=1), fleet=GIB + 64 * MIB) == []
    assert over_budget(run("a"), run("b", started_s=1), fleet=GIB + 64 * MIB + 1) == ["b"]


def test_the_oldest_is_never_put_back() -> None:
    """The herd always makes progress: a run that is alone continues while it fits."""
    assert over_budget(run("oldest", used=GIB)) == []
    assert over_budget(run("oldest", started_s=1), run("ended", started_s=2, exit=exited())) == []


def test_who_is_alone_and_above_the_budget_has_failed() -> None:
    """Waiting does not help it; the remains of other runs are not its fault."""
    lone, ended = run("lone", used=GIB + 1), run("ended", used=MIB, exit=exited())

    reason = Reason(Why.TOO_BIG, need_bytes=GIB + 1, budget_bytes=GIB)
    for runs in ([lone], [lone, ended]):
        now = snapshot(*runs, fleet=GIB + 65 * MIB)
        assert stop_over_budget(now, GIB, policy()) == [Stop("lone", RunEnd.FAILED, reason)]
    assert stop_over_budget(snapshot(lone, fleet=GIB + 64 * MIB), GIB, policy()) == []
    assert stop_over_budget(snapshot(ended, fleet=9 * GIB), GIB, policy()) == []


def test_who_is_too_big_is_killed_without_grace() -> None:
    """Memory is short; other failures have the grace period."""
    big = run("big", stop=stopping(RunEnd.FAILED, why=Why.TOO_BIG))
    other = run("other", stop=stopping(RunEnd.FAILED))

    assert kill_overdue(snapshot(big, other, at_s=100.0), policy()) == [
        Kill("big", Reason(Why.GRACE_OVER, grace_s=0.0))
    ]


def test_of_two_that_began_together_the_later_one_goes() -> None:
    """Starts of one round have the same time: their order decides."""
    assert over_budget(run("first", started_s=5), run("second", started_s=5)) == ["second"]


def test_nobody_else_goes_while_one_is_on_its_way() -> None:
    """Its memory is counted until the fleet is measured again, even when its pen is empty."""
    a, b = run("a", started_s=1), run("b", started_s=2)

    for procs in (1, 0):
        leaving = run("c", procs=procs, started_s=3, stop=stopping(RunEnd.PREEMPTED))
        assert over_budget(a, b, leaving) == []
        assert over_budget(run("a", used=9 * GIB), leaving) == []
    assert over_budget(a, b, run("c", stop=stopping(RunEnd.TIMEOUT))) == ["b"]


@pytest.mark.parametrize(
    ("end", "grace_s"),
    [
        (RunEnd.CANCELLED, 10.0), (RunEnd.TIMEOUT, 10.0),
        (RunEnd.LIMIT_KILL, 0.0), (RunEnd.PREEMPTED, 0.0), (RunEnd.LOST, 0.0),
    ],
)  # fmt: skip
def test_kill_comes_after_the_grace(end: RunEnd, grace_s: float) -> None:
    """Not before; and where memory is short there is no grace."""
    told = run("r", stop=stopping(end, since_s=100.0))

    assert kill_overdue(snapshot(told, at_s=100.0 + grace_s), policy()) == [
        Kill("r", Reason(Why.GRACE_OVER, grace_s=grace_s))
    ]
    if grace_s:
        assert kill_overdue(snapshot(told, at_s=100.0 + grace_s - 0.1), policy()) == []


def grace_of(end: RunEnd, why: Why, **of: Any) -> float:
    """The time from TERM to KILL."""
    told = run("r", job("r", **of), stop=stopping(end, since_s=100.0, why=why))
    (kill,) = kill_overdue(snapshot(told, at_s=500.0), policy())
    grace_s = float(kill.reason.numbers["grace_s"])
    assert next_deadline_s(snapshot(told), policy()) == 100.0 + grace_s
    return grace_s


def test_who_makes_room_and_can_resume_may_put_its_session_down() -> None:
    """Two seconds, because another run waits. A run that starts over has nothing to save, and at
    the fleet's hard limit there is no time.
    """
    resumes = {"resume_argv": ("agent", "--resume")}

    assert grace_of(RunEnd.PREEMPTED, Why.PATIENCE_OVER, **resumes) == 2.0
    assert grace_of(RunEnd.PREEMPTED, Why.PATIENCE_OVER) == 0.0
    assert grace_of(RunEnd.PREEMPTED, Why.OVER_BUDGET, **resumes) == 0.0
    assert grace_of(RunEnd.FAILED, Why.TOO_BIG, **resumes) == 0.0


def test_a_command_that_is_restarted_for_a_leak_has_the_whole_grace() -> None:
    """No run waits for it. An agent has its session on disk between two turns, so it is restarted
    soon; an agent restarted by the user may be in a tool.
    """
    agent = {"brief": Brief("qwen", "do it")}

    assert grace_of(RunEnd.RECYCLED, Why.LEAK, resume_argv=("on",)) == 10.0
    assert grace_of(RunEnd.RECYCLED, Why.LEAK, **agent) == 1.5
    assert grace_of(RunEnd.RECYCLED, Why.OVER_MARK, **agent) == 1.5
    assert grace_of(RunEnd.RECYCLED, Why.ASKED, **agent) == 10.0


AGE_S = 100.0


@pytest.mark.parametrize(
    ("end", "age_s", "refused", "failed"),
    [
        (RunEnd.LOST, 0.0, (errno.ENOMEM, "no memory"), True),
        (RunEnd.LOST, 0.0, (errno.EAGAIN, "no processes"), False),
        (RunEnd.LOST, 0.0, (errno.EPERM, "an odd end"), False),
        (RunEnd.LOST, 0.0, None, False),
        (RunEnd.FAILED, 0.0, (errno.ENOENT, "no such program"), False),
        (RunEnd.OOM_KILL, 1.9, None, True),
        (RunEnd.OOM_KILL, 2.0, None, False),
        (RunEnd.HEAP_EXHAUSTED, 0.1, None, False),
        (RunEnd.LIMIT_KILL, 0.1, None, False),
        (RunEnd.DONE, 0.1, None, False),
    ],
)
def test_a_start_that_failed_for_memory_says_something_of_the_machine(
    end: RunEnd, age_s: float, refused: tuple[int, str] | None, *, failed: bool
) -> None:
    """Refused for lack of memory, or killed at birth: nothing else, and no full heap."""
    one = run("r", started_s=AGE_S - age_s, refused=refused)

    assert is_failed_start(one, end, AGE_S) is failed


def test_leftovers_have_a_shorter_grace() -> None:
    """The run itself has ended: their output is not needed."""
    clearing = run("r", exit=exited(), clearing_s=100.0)

    assert kill_overdue(snapshot(clearing, at_s=101.9), policy()) == []
    assert kill_overdue(snapshot(clearing, at_s=102.0), policy()) == [
        Kill("r", Reason(Why.GRACE_OVER, grace_s=2.0))
    ]


def test_a_second_signal_kills_at_once() -> None:
    """This applies to runs that are being stopped and those that are being cleared."""
    told = run("told", stop=stopping(RunEnd.CANCELLED))
    clearing = run("clearing", exit=exited(), clearing_s=100.0)

    assert kill_overdue(snapshot(told, clearing, at_s=100.0, interrupts=1), policy()) == []
    kills = kill_overdue(snapshot(told, clearing, at_s=100.0, interrupts=2), policy())
    assert [kill.run for kill in kills if isinstance(kill, Kill)] == ["told", "clearing"]


def test_what_survives_a_kill_is_killed_again() -> None:
    """One second after the last KILL, not sooner, even after a second signal."""
    killed = run("r", stop=stopping(RunEnd.CANCELLED, since_s=90.0), killed_s=100.0)

    assert kill_overdue(snapshot(killed, at_s=100.9, interrupts=2), policy()) == []
    assert kill_overdue(snapshot(killed, at_s=101.0), policy()) == [
        Kill("r", Reason(Why.GRACE_OVER, grace_s=1.0))
    ]


def test_an_empty_pen_is_not_killed() -> None:
    """Nor is a run that was not told to end."""
    empty = run("r", procs=0, stop=stopping(RunEnd.CANCELLED, since_s=0.0))

    assert kill_overdue(snapshot(empty, LIVE, ENDED, interrupts=2), policy()) == []


def test_what_a_run_left_alive_is_ended_with_it() -> None:
    """Once, with their number; a run that is being stopped is not cleared as well."""
    left = run("left", procs=3, exit=exited())
    again = run("again", procs=3, exit=exited(), clearing_s=99.0)
    told = run("told", procs=3, exit=exited(), stop=stopping(RunEnd.TIMEOUT))
    clean = run("clean", procs=0, exit=exited())

    assert clear_leftovers(snapshot(left, again, told, clean, LIVE)) == [
        Clear("left", Reason(Why.LEFTOVERS, processes=3))
    ]


def test_a_run_is_over_when_nothing_of_it_is_left() -> None:
    """Its first process has ended, its pen is empty, and all its output is on disk."""
    over = run("over", procs=0, exit=exited(), output_closed=True)
    printing = run("printing", procs=0, exit=exited())
    crowded = run("crowded", procs=1, exit=exited(), output_closed=True)

    assert finish_ended(snapshot(over, printing, crowded, LIVE, TOLD), policy()) == [
        Finish("over", RunEnd.DONE, Reason(Why.EXITED, code=0))
    ]


def test_a_run_that_never_began_is_over() -> None:
    """There is nothing to wait for."""
    refused = run("r", procs=0, refused=(2, "cannot start x"))

    (finish,) = finish_ended(snapshot(refused), policy())

    assert finish == Finish(
        "r", RunEnd.FAILED, Reason(Why.NOT_STARTED, errno=2, what="cannot start x")
    )


STOPPED = stopping(RunEnd.TIMEOUT, since_s=100.0)


@pytest.mark.parametrize(
    ("stuck", "end", "why"),
    [
        (run("r", procs=2, stop=STOPPED, killed_s=139.0), RunEnd.TIMEOUT, STOPPED.reason),
        (run("r", procs=2, exit=exited(), clearing_s=100.0, killed_s=139.0),
         RunEnd.DONE, Reason(Why.EXITED, code=0)),
    ],
)  # fmt: skip
def test_what_cannot_be_ended_is_given_up(stuck: RunView, end: RunEnd, why: Reason) -> None:
    """After the grace and 30 s, with the end it was told; until then it is killed again."""
    before, after = snapshot(stuck, at_s=139.9), snapshot(stuck, at_s=140.0)

    assert finish_ended(before, policy(kill_again_s=0.5)) == []
    assert [type(one) for one in kill_overdue(before, policy(kill_again_s=0.5))] == [Kill]
    assert finish_ended(after, policy(kill_again_s=0.5)) == [Finish("r", end, why)]
    assert kill_overdue(after, policy(kill_again_s=0.5)) == []


def test_nobody_is_given_up_before_it_was_killed() -> None:
    """However long ago it was told to end; nor a run that was never told."""
    told = run("told", stop=stopping(RunEnd.TIMEOUT, since_s=0.0))
    never = run("never", killed_s=0.0)

    assert finish_ended(snapshot(told, never, at_s=999.0), policy()) == []


def test_the_next_deadline_is_the_earliest_of_all() -> None:
    """Of grace periods, timeouts and back-offs; without any there is no deadline."""
    timed = run("timed", job("timed", timeout_s=60.0), started_s=100.0)
    told = run("told", stop=stopping(RunEnd.CANCELLED, since_s=100.0))
    late = status("late", not_before_s=130.0)

    assert next_deadline_s(snapshot(timed, told, queue=[late]), policy()) == 110.0
    assert next_deadline_s(snapshot(timed, queue=[late]), policy()) == 130.0
    assert next_deadline_s(snapshot(timed), policy()) == 160.0
    assert next_deadline_s(snapshot(LIVE, queue=[status("now")]), policy()) == float("inf")
    due = status("due", not_before_s=100.0)
    assert next_deadline_s(snapshot(queue=[due], at_s=100.0), policy()) == float("inf")


def test_at_its_deadline_something_is_decided() -> None:
    """Otherwise the loop would spin: the deadline is the time that the rules compare with."""
    for since in (0.1, 0.3, 1e9 + 0.7):
        told = run("r", stop=stopping(RunEnd.CANCELLED, since_s=since))
        timed = run("t", job("t", timeout_s=0.7), started_s=since)
        # Floating-point rounding may cost one more step of the loop, not more.
        at_kill = next_deadline_s(snapshot(told), policy()) + 1e-6
        at_timeout = next_deadline_s(snapshot(timed), policy()) + 1e-6

        assert kill_overdue(snapshot(told, at_s=at_kill), policy())
        assert stop_timed_out(snapshot(timed, at_s=at_timeout))


def test_a_run_that_was_held_is_not_due_at_its_old_time() -> None:
    """Otherwise the loop would spin for as long as the run was held."""
    held = run("t", job("t", timeout_s=10.0), started_s=85.0, uncounted_s=7.0)

    assert stop_timed_out(snapshot(held, at_s=100.0)) == []
    assert next_deadline_s(snapshot(held, at_s=100.0), policy()) == 102.0
