"""Removes a worktree and its branch."""

from contextlib import suppress
from pathlib import Path

from ramherd.act.worktrees.git import GitFailed, run_git
from ramherd.core.model import Tree


def remove_worktree(tree: Tree, base: str) -> bool:
    """The caller has checked that the worktree has no changes. The branch is removed too, unless it
    has a commit other than `base`. Returns whether the directory is gone.
    """
    with suppress(GitFailed):
        run_git(tree.repository, "worktree", "remove", "--force", tree.path)
    if Path(tree.path).exists():
        from ramherd.act.cleanup import remove_tree  # noqa: PLC0415 - rarely, where git fails

        remove_tree(Path(tree.path))
    with suppress(GitFailed):
        run_git(tree.repository, "update-ref", "-d", f"refs/heads/{tree.branch}", base)
    return not Path(tree.path).exists()
