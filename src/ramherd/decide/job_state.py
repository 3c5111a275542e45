"""The first state of a job, its state after a run, and the states of the jobs that wait for it."""

from collections.abc import Iterator, Mapping, Sequence

from ramherd.core.agent_task import FAIL
from ramherd.core.model import Job, JobState, JobStatus, Reason, RunEnd, Settle, Suspicion, Why
from ramherd.core.policies import Policy
from ramherd.core.record import replace
from ramherd.decide.back_off import back_off_s
from ramherd.decide.start_pause import explain_start_at
from ramherd.decide.suspects import DEATHS, after_death

# Ends caused by the job itself: they use up `retries`.
OWN_FAILURES = (RunEnd.FAILED, RunEnd.TIMEOUT, RunEnd.LIMIT_KILL)
FINAL = {RunEnd.DONE: JobState.DONE, RunEnd.CANCELLED: JobState.CANCELLED}
# Ends that interrupt a run: the next run resumes its work, if possible.
STOPPED = (RunEnd.PREEMPTED, RunEnd.RECYCLED, RunEnd.LOST)
# Ends that show that the run did not kill the keeper: its job is no longer suspected.
BY_ITSELF = (*OWN_FAILURES, RunEnd.DONE, RunEnd.OOM_KILL, RunEnd.HEAP_EXHAUSTED)
# The API has stopped serving the account.
REFUSED = (Why.USAGE_LIMIT, Why.NO_ACCESS)
# Ends after which another try cannot succeed.
HOPELESS = (Why.TOO_BIG, Why.OUTGREW_BUDGET, Why.COST)
# Ends that count neither as a failure nor as a loss.
FREE = (Why.COST_SHARE, Why.WARM_GONE, Why.CANNOT_PREPARE)
# Ends that leave an agent's session intact: the next run resumes it.
SESSION_LIVES = (RunEnd.OOM_KILL, RunEnd.HEAP_EXHAUSTED)
SESSION_WAITS = (Why.OVERLOAD, Why.SIGNALLED, Why.COST_SHARE)


def first_status(job: Job, at_s: float = 0.0) -> JobStatus:
    """The status of a job that was just submitted."""
    state = JobState.WAITING if job.after else JobState.QUEUED
    reason = Reason(Why.SUBMITTED)
    if job.start_at_s is not None:
        reason = explain_start_at(job.start_at_s)
    return JobStatus(job, state, reason, queued_s=at_s)


def after_run(
    status: JobStatus,
    end: RunEnd,
    reason: Reason,
    *,
    at_s: float,
    policy: Policy,
    hit_bytes: int = 0,
) -> JobStatus:
    """The job's next status. A run that is lost through no fault of the job costs no retry. The job
    of a run that was preempted at its grant `hit_bytes` starts again when more than that is free.
    """
    if reason.why in DEATHS:  # no retry, no back-off
        return after_death(status, reason, policy)
    if end in BY_ITSELF:
        status = replace(status, suspicion=Suspicion())
    status = replace(status, queued_s=at_s, interrupted=goes_on(status, end, reason))
    if reason.why is Why.OVERLOAD:
        return after_overload(status, reason, at_s=at_s, policy=policy)
    status = replace(status, overloads=0)
    if end in FINAL or reason.why in HOPELESS or is_unserved(status.job, reason):
        return replace(status, state=FINAL.get(end, JobState.FAILED), reason=reason)
    if end in (RunEnd.PREEMPTED, RunEnd.RECYCLED) or reason.why in FREE:
        seen = max(status.seen_bytes, hit_bytes)
        stops = status.stops + (end is RunEnd.PREEMPTED)
        return replace(status, state=JobState.QUEUED, reason=reason, seen_bytes=seen, stops=stops)
    if end in OWN_FAILURES:
        return after_failure(status, reason, at_s=at_s, policy=policy)
    lost = status.lost + 1
    state = JobState.QUEUED if lost < policy.max_lost else JobState.FAILED
    not_before_s = at_s + back_off_s(lost, policy.retry_first_s, policy.retry_max_s)
    return replace(status, state=state, reason=reason, lost=lost, not_before_s=not_before_s)


def is_unserved(job: Job, reason: Reason) -> bool:
    """Whether the API has stopped serving the job, and `on_limit` is to fail."""
    return reason.why in REFUSED and job.brief is not None and job.brief.on_limit == FAIL


def goes_on(status: JobStatus, end: RunEnd, reason: Reason) -> bool:
    """Whether the next run resumes the work of this one. The session of an agent also survives a
    kill of its process; a session in which the agent gave up, or took too long, is not resumed.
    """
    if reason.why is Why.SESSION_LOST:
        return False
    if reason.why is Why.INTERRUPTED:  # `ramherd run --resume` resumes it
        return True
    if reason.why in (Why.WARM_GONE, Why.CANNOT_PREPARE):
        return status.interrupted
    # A run that never started leaves the work of the run before it to be resumed.
    if end in STOPPED or (reason.why is Why.NOT_STARTED and status.interrupted):
        return True
    lives = end in SESSION_LIVES or reason.why in SESSION_WAITS
    return status.job.brief is not None and lives


def after_overload(status: JobStatus, reason: Reason, *, at_s: float, policy: Policy) -> JobStatus:
    """A busy API is no failure of the job: the job waits, longer each time, and then resumes."""
    times = status.overloads + 1
    if times > policy.max_overloads:
        return replace(status, state=JobState.FAILED, reason=reason, overloads=times)
    delay = back_off_s(times, policy.overload_first_s, policy.overload_max_s)
    return replace(
        status, state=JobState.QUEUED, reason=reason, overloads=times, not_before_s=at_s + delay
    )


def after_failure(status: JobStatus, reason: Reason, *, at_s: float, policy: Policy) -> JobStatus:
    failures = status.failures + 1
    if failures > status.job.retries:
        return replace(status, state=JobState.FAILED, reason=reason, failures=failures)
    delay = back_off_s(failures, policy.retry_first_s, policy.retry_max_s)
    again = Reason(
        Why.RETRY,
        **reason.numbers,
        after=reason.why.value,
        failures=failures,
        retries=status.job.retries,
        delay_s=delay,
    )
    return replace(
        status, state=JobState.QUEUED, reason=again, failures=failures, not_before_s=at_s + delay
    )


def explain_lost_owner(pid: int) -> Reason:
    """The reason of a job that has not ended, while the ramherd that ran it is dead and its end is
    not recorded yet.
    """
    return Reason(Why.OWNER_LOST, pid=pid)


def next_dependants(
    ended: JobStatus, dependants: Sequence[JobStatus], states: Mapping[str, JobState]
) -> Iterator[Settle]:
    """Jobs with `ended` in their `after`: they are queued when the last of their dependencies is
    done, and cancelled as soon as one failed. `states` is by name.
    """
    for status in dependants:
        if status.state is not JobState.WAITING:
            continue
        if ended.state is not JobState.DONE:
            reason = Reason(
                Why.DEPENDENCY_FAILED, dependency=ended.job.name, state=ended.state.value
            )
            yield Settle(status.job.id, JobState.CANCELLED, reason)
        elif all(states[name] is JobState.DONE for name in status.job.after):
            reason = Reason(Why.DEPENDENCY_DONE, dependency=ended.job.name)
            yield Settle(status.job.id, JobState.QUEUED, reason)
