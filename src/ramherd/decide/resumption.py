"""Which jobs of a herd resume after its `ramherd run` was interrupted or died."""

from collections.abc import Collection, Sequence

from ramherd.core.model import JobState, JobStatus, Reason, Why
from ramherd.core.record import replace
from ramherd.decide.job_bases import is_blocked

# An account without access ends the herd of a `ramherd run` in which no other job is left.
INTERRUPTIONS = (Why.INTERRUPTED, Why.SUPERVISOR_LOST, Why.NO_ACCESS)


def continue_jobs(
    statuses: Sequence[JobStatus], unfinished: Collection[str] = ()
) -> list[JobStatus]:
    """The new status of each job that resumes, from all jobs of a herd that has ended. Jobs that
    are done stay done. Jobs that failed or were cancelled for another reason stay as they are, and
    so do all jobs that wait for them. `unfinished` names jobs whose worktrees are not finished;
    their dependents wait for that.
    """
    by_name = {status.job.name: status for status in statuses}
    chosen = {name: status for name, status in by_name.items() if is_cut_off(status, by_name)}
    while hopeless := [name for name, one in chosen.items() if is_hopeless(one, by_name, chosen)]:
        for name in hopeless:
            del chosen[name]
    return [continue_job(status, by_name, unfinished) for status in chosen.values()]


def is_cut_off(status: JobStatus, by_name: dict[str, JobStatus]) -> bool:
    """Whether the interruption ended this job, or a job that it waited for. Also true for a job
    that waits for its user, who may have resolved the problem.
    """
    if is_blocked(status):
        return True
    todo, seen = [status], set[str]()
    while todo:
        one = todo.pop()
        if one.job.name in seen or one.state is not JobState.CANCELLED:
            continue
        seen.add(one.job.name)
        if one.reason.why in INTERRUPTIONS:
            return True
        if one.reason.why is Why.DEPENDENCY_FAILED:
            todo += [by_name[name] for name in one.job.after if name in by_name]
    return False


def is_hopeless(
    status: JobStatus, by_name: dict[str, JobStatus], chosen: dict[str, JobStatus]
) -> bool:
    """Whether a job that this one waits for is not done and does not resume. A waiting job does
    resume, or its user decides about it.
    """
    ended = (by_name[name] for name in status.job.after if name in by_name and name not in chosen)
    return any(one.state.is_final and one.state is not JobState.DONE for one in ended)


def continue_job(
    status: JobStatus, by_name: dict[str, JobStatus], unfinished: Collection[str]
) -> JobStatus:
    needs = [by_name[name] for name in status.job.after if name in by_name]
    waits = any(one.state is not JobState.DONE or one.job.name in unfinished for one in needs)
    state = JobState.WAITING if waits else JobState.QUEUED
    return replace(status, state=state, reason=explain_continuation(status.reason))


def explain_continuation(ended: Reason) -> Reason:
    """`ended` is the reason why the job was cancelled."""
    return Reason(Why.CONTINUED, after=ended.why.value)
