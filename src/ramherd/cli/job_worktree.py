"""The job that a user names, and its worktree, for the verbs that use the work of agents.

They read the store, with and without a service. No process owns a job that has ended, so the state
of its worktree is written to the store directly.
"""

import shlex
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from ramherd.act.worktrees.bases import find_commit
from ramherd.act.worktrees.drop_branch import is_merged
from ramherd.act.worktrees.finishing import finish
from ramherd.act.worktrees.job_branch import BranchGone, FileChange, JobBranch, find_branch, heads
from ramherd.act.worktrees.worktree_process import MOST_S
from ramherd.cli.job_names import find_job
from ramherd.cli.store_reader import open_to_read
from ramherd.config.paths import runtime_dir, runtime_path, state_path
from ramherd.core.errors import UsageError
from ramherd.core.model import Tree
from ramherd.store.connect import open_store
from ramherd.store.herds import StoredJob, is_owned, read_stored_job
from ramherd.store.service_herds import set_worktree
from ramherd.system.lock_file import acquire_lock, is_locked

COUNTS = ("files_changed", "lines_added", "lines_removed")


def read_named_job(name: str, herd: str | None) -> StoredJob:
    with closing(open_to_read()) as store:
        found = read_stored_job(store, find_job(store, name, herd))
    assert found is not None
    return found


def read_ended_job(name: str, herd: str | None) -> StoredJob:
    """Raises UsageError while another process works on the job, or will. A job whose `ramherd run`
    was killed counts as ended.
    """
    with closing(open_to_read()) as store:
        found = read_stored_job(store, find_job(store, name, herd))
        assert found is not None
        is_over = found.state.is_final or not is_owned(store, found.job.id, runtime_path())
    name = shlex.quote(found.job.name)
    if not is_over:
        raise UsageError(
            f"job {found.job.name} has not ended: it is {found.state.value}",
            hint=f"wait for it (ramherd logs -f {name}), or end it (ramherd cancel {name})",
        )
    return found


def tree_of(stored: StoredJob) -> Tree:
    """Raises UsageError for a job without its own worktree."""
    job = stored.job
    if job.brief is None:
        raise UsageError(f"job {job.name} is a command: it has no worktree")
    if job.brief.tree is None:
        raise UsageError(
            f"job {job.name} has no worktree: its agent worked in {job.cwd} itself",
            hint=f"git -C {shlex.quote(job.cwd)} status",
        )
    return job.brief.tree


@contextmanager
def locked_worktree(stored: StoredJob) -> Iterator[None]:
    """Only one verb at a time changes a worktree."""
    lock = acquire_lock(lock_path(stored.job.id), wait=False)
    if lock is None:
        raise explain_lock(stored.job.name)
    try:
        yield
    finally:
        lock.remove()


def check_unlocked(job: str, name: str) -> None:
    if is_locked(lock_path(job)):
        raise explain_lock(name)


def lock_path(job: str) -> str:
    return str(runtime_dir() / "worktrees" / job)


def explain_lock(name: str) -> UsageError:
    return UsageError(
        f"another ramherd merge, drop or attach is working on job {name}",
        hint="try again when it has ended",
    )


def find_job_branch(stored: StoredJob) -> JobBranch:
    """BranchGone explains why the branch is gone, as far as the reason is known."""
    tree = tree_of(stored)
    try:
        return find_branch(stored.job.name, tree)
    except BranchGone as error:
        raise explain_gone(stored, tree, str(error)) from None


def explain_gone(stored: StoredJob, tree: Tree, gone: str) -> BranchGone:
    job, said = stored.job.name, stored.said
    if "session" not in said and "files_changed" not in said:
        return BranchGone(
            f"job {job} has no changes: it is {stored.state.value}, and its agent has not run",
            hint=f"ramherd show {shlex.quote(job)}",
        )
    if not said.get("files_changed"):
        return BranchGone(
            f"job {job} has no changes",
            hint="a worktree in which nothing changed is removed when its job ends",
        )
    if not said.get("branch"):
        merged = f"merged into {said['merged_into']} and " if said.get("merged_into") else ""
        return BranchGone(f"job {job} was {merged}dropped: {gone}")
    lost = f"git -C {shlex.quote(tree.repository)} fsck --lost-found"
    return BranchGone(
        f"{gone}: ramherd did not remove them", hint=f"{lost} lists commits without a branch"
    )


def find_finished(stored: StoredJob) -> JobBranch:
    """The branch with all changes in it: uncommitted changes in the worktree are committed first,
    as at the end of a job.
    """
    find_job_branch(stored)  # raises an error if something is missing, before any change
    finish_worktree(stored)
    return find_job_branch(stored)


def finish_worktree(stored: StoredJob) -> None:
    """Commits the rest, or removes an unchanged worktree. Does nothing for a job without one."""
    brief = stored.job.brief
    if brief is not None and brief.tree is not None and Path(brief.tree.path).exists():
        became = finish(brief.tree, stored.job.name, MOST_S)
        record_worktree(stored, {**became, **choose_kept(stored.said, brief.tree, became)})


def choose_kept(said: Mapping[str, Any], tree: Tree, became: Mapping[str, Any]) -> dict[str, Any]:
    """What stays recorded: the changes of a job that was dropped, if there are no new ones, and of
    a job that was merged, if all of its branch is.
    """
    is_unchanged = not became.get("branch") and not said.get("branch")
    into = said.get("merged_into")
    if is_unchanged or (into and is_merged(tree.repository, find_tip(tree), into)):
        return {key: said[key] for key in (*COUNTS, "merged_into") if key in said}
    return {}


def find_tip(tree: Tree) -> str:
    return find_commit(tree.repository, heads(tree.branch))


def record_worktree(stored: StoredJob, became: Mapping[str, Any]) -> None:
    with closing(open_store(state_path())) as store, store.synced():
        set_worktree(store, stored.job.id, became)


def render_changes(changes: list[FileChange]) -> str:
    """`2 files, +10 -3`"""
    files = "1 file" if len(changes) == 1 else f"{len(changes)} files"
    added, removed = count_lines(changes)
    return f"{files}, +{added} -{removed}"


def count_lines(changes: list[FileChange]) -> tuple[int, int]:
    return sum(one.added or 0 for one in changes), sum(one.removed or 0 for one in changes)


def changes_json(changes: list[FileChange]) -> dict[str, Any]:
    added, removed = count_lines(changes)
    files = [{"path": c.path, "lines_added": c.added, "lines_removed": c.removed} for c in changes]
    return {
        "files_changed": len(changes), "lines_added": added, "lines_removed": removed,
        "files": files,
    }  # fmt: skip
