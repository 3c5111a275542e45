"""Which end a finished run counts as, and with which reason."""

import errno
from typing import Any

import pytest

from ramherd.core.model import Exit, PenReading, Reason, RunEnd, RunView, Said, Why
from ramherd.core.units import MIB
from ramherd.decide.run_end import (
    explain_denials,
    is_for_memory,
    is_for_want,
    is_own_failure,
    judge,
    limit_reason,
)
from support.make import exited, job, killed_by, run, stopping

SIGKILL, SIGSEGV, SIGABRT = 9, 11, 6
LIMITED = job("l", memory_limit_bytes=100 * MIB)


def pen(*, kills: int = 0, limit_hit: bool = False) -> PenReading:
    return PenReading(0, 90 * MIB, 0, kernel_kills=kills, limit_hit=limit_hit)


def judged(exit_: Exit | None, **changes: Any) -> tuple[RunEnd, Reason]:
    return judge(run(exit=exit_, **changes))


@pytest.mark.parametrize(
    ("code", "end"), [(0, RunEnd.DONE), (1, RunEnd.FAILED), (255, RunEnd.FAILED)]
)
def test_an_exit_status_tells(code: int, end: RunEnd) -> None:
    """Zero is done, any other status is failed."""
    assert judged(exited(code)) == (end, Reason(Why.EXITED, code=code))


def test_a_signal_from_somewhere_is_a_failure() -> None:
    """With its number; also KILL, if the kernel counted no kill of its own."""
    for number in (SIGSEGV, SIGKILL):
        assert judged(killed_by(number)) == (
            RunEnd.FAILED,
            Reason(Why.SIGNALLED, signal=number),
        )


def test_a_kernel_kill_at_its_own_limit_is_a_limit_kill() -> None:
    """With limit and peak."""
    reason = Reason(Why.LIMIT_KILL, limit_bytes=100 * MIB, peak_bytes=90 * MIB)

    found = judged(killed_by(SIGKILL), of=LIMITED, pen=pen(kills=1, limit_hit=True))

    assert found == (RunEnd.LIMIT_KILL, reason)


def test_the_peak_of_a_limit_kill_is_the_kernels() -> None:
    """A run that filled its limit between two measurements was never measured at that size."""
    seen = PenReading(0, 12, 0, kernel_kills=1, limit_hit=True, charged_bytes=100 * MIB)

    _end, reason = judged(killed_by(SIGKILL), of=LIMITED, pen=seen)

    assert reason.numbers["peak_bytes"] == 100 * MIB


@pytest.mark.parametrize(
    "changes",
    [{"of": LIMITED, "pen": pen(kills=1)}, {"pen": pen(kills=1, limit_hit=True)}],
)
def test_any_other_kernel_kill_is_an_oom_kill(changes: dict[str, Any]) -> None:
    """Not at its limit, or without a limit: the fleet's failure, not the run's."""
    found = judged(killed_by(SIGKILL), **changes)

    assert found == (RunEnd.OOM_KILL, Reason(Why.OOM_KILL, peak_bytes=90 * MIB))


def test_a_kernel_kill_that_the_run_survived_is_not_its_end() -> None:
    """The kernel mostly kills a tool; then the run's own exit counts."""
    for code, end in ((0, RunEnd.DONE), (3, RunEnd.FAILED)):
        found = judged(exited(code), of=LIMITED, pen=pen(kills=1, limit_hit=True))
        assert found == (end, Reason(Why.EXITED, code=code))


def test_a_shell_that_passes_a_kernel_kill_on_is_judged_by_the_kill() -> None:
    """`sh -c 'a && b'` exits with 137 when the kernel killed `a` at the memory limit."""
    end, reason = judged(exited(137), of=LIMITED, pen=pen(kills=1, limit_hit=True))

    assert (end, reason.why) == (RunEnd.LIMIT_KILL, Why.LIMIT_KILL)


@pytest.mark.parametrize("exit_", [exited(134), killed_by(SIGABRT)])
def test_a_full_v8_heap_is_told_apart(exit_: Exit) -> None:
    """The agent's heap was full; the machine was not necessarily full."""
    found = judged(exit_, heap_exhausted=True, pen=pen())

    assert found == (RunEnd.HEAP_EXHAUSTED, Reason(Why.HEAP_EXHAUSTED, peak_bytes=90 * MIB))


@pytest.mark.parametrize("exit_", [exited(134), killed_by(SIGABRT)])
def test_an_abort_of_node_says_what_node_aborts_for(exit_: Exit) -> None:
    """The output of a session is not read: a full heap is the likely cause of an abort of node, not
    a fact. For any other program the abort alone is reported.
    """
    reason = Reason(Why.NODE_ABORT, peak_bytes=90 * MIB)

    assert judged(exit_, is_node=True, pen=pen()) == (RunEnd.FAILED, reason)
    assert judged(exit_, pen=pen())[1].why in (Why.EXITED, Why.SIGNALLED)
    assert judged(exited(1), is_node=True, pen=pen())[1].why is Why.EXITED


def test_a_kernel_kill_comes_before_what_was_printed() -> None:
    """A message on stderr comes from the agent, a counted kill from the kernel."""
    end, _reason = judged(killed_by(SIGKILL), heap_exhausted=True, pen=pen(kills=1))

    assert end is RunEnd.OOM_KILL


@pytest.mark.parametrize("end", [RunEnd.TIMEOUT, RunEnd.CANCELLED, RunEnd.PREEMPTED, RunEnd.LOST])
@pytest.mark.parametrize("exit_", [exited(0), killed_by(SIGKILL), None])
def test_what_we_did_to_it_comes_first(end: RunEnd, exit_: Exit | None) -> None:
    """A run that was told to end counts as that, with that reason, however it exited."""
    stop = stopping(end)

    assert judged(exit_, stop=stop, pen=pen(kills=1)) == (end, stop.reason)


@pytest.mark.parametrize(
    ("number", "end"),
    [
        (errno.ENOENT, RunEnd.FAILED), (errno.EACCES, RunEnd.FAILED), (0, RunEnd.FAILED),
        (errno.ENOEXEC, RunEnd.FAILED), (errno.E2BIG, RunEnd.FAILED),
        (errno.ENOMEM, RunEnd.LOST), (errno.EAGAIN, RunEnd.LOST),
        (errno.ENFILE, RunEnd.LOST), (errno.EMFILE, RunEnd.LOST),
    ],
)  # fmt: skip
def test_a_start_that_failed_is_the_jobs_or_the_machines(number: int, end: RunEnd) -> None:
    """A lack of memory or descriptors is the machine's failure: the job is tried again."""
    found = judged(None, refused=(number, "cannot start x"))

    assert found == (end, Reason(Why.NOT_STARTED, errno=number, what="cannot start x"))


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.ENOMEM, errno.EROFS, errno.EMFILE])
def test_what_we_could_not_prepare_is_not_the_jobs(number: int) -> None:
    """Whatever the error was."""
    found = judged(None, refused=(number, "cannot prepare a run", True))

    assert found == (RunEnd.LOST, Reason(Why.CANNOT_PREPARE, what="cannot prepare a run"))


def test_only_some_errors_of_a_preparation_are_the_jobs_own() -> None:
    """An invalid memory limit, and a stdin that is too large for a file."""
    own = {number for number in errno.errorcode if is_own_failure(number)}

    assert own == {errno.EINVAL, errno.ERANGE, errno.EFBIG}


def test_a_start_without_memory_or_descriptors_is_for_want_of_them() -> None:
    """It is tried again later. Only ENOMEM shows that memory is short."""
    want = {number for number in errno.errorcode if is_for_want(number)}

    assert want == {errno.ENOMEM, errno.EAGAIN, errno.ENFILE, errno.EMFILE}
    assert [number for number in errno.errorcode if is_for_memory(number)] == [errno.ENOMEM]


def test_a_run_without_an_exit_is_lost() -> None:
    """The keeper died before it could report the exit."""
    assert judged(None) == (RunEnd.LOST, Reason(Why.KEEPER_LOST))


def test_every_end_there_is_can_be_judged() -> None:
    """Every end in the list can be reached."""
    runs: list[RunView] = [
        run(exit=exited(0)),
        run(exit=exited(1)),
        run(exit=exited(0), stop=stopping(RunEnd.TIMEOUT)),
        run(exit=exited(0), stop=stopping(RunEnd.PREEMPTED)),
        run(exit=exited(0), stop=stopping(RunEnd.RECYCLED)),
        run(exit=exited(0), stop=stopping(RunEnd.CANCELLED)),
        run(exit=killed_by(SIGKILL), of=LIMITED, pen=pen(kills=1, limit_hit=True)),
        run(exit=killed_by(SIGKILL), pen=pen(kills=1)),
        run(exit=exited(134), heap_exhausted=True),
        run(),
    ]

    assert {judge(one)[0] for one in runs} == set(RunEnd)


@pytest.mark.parametrize(
    ("exit_", "said", "end", "why"),
    [
        (exited(0), Said(result=True), RunEnd.DONE, Why.SAID_DONE),
        (exited(1), Said(result=True), RunEnd.DONE, Why.SAID_DONE),
        (exited(0), Said(result=True, busy=True), RunEnd.DONE, Why.SAID_DONE),
        (killed_by(SIGKILL), Said(result=True, busy=True), RunEnd.FAILED, Why.SIGNALLED),
        (exited(0), Said(), RunEnd.FAILED, Why.NO_RESULT),
        (exited(0), Said(needs_result=False), RunEnd.DONE, Why.EXITED),
        (exited(2), Said(), RunEnd.FAILED, Why.EXITED),
        (exited(0), Said(failure="no"), RunEnd.FAILED, Why.GAVE_UP),
        (exited(1), Said(failure="429", overloaded=True), RunEnd.FAILED, Why.OVERLOAD),
        (exited(1), Said(failure="x", cost_usd=2.0, limit_usd=1.0), RunEnd.FAILED, Why.COST),
        (exited(0), Said(result=True, cost_usd=2.0, limit_usd=1.0), RunEnd.DONE, Why.SAID_DONE),
        (exited(1), Said(lost_session=True), RunEnd.LOST, Why.SESSION_LOST),
        (killed_by(SIGKILL), Said(lost_session=True), RunEnd.FAILED, Why.SIGNALLED),
    ],
)
def test_an_agents_word_counts(exit_: Exit, said: Said, end: RunEnd, why: Why) -> None:
    """It counts for more than the exit status, in both directions."""
    found, reason = judged(exit_, said=said)

    assert (found, reason.why) == (end, why)


@pytest.mark.parametrize("end", [RunEnd.PREEMPTED, RunEnd.RECYCLED, RunEnd.LOST, RunEnd.TIMEOUT])
def test_an_agent_that_was_through_when_it_was_stopped_is_done(end: RunEnd) -> None:
    """Nothing would be left to resume; a timeout stays a timeout."""
    found, _reason = judged(exited(143), said=Said(result=True), stop=stopping(end))
    cut, _reason = judged(exited(143), said=Said(), stop=stopping(end))

    assert found is (RunEnd.TIMEOUT if end is RunEnd.TIMEOUT else RunEnd.DONE)
    assert cut is end


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (Said(failure="no"), Reason(Why.GAVE_UP, what="no")),
        (Said(failure="429", overloaded=True), Reason(Why.OVERLOAD, what="429")),
        (
            Said(failure="x", cost_usd=1.23456789, limit_usd=1.0),
            Reason(Why.COST, whose="the job", cost_usd=1.234568, limit_usd=1.0),
        ),
        (
            Said(failure="x", cost_usd=0.0, limit_usd=0.0),
            Reason(Why.COST, whose="the job", cost_usd=0.0, limit_usd=0.0),
        ),
        (
            Said(failure="x", cost_usd=1.23456789, share_usd=1.0),
            Reason(Why.COST_SHARE, cost_usd=1.234568),
        ),
    ],
)
def test_why_an_agent_gave_up(said: Said, reason: Reason) -> None:
    """With the agent's own message, or with the cost and its limit, to a millionth of a dollar."""
    assert judged(exited(1), said=said) == (RunEnd.FAILED, reason)


def test_a_warm_process_that_is_gone_loses_the_run() -> None:
    """Its job has not begun."""
    found = judged(None, refused=(errno.ESRCH, "no such process"))

    assert found == (RunEnd.LOST, Reason(Why.WARM_GONE))


def test_without_a_kernel_kill_the_peak_is_what_was_seen() -> None:
    """The kernel's own peak includes page cache."""
    seen = PenReading(0, 0, 1, charged_bytes=100 * MIB)

    reason = Reason(Why.LIMIT_KILL, limit_bytes=MIB, peak_bytes=0)
    assert limit_reason(run(pen=seen), MIB) == reason


@pytest.mark.parametrize(
    ("calls", "end", "what"),
    [
        (["Write(a.txt)", "Bash(make)"], RunEnd.DONE, "Write(a.txt), Bash(make)"),
        (["Bash(make)"], RunEnd.FAILED, "Bash(make)"),
        ([], RunEnd.DONE, None),
        (["Bash(make)"], RunEnd.PREEMPTED, None),
        (["Bash(make)"], RunEnd.CANCELLED, None),
    ],
)
def test_refused_tool_calls_are_a_warning(calls: list[str], end: RunEnd, what: str | None) -> None:
    """Once, when the run is over: done or failed."""
    expected = None if what is None else Reason(Why.DENIED, what=what)

    assert explain_denials(calls, end) == expected
