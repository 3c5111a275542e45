"""When `on_done` is due, and its environment variables."""

import pytest

from ramherd.core.model import JobState, JobStatus, Reason, Why
from ramherd.decide.end_commands import describe_herd_end, describe_job_end, is_on_done_due
from support.make import job

WITH = job("a", on_done=("true",))


@pytest.mark.parametrize("state", [JobState.DONE, JobState.FAILED, JobState.CANCELLED])
def test_it_is_due_after_the_end_of_a_job_that_ran(state: JobState) -> None:
    """However the job ended; not for a job without the key, nor for a job that never ran."""
    ended = Reason(Why.EXITED)

    assert is_on_done_due(JobStatus(WITH, state, ended, attempts=1))
    assert not is_on_done_due(JobStatus(WITH, state, ended, attempts=0))
    assert not is_on_done_due(JobStatus(job("b"), state, ended, attempts=1))


@pytest.mark.parametrize("why", [Why.INTERRUPTED, Why.SUPERVISOR_LOST])
def test_a_job_that_can_go_on_has_not_ended(why: Why) -> None:
    """The command runs once, when `run --resume` has finished the job."""
    assert not is_on_done_due(JobStatus(WITH, JobState.CANCELLED, Reason(why), attempts=1))


@pytest.mark.parametrize("state", [JobState.QUEUED, JobState.RUNNING, JobState.WAITING])
def test_it_is_not_due_before_the_end(state: JobState) -> None:
    """The end of a preempted run is not the end of its job."""
    assert not is_on_done_due(JobStatus(WITH, state, Reason(Why.DEBT), attempts=1))


def test_the_command_of_a_job_is_told_its_end() -> None:
    """The variables describe the last run; unknown values are empty."""
    runs = [{"end": "failed", "exit_code": 1}, {"end": "done", "exit_code": 0}]
    shown = {"id": "I", "name": "n", "herd": "H", "state": "done", "runs": runs, "branch": "b"}

    assert describe_job_end(shown) == {
        "RAMHERD_JOB": "I", "RAMHERD_NAME": "n", "RAMHERD_HERD": "H", "RAMHERD_STATE": "done",
        "RAMHERD_END": "done", "RAMHERD_EXIT_CODE": "0", "RAMHERD_BRANCH": "b",
        "RAMHERD_WORKTREE_DIR": "",
    }  # fmt: skip
    never_ran = describe_job_end({**shown, "runs": [], "worktree": "/w", "branch": None})
    assert (never_ran["RAMHERD_END"], never_ran["RAMHERD_EXIT_CODE"]) == ("", "")
    assert (never_ran["RAMHERD_BRANCH"], never_ran["RAMHERD_WORKTREE_DIR"]) == ("", "/w")


@pytest.mark.parametrize(
    ("counts", "state"), [({"done": 2}, "done"), ({"done": 1, "failed": 1}, "failed"), ({}, "done")]
)
def test_the_command_of_a_herd_is_told_its_end(counts: dict[str, int], state: str) -> None:
    """The state is `done` if all jobs are done."""
    told = describe_herd_end({"herd": "H", "counts": counts}, 1)

    assert told == {
        "RAMHERD_HERD": "H", "RAMHERD_STATE": state, "RAMHERD_EXIT_CODE": "1",
    }  # fmt: skip
