"""Worktrees in which nothing was changed are removed, with their branches."""

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from ramherd.act.worktrees.git import GitFailed, read_git, run_git
from ramherd.core.model import Job, Tree


def remove_unchanged(jobs: Iterable[Job]) -> dict[str, Tree]:
    """By job, the worktrees that stay; those in which nothing was changed are removed."""
    trees = {job.id: job.brief.tree for job in jobs if job.brief is not None}
    return {job: tree for job, tree in trees.items() if tree is not None and is_kept(tree)}


def is_kept(tree: Tree) -> bool:
    """One that stays is also there for the job's next try."""
    if Path(tree.path).exists() and is_changed(tree):
        return True
    with suppress(GitFailed):
        run_git(tree.repository, "worktree", "remove", "--force", tree.path)
    if read_git(tree.repository, "rev-parse", "--verify", "-q", tree.branch) == tree.commit:
        with suppress(GitFailed):
            run_git(tree.repository, "branch", "-D", tree.branch)
    return False


def is_changed(tree: Tree) -> bool:
    """What git cannot tell counts as changed."""
    try:
        tips = run_git(tree.path, "rev-parse", "HEAD", tree.branch).split()
        return tips != [tree.commit] * 2 or bool(run_git(tree.path, "status", "--porcelain"))
    except GitFailed:
        return True
