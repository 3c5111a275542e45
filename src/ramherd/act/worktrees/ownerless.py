"""Worktrees whose job is no longer in the store: they are listed, and removed only if they have no
changes.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from ramherd.act.worktrees import MARK
from ramherd.act.worktrees.finishing import find_process_in
from ramherd.act.worktrees.git import GitFailed, read_git, run_git
from ramherd.act.worktrees.removal import remove_worktree
from ramherd.core.model import Tree
from ramherd.core.record import record


@record
class OwnerlessWorktree:
    """`repository` is "" if it is gone, or if the directory is no longer a worktree."""

    path: str
    repository: str = ""
    branch: str = ""
    is_changed: bool = True


def find_ownerless(folder: Path, has_job: Callable[[str], bool]) -> Iterator[OwnerlessWorktree]:
    """`folder` has a directory for each job, named by its id."""
    if not folder.is_dir():
        return
    with os.scandir(folder) as entries:
        names = sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
    for name in names:
        if not has_job(name):
            yield read_ownerless(str(folder / name))


def read_ownerless(path: str) -> OwnerlessWorktree:
    """A worktree that git cannot read counts as changed; so does one in which a process works."""
    env = {"GIT_CEILING_DIRECTORIES": os.path.dirname(path), "GIT_OPTIONAL_LOCKS": "0"}
    words = ("rev-parse", "--path-format=absolute", "--git-common-dir", "--absolute-git-dir")
    try:
        common, git_dir = run_git(path, *words, env=env).rstrip("\n").split("\n")
        branch = read_git(path, "symbolic-ref", "-q", "--short", "HEAD")
        base = Path(git_dir, MARK).read_text(encoding="utf-8").strip()
        status = run_git(path, "status", "--porcelain", env=env)
        tips = run_git(path, "rev-parse", "HEAD", f"refs/heads/{branch}", env=env).split()
    except (GitFailed, OSError, ValueError):
        return OwnerlessWorktree(path)
    is_changed = bool(status) or set(tips) != {base} or find_process_in(path) is not None
    return OwnerlessWorktree(path, common, branch, is_changed)


def remove_ownerless(found: OwnerlessWorktree) -> bool:
    """Returns whether the worktree was removed: only if it has no changes."""
    if found.is_changed:
        return False
    base = read_git(found.path, "rev-parse", "HEAD")
    return remove_worktree(Tree(found.repository, base, found.path, found.branch), base)
