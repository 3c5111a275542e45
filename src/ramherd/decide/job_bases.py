"""Jobs that start from the branches of other jobs: such a job may start once the branches are
merged, and waits for the user if they cannot be merged.
"""

import shlex
from collections.abc import Collection, Mapping, Sequence

from ramherd.core.agent_task import MergedBase
from ramherd.core.model import Job, JobState, JobStatus, Reason, Why
from ramherd.core.record import replace

# The number of conflicting files that are named.
NAMED_FILES = 5
# Reasons of waiting jobs that need an action of the user.
BLOCKED = (Why.MERGE_CONFLICT, Why.CANNOT_MERGE)


def needs_base(job: Job) -> bool:
    """Whether branches that the job starts from are not merged yet."""
    return bool(parents_of(job))


def parents_of(job: Job) -> tuple[str, ...]:
    """The jobs whose branches have to be merged for this job."""
    return () if job.tree is None else job.tree.parents


def may_merge(job: Job, unfinished: Collection[str]) -> bool:
    """Whether all branches that the job starts from are complete. `unfinished` are jobs whose
    worktrees may have uncommitted changes.
    """
    return needs_base(job) and not any(parent in unfinished for parent in parents_of(job))


def has_same_base(job: Job, other: Job) -> bool:
    """Whether both jobs start from the same unmerged branches, in the same order."""
    return needs_base(job) and parents_of(job) == parents_of(other)


def after_merge(status: JobStatus, merged: MergedBase) -> JobStatus:
    """The job is queued with the commit that its worktree starts from, or waits without one."""
    if merged.commit:
        return replace(status, job=with_commit(status.job, merged.commit))
    return replace(status, state=JobState.WAITING, reason=explain_no_base(status.job.name, merged))


def with_commit(job: Job, commit: str) -> Job:
    assert job.brief is not None
    assert job.brief.tree is not None
    tree = replace(job.brief.tree, commit=commit, parents=())
    return replace(job, brief=replace(job.brief, tree=tree))


def explain_no_base(job: str, merged: MergedBase) -> Reason:
    """The reason, with the commands that resolve the conflict."""
    retry = shlex.join(("ramherd", "retry", job))
    if not merged.files:
        return Reason(Why.CANNOT_MERGE, what=merged.error, retry=retry)
    return Reason(
        Why.MERGE_CONFLICT,
        ours=merged.ours,
        theirs=merged.theirs,
        files=name_files(merged.files),
        conflicts=len(merged.files),
        merge=shlex.join(("git", "-C", merged.path, "merge", merged.branch)),
        retry=retry,
    )


def name_files(files: Sequence[str]) -> str:
    more = len(files) - NAMED_FILES
    named = ", ".join(files[:NAMED_FILES])
    return f"{named} and {more} more" if more > 0 else named


def is_blocked(status: JobStatus) -> bool:
    return status.state is JobState.WAITING and status.reason.why in BLOCKED


def is_stuck(status: JobStatus, states: Mapping[str, JobState]) -> bool:
    """Whether a waiting job cannot start until the user acts or another job ends. `states` are the
    states of the jobs that it waits for.
    """
    return is_blocked(status) or not all(state.is_final for state in states.values())


def explain_stuck_herd(counts: Mapping[str, int]) -> Reason:
    """No job of the herd runs or will start: `counts` is the number of jobs by state."""
    states = (JobState.DONE, JobState.FAILED, JobState.CANCELLED, JobState.WAITING)
    return Reason(Why.HERD_STUCK, **{state.value: counts.get(state.value, 0) for state in states})
