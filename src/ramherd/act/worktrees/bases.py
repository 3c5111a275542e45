"""The commit that a worktree starts from: the job's `base`, or the merged branches of the jobs in
its `after`; else the commit that is checked out.

A merge writes only objects, no branch and no file, until the worktree is made from the result. So a
merge that is interrupted, or has a conflict, changes nothing.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from ramherd.act.worktrees.changes import read_changes_in
from ramherd.act.worktrees.git import GitFailed, find_operation, read_git, run_git
from ramherd.act.worktrees.submodules import fetch_submodules
from ramherd.core.agent_task import MergedBase
from ramherd.core.errors import RamherdError, UsageError
from ramherd.core.model import Job, Tree
from ramherd.core.record import record, replace
from ramherd.core.units import shown
from ramherd.core.values import nearest

HEAD = "HEAD"
# `git merge-tree --write-tree` merges without a worktree from this version on.
MERGE_TREE = (2, 38)


@record
class Tip:
    """The last commit of a job's branch: jobs after it start there."""

    name: str
    commit: str
    branch: str
    path: str


@record
class Conflict:
    """Two tips that git cannot merge, and the files in which they differ."""

    ours: Tip
    theirs: Tip
    files: tuple[str, ...]


def with_bases(jobs: Iterable[Job]) -> list[Job]:
    """Worktrees of jobs that name a base start from it."""
    known: dict[tuple[str, str], str] = {}
    return [with_base(job, known) for job in jobs]


def with_base(job: Job, known: dict[tuple[str, str], str]) -> Job:
    """`known` has the commits found so far, by repository and base."""
    brief = job.brief
    if brief is None or brief.tree is None or not brief.base:
        return job
    top, base = key = brief.tree.repository, brief.base
    if key not in known:
        known[key] = find_commit(top, base)
    if not known[key]:
        raise UsageError(
            f"job {job.name}, key 'base': {top} has no branch, tag or commit {shown(base)}",
            hint=nearest(base, list_names(top)),
        )
    return replace(job, brief=replace(brief, tree=replace(brief.tree, commit=known[key])))


def list_names(top: str) -> list[str]:
    """The branches and tags of the repository, and HEAD."""
    form = "--format=%(refname:short)"
    found = read_git(top, "for-each-ref", form, "refs/heads", "refs/tags", "refs/remotes")
    return [HEAD, *found.splitlines()]


def find_commit(top: str, name: str) -> str:
    """The commit of a branch, a tag or the beginning of an id, or ""."""
    return read_git(top, "rev-parse", "--verify", "-q", f"{name}^{{commit}}")


def with_parents(jobs: Sequence[Job], tops: Mapping[str, str]) -> list[Job]:
    """Jobs after others of the same repository start from their branches, except jobs with their
    own base and jobs after a command. `tops` has the repository of each directory.
    """
    by_name = {job.name: job for job in jobs}
    return [
        with_parents_among(job, [by_name[name] for name in job.after], tops) if job.after else job
        for job in jobs
    ]


def with_parents_among(job: Job, earlier: Sequence[Job], tops: Mapping[str, str]) -> Job:
    brief = job.brief
    if brief is None or brief.base or job.cwd not in tops:
        return job
    same = [one for one in earlier if one.brief is not None and tops.get(one.cwd) == tops[job.cwd]]
    for one in same:
        check_same_place(job, one)
    if brief.tree is None:
        return job
    parents = tuple(one.id for one in same)
    return replace(job, brief=replace(brief, tree=replace(brief.tree, parents=parents)))


def check_same_place(job: Job, earlier: Job) -> None:
    """Changes in the checkout are in no branch, and changes in a branch are not in the checkout: a
    job after another would not see the changes that it waited for.
    """
    tree, other = job.tree, earlier.tree
    if (tree is None) == (other is None):
        return
    first = f"{earlier.name} works in {'the checkout itself' if other is None else 'a worktree'}"
    then = f"this job in {'the checkout itself' if tree is None else 'a worktree'}"
    raise UsageError(
        f"job {job.name}: it would not see what {earlier.name} changed: {first}, {then}",
        hint='the same worktree setting for both, or base = "HEAD" for after as order only',
    )


def read_tip(name: str, tree: Tree, *, is_changed: bool) -> Tip:
    """If a missing branch had no changes, ramherd removed it: its tip is the commit that it started
    from. If it had changes, the user removed it, usually after a merge: the commit that is checked
    out has the changes that the user kept.
    """
    commit = find_commit(tree.repository, f"refs/heads/{tree.branch}")
    if not commit:
        commit = find_commit(tree.repository, HEAD) if is_changed else tree.commit
    return Tip(name, commit, tree.branch, tree.path)


def check_committed(name: str, tree: Tree) -> None:
    """Fails if the changes of a job could not be committed when it ended, or if its worktree is in
    the middle of a rebase: its successor would not see the changes that it waited for.
    """
    if not Path(tree.path, ".git").exists():
        return
    left = [one for one in read_changes_in(tree.path) if one.is_unmerged or not one.is_left_out]
    if left:
        files = "1 file" if len(left) == 1 else f"{len(left)} files"
        raise RamherdError(f"{files} of {name} not committed in {tree.path}")


def merge_branches(top: str, parents: Sequence[tuple[str, Tree, bool]]) -> MergedBase:
    """Merges the branches of the jobs `parents`; each comes with whether it has changes. Commits in
    their submodules are fetched first: git compares them to merge, and the new worktree needs them.
    A branch whose worktree is in the middle of an operation lacks changes.
    """
    try:
        for name, tree, _changed in parents:
            check_committed(name, tree)
        tips = [read_tip(name, tree, is_changed=changed) for name, tree, changed in parents]
        for tip, (_name, tree, _changed) in zip(tips, parents, strict=True):
            if what := find_operation(tip.path):
                why = f"the worktree of {tip.name} is in the middle of {what}: {tip.path}"
                return MergedBase(error=why)
            fetch_submodules(tip.path, top, tree.commit, tip.commit, tip.branch)
        found = merge_tips(top, tips)
    except RamherdError as error:
        return MergedBase(error=str(error))
    if isinstance(found, str):
        return MergedBase(found)
    ours, theirs = found.ours, found.theirs
    return MergedBase(
        ours=ours.name, theirs=theirs.name, path=ours.path, branch=theirs.branch, files=found.files
    )


def merge_tips(top: str, tips: Sequence[Tip]) -> str | Conflict:
    """One commit that has all tips, merged in their order. A checked out commit that has all tips
    is used as it is, so that conflicts which the user has resolved stay resolved.
    """
    commit, merged = tips[0].commit, [tips[0]]
    for tip in tips[1:]:
        found = merge_one(top, commit, merged, tip)
        if isinstance(found, Conflict):
            head = find_commit(top, HEAD)
            return head if all(is_in(top, one.commit, head) for one in tips) else found
        commit = found
        merged.append(tip)
    return commit


def merge_one(top: str, commit: str, merged: Sequence[Tip], tip: Tip) -> str | Conflict:
    """Merges `tip` into `commit`, which has the tips in `merged`."""
    if is_in(top, tip.commit, commit):
        return commit
    if is_in(top, commit, tip.commit):
        return tip.commit
    tree = merge_trees(top, commit, tip.commit)
    if not isinstance(tree, str):
        return Conflict(find_opponent(top, merged, tip), tip, tree)
    message = f"ramherd: merge {' and '.join([one.name for one in [*merged, tip]])}"
    parents = ("-p", commit, "-p", tip.commit)
    words = ("commit-tree", *parents, "-m", message, tree)
    return run_git(top, *words, env=read_identity(top)).strip()


def find_opponent(top: str, merged: Sequence[Tip], tip: Tip) -> Tip:
    """The first merged tip that alone conflicts with `tip`."""
    for one in merged[:-1]:
        if not isinstance(merge_trees(top, one.commit, tip.commit), str):
            return one
    return merged[-1]


def is_in(top: str, commit: str, later: str) -> bool:
    try:
        run_git(top, "merge-base", "--is-ancestor", commit, later)
    except GitFailed as error:
        if error.code == 1:
            return False
        raise
    return True


def merge_trees(top: str, ours: str, theirs: str) -> str | tuple[str, ...]:
    """The merged tree, or the files that conflict."""
    if read_version(top) < MERGE_TREE:
        return merge_in_worktree(top, ours, theirs)
    words = ("merge-tree", "--write-tree", "-z", "--name-only", "--no-messages")
    try:
        return run_git(top, *words, ours, theirs).rstrip("\0\n")
    except GitFailed as error:
        if error.code != 1:
            raise
        _tree, *files = error.stdout.rstrip("\0").split("\0")
        return tuple(files)


def merge_in_worktree(top: str, ours: str, theirs: str) -> str | tuple[str, ...]:
    """The same with a git that needs files to merge: in a temporary worktree."""
    import tempfile  # noqa: PLC0415 - 1 MB that the supervisor never needs

    with tempfile.TemporaryDirectory(prefix="ramherd-merge-", ignore_cleanup_errors=True) as folder:
        path = str(Path(folder) / "tree")
        try:
            run_git(top, "worktree", "add", "-q", "--detach", path, ours)
            try:
                run_git(
                    path, "merge", "-q", "--no-ff", "--no-commit", theirs, env=read_identity(top)
                )
            except GitFailed:
                listed = run_git(path, "diff", "--name-only", "--diff-filter=U", "-z")
                if not listed:
                    raise
                return tuple(listed.rstrip("\0").split("\0"))
            return run_git(path, "write-tree").strip()
        finally:
            with suppress(GitFailed):
                run_git(top, "worktree", "remove", "--force", path)


def read_version(top: str) -> tuple[int, int]:
    """The first two numbers of git's version; (0, 0) if there are none."""
    found = re.search(r"(\d+)\.(\d+)", read_git(top, "--version"))
    return (int(found[1]), int(found[2])) if found else (0, 0)


def read_identity(top: str) -> dict[str, str]:
    """The user's configured identity; else that of ramherd. git would guess an identity from the
    host name.
    """
    asked = ("-c", "user.useConfigOnly=true", "var")
    if read_git(top, *asked, "GIT_COMMITTER_IDENT") and read_git(top, *asked, "GIT_AUTHOR_IDENT"):
        return {}
    who = {"NAME": "ramherd", "EMAIL": "ramherd@localhost"}
    return {f"GIT_{role}_{key}": v for role in ("AUTHOR", "COMMITTER") for key, v in who.items()}
