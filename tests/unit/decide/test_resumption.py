"""Which jobs of an interrupted herd resume."""

from typing import Any

import pytest

from ramherd.core.model import JobState, JobStatus, Reason, Why
from ramherd.decide.resumption import continue_jobs
from support.make import job

INTERRUPTED = Reason(Why.INTERRUPTED, signals=1)


def ended(
    name: str, state: JobState, reason: Reason, *, after: tuple[str, ...] = (), **changes: Any
) -> JobStatus:
    return JobStatus(job(name, after=after), state, reason, **changes)


def done(name: str) -> JobStatus:
    return ended(name, JobState.DONE, Reason(Why.EXITED, code=0))


def cancelled(name: str, *after: str, why: Why = Why.INTERRUPTED, **changes: Any) -> JobStatus:
    return ended(name, JobState.CANCELLED, Reason(why), after=after, **changes)


def states(statuses: list[JobStatus]) -> dict[str, str]:
    return {status.job.name: status.state.value for status in statuses}


@pytest.mark.parametrize("why", [Why.INTERRUPTED, Why.SUPERVISOR_LOST])
def test_what_the_interruption_ended_goes_on(why: Why) -> None:
    """They are queued again with their counters, and with the reason of their end."""
    (one,) = continue_jobs([done("a"), cancelled("b", why=why, attempts=2, interrupted=True)])

    assert (one.job.name, one.state, one.attempts, one.interrupted) == (
        "b", JobState.QUEUED, 2, True,
    )  # fmt: skip
    assert one.reason == Reason(Why.CONTINUED, after=why.value)


def test_what_ended_by_itself_stays() -> None:
    """Failed, cancelled by the user, or cancelled for its cost."""
    failed = ended("a", JobState.FAILED, Reason(Why.EXITED, code=1))
    asked, cost = cancelled("b", why=Why.ASKED), cancelled("c", why=Why.COST)
    # A job that failed with the reason of an interruption was not interrupted.
    odd = ended("d", JobState.FAILED, INTERRUPTED)

    assert continue_jobs([failed, asked, cost, odd]) == []


def test_jobs_that_wait_for_one_that_goes_on_wait_again() -> None:
    """However long the chain; a job whose dependencies are done is queued."""
    chain = [
        cancelled("a"),
        cancelled("b", "a", why=Why.DEPENDENCY_FAILED),
        cancelled("c", "b", why=Why.DEPENDENCY_FAILED),
        done("d"),
        cancelled("e", "d"),
    ]

    assert states(continue_jobs(chain)) == {
        "a": "queued", "b": "waiting", "c": "waiting", "e": "queued",
    }  # fmt: skip


def test_a_job_waits_for_a_worktree_that_is_not_finished() -> None:
    """The job before it is done, but its changes are not committed yet."""
    herd = [done("a"), cancelled("b", "a"), done("c"), cancelled("d", "c")]

    assert states(continue_jobs(herd, {"a"})) == {"b": "waiting", "d": "queued"}


def test_jobs_that_wait_for_one_that_failed_stay() -> None:
    """So do the jobs that wait for these, even if the interruption cancelled them first."""
    failed = ended("f", JobState.FAILED, Reason(Why.EXITED, code=1))
    herd = [
        failed,
        cancelled("a"),
        cancelled("b", "a", "f", why=Why.DEPENDENCY_FAILED),
        cancelled("c", "b", why=Why.SUPERVISOR_LOST),
        cancelled("d", "f", why=Why.DEPENDENCY_FAILED),
    ]

    assert states(continue_jobs(herd)) == {"a": "queued"}


def test_a_job_whose_need_is_not_known_goes_on() -> None:
    """The record of its dependency was removed: that job was done."""
    assert states(continue_jobs([cancelled("a", "gone")])) == {"a": "queued"}


def test_a_circle_of_cancelled_jobs_ends() -> None:
    """No content of a store makes this run forever."""
    circle = [
        cancelled("a", "b", why=Why.DEPENDENCY_FAILED),
        cancelled("b", "a", why=Why.DEPENDENCY_FAILED),
    ]

    assert continue_jobs(circle) == []


def test_a_job_that_waits_for_its_user_is_tried_again() -> None:
    """The branches may merge now. Jobs after it that were interrupted wait for it again, and jobs
    that were already waiting for it still do.
    """
    conflict = Reason(Why.MERGE_CONFLICT, files="x")
    herd = [
        done("a"),
        ended("b", JobState.WAITING, conflict, after=("a",)),
        ended("c", JobState.WAITING, Reason(Why.SUBMITTED), after=("b",)),
        cancelled("d", "b"),
        cancelled("e", "c"),
    ]
    again = continue_jobs(herd)

    assert states(again) == {"b": "queued", "d": "waiting", "e": "waiting"}
    assert again[0].reason == Reason(Why.CONTINUED, after="merge_conflict")


def test_a_job_that_is_done_does_not_hide_one_that_was_cut_off() -> None:
    """All dependencies of a job are checked."""
    herd = [done("a"), cancelled("b"), cancelled("c", "b", "a", why=Why.DEPENDENCY_FAILED)]

    assert states(continue_jobs(herd)) == {"b": "queued", "c": "waiting"}
