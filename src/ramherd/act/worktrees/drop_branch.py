"""Removes the worktree and the branch of a job, unless that would lose changes."""

import os
from collections.abc import Iterator
from pathlib import Path

from ramherd.act.worktrees.bases import find_commit, is_in, merge_trees
from ramherd.act.worktrees.git import GitFailed, read_git, run_git
from ramherd.act.worktrees.job_branch import JobBranch, heads, list_uncommitted
from ramherd.act.worktrees.merge_back import MERGE_S, tree_id
from ramherd.core.record import record


@record
class UnmergedChanges:
    """Changes only in a job's worktree and branch: files, and the subjects of commits."""

    files: tuple[str, ...] = ()
    commits: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.files or self.commits)


def find_unmerged(branch: JobBranch, own_branch: str) -> UnmergedChanges:
    """`own_branch` was made for the job; the agent may have switched to another branch, which
    stays.
    """
    own = list_own(branch, own_branch)
    tips = [branch.tip, *(find_commit(branch.repository, heads(name)) for name in own)]
    commits = [
        subject
        for tip in dict.fromkeys(filter(None, tips))
        if not is_merged_in_content(branch.repository, tip)
        for subject in list_unmerged(branch.repository, tip, own)
    ]
    if not branch.worktree:
        return UnmergedChanges(commits=tuple(dict.fromkeys(commits)))
    commits += list_submodule_commits(branch)
    files = list_uncommitted(branch.worktree)
    return UnmergedChanges(tuple(files), tuple(dict.fromkeys(commits)))


def list_own(branch: JobBranch, own_branch: str) -> list[str]:
    """Includes a second branch, which `finishing.py` makes if the first has other commits."""
    is_second = branch.branch.startswith(f"{own_branch}-")
    return [own_branch, branch.branch] if is_second else [own_branch]


def list_unmerged(repository: str, tip: str, own: list[str]) -> list[str]:
    """Commits that no other branch, tag or remote has, the newest first."""
    others = (*(f"--exclude={name}" for name in own), "--branches", "--tags", "--remotes")
    words = ("log", "--no-merges", "--format=%h %s", tip, "--not", *others)
    return run_git(repository, *words).splitlines()


def is_merged(repository: str, tip: str, into: str) -> bool:
    """Whether the branch `into` has the commit, or its content."""
    target = find_commit(repository, heads(into))
    if not tip or not target:
        return False
    return is_in(repository, tip, target) or is_merged_in_content(repository, tip, target)


def is_merged_in_content(repository: str, tip: str, head: str = "") -> bool:
    """Whether it was merged with `--squash` or by hand: merging it again changes nothing."""
    head = head or find_commit(repository, "HEAD")
    try:
        return merge_trees(repository, head, tip) == tree_id(repository, head)
    except GitFailed:
        return False


def list_submodule_commits(branch: JobBranch) -> Iterator[str]:
    """Commits that exist only in a submodule of the worktree."""
    listed = read_git(branch.worktree, "submodule", "foreach", "--quiet", "--recursive", PRINT_PATH)
    for path in filter(None, listed.split("\n")):
        made, ours = os.path.join(branch.worktree, path), os.path.join(branch.repository, path)
        tip = find_commit(made, "HEAD")
        if Path(ours, ".git").exists() and find_commit(ours, tip):
            continue
        words = ("log", "--no-merges", f"--format={path}: %h %s", "HEAD", "--not", "--remotes")
        yield from read_git(made, *words).splitlines()


def drop_branch(branch: JobBranch, own_branch: str) -> None:
    """GitFailed if git refuses, for example because of a file of another user."""
    if branch.worktree:
        remove = ("worktree", "remove", "--force", branch.worktree)
        run_git(branch.repository, *remove, timeout_s=MERGE_S)
    for name in list_own(branch, own_branch):
        if find_commit(branch.repository, heads(name)):
            run_git(branch.repository, "branch", "-q", "-D", name)


PRINT_PATH = 'echo "$displaypath"'
