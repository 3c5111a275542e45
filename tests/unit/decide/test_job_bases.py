"""Jobs that start from the branches of other jobs."""

from dataclasses import replace

from ramherd.core.agent_task import MergedBase
from ramherd.core.model import Brief, Job, JobState, Reason, Tree, Why
from ramherd.decide.job_bases import (
    after_merge,
    explain_stuck_herd,
    has_same_base,
    is_blocked,
    is_stuck,
    may_merge,
    name_files,
    needs_base,
)
from support.make import job, status

TREE = Tree("/repo", "c0ffee", "/trees/c", "ramherd/c", "part", parents=("id-a", "id-b"))
CONFLICT = MergedBase(
    ours="a", theirs="b", path="/trees/my a", branch="ramherd/b", files=("x.py", "y.py")
)


def successor(tree: Tree | None = TREE, name: str = "my c") -> Job:
    return job(name, brief=Brief("claude", "go on", tree=tree))


def test_only_a_job_with_branches_to_merge_needs_a_base() -> None:
    """A command, an agent without a worktree, and a job whose base exists do not need one."""
    assert needs_base(successor())
    assert not needs_base(successor(replace(TREE, parents=())))
    assert not needs_base(successor(None))
    assert not needs_base(job("a"))


def test_branches_are_merged_when_all_of_them_are_finished() -> None:
    """Uncommitted changes would be missing."""
    assert may_merge(successor(), {"id-c"})
    assert not may_merge(successor(), {"id-c", "id-b"})
    assert not may_merge(job("a"), ())


def test_jobs_after_the_same_jobs_start_from_the_same_commit() -> None:
    """In the same order. An existing base is not made again."""
    other = successor(replace(TREE, path="/trees/d", branch="ramherd/d"), name="d")

    assert has_same_base(successor(), other)
    assert not has_same_base(successor(), successor(replace(TREE, parents=("id-b", "id-a"))))
    made = successor(replace(TREE, parents=()))
    assert not has_same_base(made, made)
    assert not has_same_base(successor(), made)
    assert not has_same_base(made, successor())


def test_a_merge_gives_the_worktree_its_commit_once() -> None:
    """The job keeps its state, and its base is not merged again."""
    before = status(successor())
    after = after_merge(before, MergedBase("beef"))

    assert after == replace(before, job=successor(replace(TREE, commit="beef", parents=())))
    assert not needs_base(after.job)


def test_a_conflict_makes_the_job_wait_for_its_user() -> None:
    """The reason has the files, and the commands that resolve the conflict, quoted for a shell."""
    after = after_merge(status(successor()), CONFLICT)

    assert (after.state, after.job) == (JobState.WAITING, successor())
    assert after.reason == Reason(
        Why.MERGE_CONFLICT, ours="a", theirs="b", files="x.py, y.py", conflicts=2,
        merge="git -C '/trees/my a' merge ramherd/b", retry="ramherd retry 'my c'",
    )  # fmt: skip
    assert is_blocked(after)


def test_a_merge_that_fails_makes_the_job_wait_too() -> None:
    """The reason has git's message."""
    after = after_merge(status(successor()), MergedBase(error="unrelated histories"))

    assert after.state is JobState.WAITING
    assert after.reason == Reason(
        Why.CANNOT_MERGE, what="unrelated histories", retry="ramherd retry 'my c'"
    )
    assert is_blocked(after)


def test_some_files_are_named_and_the_rest_counted() -> None:
    """A reason stays on one line."""
    assert name_files(("a", "b", "c", "d", "e")) == "a, b, c, d, e"
    assert name_files(("a", "b", "c", "d", "e", "f")) == "a, b, c, d, e and 1 more"
    assert name_files(("a", "b", "c", "d", "e", "f", "g")) == "a, b, c, d, e and 2 more"


def test_a_job_is_blocked_only_while_it_waits() -> None:
    """A retry queues it again."""
    blocked = after_merge(status(successor()), CONFLICT)

    assert not is_blocked(replace(blocked, state=JobState.QUEUED))
    assert not is_blocked(status("a", JobState.WAITING))


def test_a_job_is_stuck_until_its_user_or_another_job_goes_on() -> None:
    """A job whose dependencies have all ended is about to start."""
    waiting = status("c", JobState.WAITING)
    blocked = after_merge(status(successor()), CONFLICT)

    assert is_stuck(blocked, {"a": JobState.DONE, "b": JobState.DONE})
    assert is_stuck(waiting, {"a": JobState.DONE, "b": JobState.WAITING})
    assert not is_stuck(waiting, {"a": JobState.DONE, "b": JobState.FAILED})


def test_a_stuck_herd_is_explained_by_its_jobs() -> None:
    """The reason counts the jobs that ended and those that wait."""
    assert explain_stuck_herd({"done": 2, "waiting": 3, "queued": 0}) == Reason(
        Why.HERD_STUCK, done=2, failed=0, cancelled=0, waiting=3
    )
