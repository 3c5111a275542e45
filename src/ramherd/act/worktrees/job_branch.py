"""Finds the changes of a job: in its worktree while there is one, else in its branch.

This module only reads. `merge_back.py` and `drop_branch.py` write.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from ramherd.act.worktrees import MARK
from ramherd.act.worktrees.bases import find_commit, is_in
from ramherd.act.worktrees.git import GitFailed, read_git, run_git
from ramherd.act.worktrees.making import find_top
from ramherd.core.errors import UsageError
from ramherd.core.model import Tree
from ramherd.core.record import record, replace


@record
class JobBranch:
    """`worktree` is "" if it is gone; it was at `path`. `branch` is "" if an agent has detached
    HEAD there.
    """

    job: str
    repository: str
    path: str
    worktree: str
    branch: str
    tip: str
    base: str

    @property
    def where(self) -> str:
        return self.worktree or self.repository


@record
class FileChange:
    """`added` and `removed` are lines; both are None for a binary file."""

    path: str
    added: int | None
    removed: int | None


class BranchGone(UsageError):
    """Neither the worktree nor the branch of the job exists."""


def find_branch(job: str, tree: Tree) -> JobBranch:
    """BranchGone if neither worktree nor branch is left."""
    if not read_git(tree.repository, "rev-parse", "--git-dir"):
        check_repository(job, tree.repository)
    tip = find_commit(tree.path, "HEAD") if Path(tree.path, ".git").exists() else ""
    if tip:
        branch = read_git(tree.path, "symbolic-ref", "-q", "--short", "HEAD")
        worktree = tree.path
    else:
        tip, branch, worktree = find_commit(tree.repository, heads(tree.branch)), tree.branch, ""
    if not tip:
        raise BranchGone(f"the worktree and the branch {tree.branch} of job {job} are gone")
    base = choose_base(replace(tree, commit=read_mark(worktree) or tree.commit), tip)
    return JobBranch(job, tree.repository, tree.path, worktree, branch, tip, base)


def read_mark(worktree: str) -> str:
    """The commit that the worktree was made from, or ""."""
    folder = read_git(worktree, "rev-parse", "--absolute-git-dir") if worktree else ""
    try:
        return Path(folder, MARK).read_text(encoding="utf-8").strip() if folder else ""
    except OSError:
        return ""


def heads(branch: str) -> str:
    return f"refs/heads/{branch}"


def check_repository(job: str, repository: str) -> None:
    """Fails with git's reason, for example that another user owns the repository."""
    if not os.path.isdir(repository):
        raise UsageError(f"the repository of job {job} is gone: {repository}")
    run_git(repository, "rev-parse", "--git-dir")


def choose_base(tree: Tree, tip: str) -> str:
    """The commit that the job started from. If the user's branch was merged into the job's since
    then, the newest commit of the user's branch in it: the changes of others are not the job's.
    """
    shared = read_git(tree.repository, "merge-base", "HEAD", tip)
    if shared == tip:  # the job is merged
        shared = find_merged_in(tree, tip)
    if shared not in ("", tip) and is_in(tree.repository, tree.commit, shared):
        return shared
    return tree.commit


def find_merged_in(tree: Tree, tip: str) -> str:
    """The commit that was merged into the job's branch last, or ""."""
    words = ("rev-list", "--first-parent", "--merges", "-n", "1", tip, f"^{tree.commit}")
    merge = read_git(tree.repository, *words)
    return find_commit(tree.repository, f"{merge}^2") if merge else ""


def list_uncommitted(worktree: str) -> list[str]:
    """Files that are changed, or new and not ignored, each once."""
    fields = iter(run_git(worktree, "status", "--porcelain", "-z", "-uall").split("\0"))
    found = []
    for field in fields:
        if field:
            found.append(field[3:])
            if field[0] in "RC":
                next(fields, "")  # the previous name
    return found


@contextmanager
def index_with_new_files(branch: JobBranch) -> Iterator[dict[str, str]]:
    """The environment for a `git diff` that includes untracked files. The index of the worktree is
    not changed: its user or agent may be at work there.
    """
    if not branch.worktree:
        yield {}
        return
    index = read_git(branch.worktree, "rev-parse", "--git-path", "index")
    with tempfile.TemporaryDirectory(prefix="ramherd-diff-", ignore_cleanup_errors=True) as folder:
        copy = os.path.join(folder, "index")
        if os.path.exists(source := os.path.join(branch.worktree, index)):
            shutil.copyfile(source, copy)
        env = {"GIT_INDEX_FILE": copy}
        with suppress(GitFailed):  # an agent has just removed a file
            run_git(branch.worktree, "add", "--intent-to-add", "--ignore-errors", ".", env=env)
        yield env


def diff_words(branch: JobBranch) -> tuple[str, ...]:
    """Arguments of `git diff`: the base with the files of the worktree, or with the branch."""
    return (branch.base,) if branch.worktree else (branch.base, branch.tip)


def read_changes(branch: JobBranch) -> list[FileChange]:
    with index_with_new_files(branch) as env:
        return read_numstat(branch.where, *diff_words(branch), env=env)


def read_numstat(
    where: str, *compared: str, env: Mapping[str, str] | None = None
) -> list[FileChange]:
    words = ("diff", "--no-ext-diff", "--numstat", "-z", "--no-renames", *compared, "--")
    return parse_numstat(run_git(where, *words, env=env))


def parse_numstat(text: str) -> list[FileChange]:
    """The output of `git diff --numstat -z --no-renames`."""
    lines = [line.split("\t", 2) for line in text.split("\0") if line]
    return [
        FileChange(path, None if added == "-" else int(added), None if gone == "-" else int(gone))
        for added, gone, path in lines
    ]


def find_checkout(branch: JobBranch, cwd: str) -> str:
    """The user's own checkout: the one that has `cwd`, if it belongs to the job's repository, else
    the one that the job was started from.
    """
    top = find_top(cwd)
    if top and top != branch.worktree and common_dir(top) == common_dir(branch.repository):
        return top
    return branch.repository


def common_dir(top: str) -> str:
    found = read_git(top, "rev-parse", "--git-common-dir")
    return os.path.realpath(os.path.join(top, found)) if found else ""
