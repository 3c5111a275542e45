"""Runs that their API no longer serves, and the next state of their jobs."""

import pytest

from ramherd.core.agent_task import FAIL, NO_ACCESS, ApiRefusal, Brief, Said
from ramherd.core.model import JobState, Reason, RunEnd, Stop, Why
from ramherd.core.record import replace
from ramherd.decide.engine import decide
from ramherd.decide.job_state import after_run, first_status
from ramherd.decide.run_end import judge, stop_without_access
from ramherd.decide.start_pause import explain_start_at
from support.make import exited, job, policy, run, snapshot, status, stopping

AGENT = job("a", brief=Brief("claude", "do it"))
LIMIT = ApiRefusal("5-hour limit", "five_hour", 1300.4)
DENIED = ApiRefusal("401", NO_ACCESS)
LIMITED = Reason(
    Why.USAGE_LIMIT, agent="claude", window="five-hour window", what="5-hour limit", until_at=1300
)
NO_KEY = Reason(Why.NO_ACCESS, agent="claude", what="401")


@pytest.mark.parametrize(
    ("refusal", "reason"),
    [
        (LIMIT, LIMITED),
        (
            ApiRefusal("limit"),
            Reason(Why.USAGE_LIMIT, agent="claude", window="usage limit", what="limit"),
        ),
        (DENIED, NO_KEY),
    ],
)
def test_a_refused_run_is_preempted(refusal: ApiRefusal, reason: Reason) -> None:
    """Whatever its exit status: it is not the job's fault."""
    for code in (0, 1):
        said = Said(failure="You've hit your limit", refusal=refusal)
        assert judge(run(of=AGENT, exit=exited(code), said=said)) == (RunEnd.PREEMPTED, reason)


def test_a_run_that_was_served_after_all() -> None:
    """The result counts."""
    said = Said(result=True, refusal=LIMIT)

    assert judge(run(of=AGENT, exit=exited(0), said=said))[0] is RunEnd.DONE


def test_an_agent_without_access_is_stopped() -> None:
    """It would keep trying for minutes. An agent at a usage limit ends by itself, and so does an
    agent that has given up.
    """
    trying, limited = Said(refusal=DENIED), Said(refusal=LIMIT)
    runs = [
        run("r1", AGENT, said=trying),
        run("r2", AGENT, said=limited),
        run("r3", AGENT, said=Said(failure="401", refusal=DENIED)),
        run("r4", AGENT, said=trying, exit=exited(1)),
        run("r5", AGENT, said=trying, stop=stopping(RunEnd.PREEMPTED)),
        run("r6", AGENT),
        run("r7", AGENT, said=Said()),
    ]

    assert stop_without_access(snapshot(*runs)) == [Stop("r1", RunEnd.PREEMPTED, NO_KEY)]
    assert Stop("r1", RunEnd.PREEMPTED, NO_KEY) in decide(snapshot(runs[0]), policy())


@pytest.mark.parametrize("reason", [LIMITED, NO_KEY])
def test_its_job_is_queued_again(reason: Reason) -> None:
    """It costs no retry, resumes its session, and has no back-off of its own."""
    before = status(AGENT, JobState.RUNNING, overloads=2)
    found = after_run(before, RunEnd.PREEMPTED, reason, at_s=9.0, policy=policy())

    assert (found.state, found.reason, found.interrupted) == (JobState.QUEUED, reason, True)
    assert (found.failures, found.lost, found.overloads, found.not_before_s) == (0, 0, 0, 0.0)


def test_a_job_that_is_not_to_wait_fails() -> None:
    """With `on_limit = "fail"` it fails at once: its retries are for other failures."""
    failing = replace(AGENT, retries=3, brief=Brief("claude", "do it", on_limit=FAIL))
    before = status(failing, JobState.RUNNING)

    assert after_run(
        before, RunEnd.PREEMPTED, LIMITED, at_s=9.0, policy=policy()
    ).state is JobState.FAILED  # fmt: skip
    gone = Reason(Why.GIVES_ROOM, used_bytes=1)
    assert after_run(
        before, RunEnd.PREEMPTED, gone, at_s=9.0, policy=policy()
    ).state is JobState.QUEUED  # fmt: skip


def test_a_job_for_later_says_when() -> None:
    later = first_status(replace(AGENT, start_at_s=99.6), 1.0)

    assert (later.state, later.reason) == (JobState.QUEUED, explain_start_at(99.6))
    assert later.reason == Reason(Why.START_AT, start_at=100)
    assert first_status(AGENT).reason == Reason(Why.SUBMITTED)
