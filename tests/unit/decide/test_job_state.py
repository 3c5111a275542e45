"""The state of a job after the end of a run."""

from dataclasses import replace

import pytest

from ramherd.core.model import Brief, JobState, JobStatus, Reason, RunEnd, Settle, Why
from ramherd.decide.job_state import (
    HOPELESS,
    OWN_FAILURES,
    after_run,
    explain_lost_owner,
    first_status,
    next_dependants,
)
from support.make import job, policy, status

WHY = Reason(Why.EXITED, code=1)
LOSSES = (RunEnd.LOST, RunEnd.OOM_KILL, RunEnd.HEAP_EXHAUSTED)


def after(before: JobStatus, end: RunEnd) -> JobStatus:
    return after_run(before, end, WHY, at_s=100.0, policy=policy())


def test_a_submitted_job_is_queued_unless_it_waits_for_others() -> None:
    """Its wait begins when it is submitted."""
    free, bound = job("a"), job("b", after=("a",))

    submitted = Reason(Why.SUBMITTED)
    assert first_status(free, 7.0) == JobStatus(free, JobState.QUEUED, submitted, queued_s=7.0)
    assert first_status(bound) == JobStatus(bound, JobState.WAITING, submitted, queued_s=0.0)


@pytest.mark.parametrize(
    ("end", "state"),
    [(RunEnd.DONE, JobState.DONE), (RunEnd.CANCELLED, JobState.CANCELLED)],
)
def test_an_end_that_is_final(end: RunEnd, state: JobState) -> None:
    """Done and cancelled are final, with the run's reason, even if retries are left."""
    before = status(job(retries=5), JobState.RUNNING, attempts=1)

    found = after(before, end)

    assert (found.state, found.reason, found.failures) == (state, WHY, 0)


@pytest.mark.parametrize("end", OWN_FAILURES)
def test_a_job_that_fails_by_itself_is_tried_again(end: RunEnd) -> None:
    """While it has retries, after a back-off; the reason has all the numbers."""
    found = after(status(job(retries=2), JobState.RUNNING), end)

    assert (found.state, found.failures, found.not_before_s) == (JobState.QUEUED, 1, 101.0)
    assert found.reason == Reason(
        Why.RETRY, code=1, after="exited", failures=1, retries=2, delay_s=1.0
    )


@pytest.mark.parametrize("end", OWN_FAILURES)
def test_without_retries_left_a_job_has_failed(end: RunEnd) -> None:
    """With the reason of its last run."""
    found = after(status(job(retries=2), JobState.RUNNING, failures=2), end)

    assert (found.state, found.reason, found.failures) == (JobState.FAILED, WHY, 3)


def test_the_back_off_doubles_up_to_its_cap() -> None:
    """1, 2, 4 ... 60 seconds, from the end of the run."""
    delays = [
        after(status(job(retries=99), failures=failures), RunEnd.FAILED).not_before_s - 100.0
        for failures in range(9)
    ]

    assert delays == [1, 2, 4, 8, 16, 32, 60, 60, 60]


def test_the_back_off_holds_for_any_number_of_retries() -> None:
    """`retries = 5000` means a thousand failures in 17 hours, which must not end the herd."""
    found = after(status(job(retries=5000), failures=1024), RunEnd.FAILED)

    assert found.not_before_s == 160.0


@pytest.mark.parametrize("end", LOSSES)
def test_a_run_lost_through_no_fault_of_its_own_costs_no_retry(end: RunEnd) -> None:
    """The job is queued again after a back-off, and the run is counted as lost."""
    found = after(status(job(retries=0), JobState.RUNNING), end)

    assert (found.state, found.reason) == (JobState.QUEUED, WHY)
    assert (found.failures, found.lost, found.not_before_s) == (0, 1, 101.0)


@pytest.mark.parametrize("end", LOSSES)
def test_a_job_that_keeps_being_lost_has_failed(end: RunEnd) -> None:
    """It fails after `max_lost` lost runs; otherwise it would never end."""
    found = after(status(job(retries=9), JobState.RUNNING, lost=2), end)

    assert (found.state, found.lost) == (JobState.FAILED, 3)


def test_a_run_that_the_service_left_when_it_died_counts_for_nothing() -> None:
    """However often it happens: the job is queued at once, and its next run resumes."""
    before = status(job(retries=0), JobState.HELD, lost=7, failures=1, queued_s=3.0)
    reason = Reason(Why.SUPERVISOR_LOST)

    found = after_run(before, RunEnd.LOST, reason, at_s=100.0, policy=policy())

    assert found == replace(before, state=JobState.QUEUED, reason=reason, interrupted=True)


def test_the_back_off_of_a_lost_run_doubles_as_well() -> None:
    """A short problem of the machine is over by then."""
    lost = [status(lost=lost, failures=5) for lost in range(3)]

    delays = [after_lost(one, max_lost=9).not_before_s - 100.0 for one in lost]

    assert delays == [1, 2, 4]


def after_lost(before: JobStatus, **rules: int) -> JobStatus:
    return after_run(before, RunEnd.LOST, WHY, at_s=100.0, policy=policy(**rules))


def test_a_preempted_job_goes_back_as_if_it_had_never_run() -> None:
    """It is neither a failure nor a loss."""
    found = after(status(job(), JobState.RUNNING, attempts=4, failures=1, lost=2), RunEnd.PREEMPTED)

    assert (found.state, found.reason) == (JobState.QUEUED, WHY)
    assert (found.attempts, found.failures, found.lost) == (4, 1, 2)
    assert (found.not_before_s, found.seen_bytes) == (0.0, 0)


@pytest.mark.parametrize(("before", "hit", "seen"), [(0, 3, 3), (5, 3, 5), (3, 5, 5), (3, 0, 3)])
def test_a_preempted_job_comes_back_with_what_it_was_seen_to_need(
    before: int, hit: int, seen: int
) -> None:
    """The largest grant at which a run of it was held, but at least its `memory`."""
    found = after_run(
        status(job(memory=4), JobState.RUNNING, seen_bytes=before), RunEnd.PREEMPTED, WHY,
        at_s=100.0, policy=policy(), hit_bytes=hit,
    )  # fmt: skip

    assert found.seen_bytes == seen
    assert found.need_bytes == max(4, seen)


def test_what_a_run_held_that_failed_is_not_what_its_job_needs() -> None:
    """A leak is not a need: only grants of runs that were stopped to make room count."""
    found = after_run(
        status(job(memory=4, retries=1), JobState.RUNNING), RunEnd.FAILED, WHY,
        at_s=100.0, policy=policy(), hit_bytes=99,
    )  # fmt: skip

    assert (found.seen_bytes, found.need_bytes) == (0, 4)


@pytest.mark.parametrize("end", [RunEnd.PREEMPTED, RunEnd.RECYCLED, RunEnd.LOST])
def test_who_was_cut_off_goes_on_from_there(end: RunEnd) -> None:
    """The run made room, leaked, or lost its keeper; a job that failed starts over."""
    assert after(status(job(), JobState.HELD), end).interrupted
    assert not after(status(job(retries=1), JobState.RUNNING), RunEnd.FAILED).interrupted


def test_what_the_user_interrupted_can_go_on() -> None:
    """Cancelled by Ctrl-C; a job cancelled by its name starts over if it is retried."""
    for why, goes_on in ((Why.INTERRUPTED, True), (Why.ASKED, False)):
        found = after_run(
            status(job(), JobState.RUNNING), RunEnd.CANCELLED, Reason(why),
            at_s=5.0, policy=policy(),
        )  # fmt: skip
        assert (found.state, found.interrupted) == (JobState.CANCELLED, goes_on)


def test_a_start_that_failed_is_still_to_go_on() -> None:
    """The run that was to resume never began: the next run resumes instead."""
    cut_off = replace(status(job(), JobState.RUNNING), interrupted=True)
    reason = Reason(Why.NOT_STARTED, errno=12, what="no memory")

    found = after_run(cut_off, RunEnd.LOST, reason, at_s=1.0, policy=policy())

    assert found.interrupted


@pytest.mark.parametrize("interrupted", [True, False])
def test_a_run_that_we_could_not_prepare_costs_nothing(interrupted: bool) -> None:
    """It costs neither a retry nor a loss, however often; the next run resumes at that point."""
    before = status(job(), JobState.RUNNING, interrupted=interrupted, lost=2)
    reason = Reason(Why.CANNOT_PREPARE, what="no space")

    found = after_run(before, RunEnd.LOST, reason, at_s=1.0, policy=policy())

    assert (found.state, found.reason) == (JobState.QUEUED, reason)
    assert (found.failures, found.lost, found.not_before_s) == (0, 2, 0.0)
    assert found.interrupted is interrupted


@pytest.mark.parametrize("why", HOPELESS)
def test_who_can_never_fit_is_not_tried_again(why: Why) -> None:
    """Whatever retries it has, and for whatever reason it was stopped."""
    for end in (RunEnd.FAILED, RunEnd.PREEMPTED):
        found = after_run(
            status(job(retries=9), JobState.HELD), end, Reason(why), at_s=1.0, policy=policy()
        )
        assert (found.state, found.reason.why) == (JobState.FAILED, why)


def test_a_job_that_comes_back_waits_anew() -> None:
    """It keeps the age of its first start: the oldest stays the oldest until it is done."""
    found = after(status(job(), JobState.HELD, queued_s=3.0, first_s=4.0), RunEnd.PREEMPTED)

    assert (found.queued_s, found.first_s) == (100.0, 4.0)


@pytest.mark.parametrize("end", RunEnd)
def test_every_end_has_an_outcome(end: RunEnd) -> None:
    """A job is never left running when its run is over."""
    assert after(status(state=JobState.RUNNING), end).state is not JobState.RUNNING


def settled(ended: JobState, others: dict[str, JobState], state: JobState) -> list[Settle]:
    """The actions for a job after `a` and these other jobs when `a` ends in this state."""
    waits = status(job("z", after=("a", *others)), state)
    return list(next_dependants(status("a", ended), [waits], {"a": ended, **others}))


def test_a_job_is_queued_when_the_last_it_waits_for_is_done() -> None:
    """It waits until then."""
    done, running = JobState.DONE, JobState.RUNNING

    assert settled(done, {"b": running}, JobState.WAITING) == []
    assert settled(done, {"b": done}, JobState.WAITING) == [
        Settle("id-z", JobState.QUEUED, Reason(Why.DEPENDENCY_DONE, dependency="a"))
    ]


@pytest.mark.parametrize("ended", [JobState.FAILED, JobState.CANCELLED])
def test_a_failed_dependency_cancels_its_dependants_and_says_so(ended: JobState) -> None:
    """At once, whatever the state of the other dependencies."""
    reason = Reason(Why.DEPENDENCY_FAILED, dependency="a", state=ended.value)

    assert settled(ended, {"b": JobState.RUNNING}, JobState.WAITING) == [
        Settle("id-z", JobState.CANCELLED, reason)
    ]


@pytest.mark.parametrize("state", [state for state in JobState if state is not JobState.WAITING])
def test_only_who_waits_is_settled(state: JobState) -> None:
    """Another dependency may have cancelled the job already."""
    assert settled(JobState.DONE, {}, state) == settled(JobState.FAILED, {}, state) == []


BRIEFED = job(retries=1, brief=Brief("claude", "do it"))
BUSY = Reason(Why.OVERLOAD, what="529")


def test_a_busy_api_costs_no_retry() -> None:
    """The job waits longer each time, resumes its session, and finally gives up."""
    rules = policy(max_overloads=3)
    at, delays = status(BRIEFED, JobState.RUNNING), []
    while at.state is not JobState.FAILED:
        at = after_run(at, RunEnd.FAILED, BUSY, at_s=100.0, policy=rules)
        delays.append(at.not_before_s - 100.0)

    assert delays[:3] == [5, 10, 20]
    assert len(delays) == 4
    assert (at.failures, at.interrupted, at.reason) == (0, True, BUSY)


def test_a_share_that_is_spent_costs_no_retry() -> None:
    """The herd may still have money for the job."""
    before = status(job(brief=Brief("claude", "do it")), JobState.RUNNING)
    spent = Reason(Why.COST_SHARE, cost_usd=0.5)
    found = after_run(before, RunEnd.FAILED, spent, at_s=1.0, policy=policy())

    assert (found.state, found.failures, found.lost) == (JobState.QUEUED, 0, 0)
    assert found.reason == spent


def test_overloads_are_counted_in_a_row() -> None:
    """A run with another end shows that the API is no longer too busy."""
    before = status(BRIEFED, JobState.RUNNING, overloads=2)

    assert after(before, RunEnd.PREEMPTED).overloads == 0


@pytest.mark.parametrize(
    ("end", "why", "resumes"),
    [
        (RunEnd.OOM_KILL, Why.OOM_KILL, True),
        (RunEnd.HEAP_EXHAUSTED, Why.HEAP_EXHAUSTED, True),
        (RunEnd.FAILED, Why.SIGNALLED, True),
        (RunEnd.FAILED, Why.COST_SHARE, True),
        (RunEnd.LOST, Why.SESSION_LOST, False),
        (RunEnd.FAILED, Why.GAVE_UP, False),
        (RunEnd.TIMEOUT, Why.TIMEOUT, False),
    ],
)
def test_an_agents_session_outlives_its_process(end: RunEnd, why: Why, resumes: bool) -> None:
    """Unless the session itself failed; a command always starts over."""
    for of, goes_on in ((BRIEFED, resumes), (job(retries=1), False)):
        found = after_run(status(of), end, Reason(why), at_s=1.0, policy=policy())

        assert (found.state, found.interrupted) == (JobState.QUEUED, goes_on)


def test_a_busy_api_puts_the_job_back_until_it_gives_up() -> None:
    """The reason has the API's error, and how often it came in a row."""
    before = status(BRIEFED, JobState.RUNNING, overloads=1)

    for most, state in ((2, JobState.QUEUED), (1, JobState.FAILED)):
        found = after_run(before, RunEnd.FAILED, BUSY, at_s=1.0, policy=policy(max_overloads=most))
        assert (found.state, found.reason, found.overloads) == (state, BUSY, 2)


@pytest.mark.parametrize(
    ("interrupted", "why", "goes_on"),
    [
        (True, Why.NOT_STARTED, True),
        (False, Why.NOT_STARTED, False),
        (True, Why.EXITED, False),
    ],
)
def test_only_a_start_that_failed_keeps_the_place_of_the_run_before(
    interrupted: bool, why: Why, goes_on: bool
) -> None:
    """A run that began and failed is over: the next run starts over."""
    before = status(job(retries=1), JobState.RUNNING, interrupted=interrupted)
    found = after_run(before, RunEnd.FAILED, Reason(why), at_s=1.0, policy=policy())

    assert found.interrupted is goes_on


def test_a_job_whose_ramherd_is_gone_says_which_one_it_was() -> None:
    """The reason is shown until the next start has recorded the end."""
    assert explain_lost_owner(7) == Reason(Why.OWNER_LOST, pid=7)


def test_each_dependant_is_looked_at_by_itself() -> None:
    """A cancelled dependant does not hide the next one."""
    gone = status(job("y", after=("a",)), JobState.CANCELLED)
    waits = status(job("z", after=("a",)), JobState.WAITING)
    done = {"a": JobState.DONE}

    found = next_dependants(status("a", JobState.DONE), [gone, waits], done)

    assert [settle.job for settle in found] == ["id-z"]
