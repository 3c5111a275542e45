"""Which jobs get a worktree and a branch of their own, and how a run makes it: by itself, in its
pen, because a checkout takes seconds and memory.
"""

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ramherd.act.worktrees.git import read_git
from ramherd.core.errors import UsageError
from ramherd.core.model import Job, Tree

# $1 repository, $2 commit, $3 branch, $4 path, $5 where in it, then what to start there. A run that
# was stopped in the middle of it leaves no mark in git's own folder of the worktree, and the next
# starts over. Two at a time get in each other's way (8 of 120 failed with git 2.39, 40 at once), so
# it is tried again; never `worktree prune`, which takes away what another is just making.
MAKE = """\
is_made() { [ -e "$(git -C "$1" rev-parse --absolute-git-dir 2>/dev/null)/ramherd-made" ]; }
if ! is_made "$4"; then
    [ ! -e "$4" ] || git -C "$1" worktree remove -f -f "$4" || rm -rf "$4"
    tries=1
    until git -C "$1" worktree add -q -f -B "$3" "$4" "$2" >&2; do
        [ "$tries" -lt 9 ] || exit 125
        sleep "0.$tries"
        tries=$((tries + 1))
    done
    : >"$(git -C "$4" rev-parse --absolute-git-dir)/ramherd-made" || exit 125
fi
mkdir -p "$4/$5" && cd "$4/$5" || exit 125
shift 5
exec "$@"
"""


def isolate(jobs: Sequence[Job], folder: Path) -> list[Job]:
    """Jobs with an agent that asked for a worktree, or that share a repository, get one."""
    tops = {cwd: find_top(cwd) for cwd in {job.cwd for job in jobs if job.brief is not None}}
    sharing = Counter(tops[job.cwd] for job in jobs if job.brief is not None)
    commits = {top: read_git(top, "rev-parse", "--verify", "-q", "HEAD") for top in sharing if top}
    return [
        with_tree(job, top, commits.get(top, ""), folder, shared=sharing[top] > 1)
        for job in jobs
        for top in [tops.get(job.cwd, "")]
    ]


def with_tree(job: Job, top: str, commit: str, folder: Path, *, shared: bool) -> Job:
    if job.brief is None or job.brief.worktree is False:
        return job
    if not commit:
        if job.brief.worktree:
            what = f"{top} has no commit" if top else f"{job.cwd} is in no git repository"
            raise UsageError(f"job {job.name}: no worktree: {what}")
        return job
    if not job.brief.worktree and not shared:
        return job
    if job.brief.reuse:
        raise UsageError(
            f"job {job.name}: reuse is for jobs in one directory, and in a git repository each"
            " gets a worktree of its own",
            hint="--no-worktree, or worktree = false",
        )
    inside = os.path.relpath(os.path.realpath(job.cwd), top)
    tree = Tree(top, commit, str(folder / job.id), branch_of(job), inside)
    return replace(job, brief=replace(job.brief, tree=tree))


def branch_of(job: Job) -> str:
    """Telling, allowed in a ref, and never that of another job."""
    words = "".join(c if c.isascii() and c.isalnum() else " " for c in job.name).split()
    return f"ramherd/{'-'.join(words)[:40]}-{job.id[-8:].lower()}"


def find_top(cwd: str) -> str:
    """The repository that a directory is in, or ""."""
    return read_git(cwd, "rev-parse", "--show-toplevel")


def argv_in(tree: Tree, argv: Sequence[str]) -> tuple[str, ...]:
    named = (tree.repository, tree.commit, tree.branch, tree.path, tree.inside)
    return ("/bin/sh", "-c", MAKE, "worktree", *named, *argv)
