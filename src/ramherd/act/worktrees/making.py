"""Chooses the jobs that get a worktree and a branch of their own. Each run makes its worktree
itself, in its pen, because a checkout takes seconds and memory.
"""

import os
import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ramherd.act.worktrees.bases import HEAD, find_commit, with_bases, with_parents
from ramherd.act.worktrees.git import read_git
from ramherd.act.worktrees.submodules import FILL
from ramherd.core.errors import UsageError
from ramherd.core.model import Job, Tree
from ramherd.core.units import shown

# $1 repository, $2 commit, $3 branch, $4 path, $5 directory in it, $6 the script that fills its
# submodules, then the command to start there. A run that was stopped in the middle leaves no mark
# (MARK) in git's own folder of the worktree, and the next run starts over. Concurrent calls disturb
# each other (8 of 120 failed with git 2.39, 40 at once), so a failed call is repeated; never
# `worktree prune`, which removes worktrees that other runs are making. A branch that has commits of
# an earlier run is checked out as it is: the user removed only its worktree.
MAKE = """\
is_made() { [ -e "$(git -C "$1" rev-parse --absolute-git-dir 2>/dev/null)/ramherd-made" ]; }
add() {
    if git -C "$1" merge-base --is-ancestor "$2" "refs/heads/$3" 2>/dev/null
    then git -C "$1" worktree add -q -f "$4" "$3"
    else git -C "$1" worktree add -q -f -B "$3" "$4" "$2"
    fi
}
if ! is_made "$4"; then
    [ ! -e "$4" ] || git -C "$1" worktree remove -f -f "$4" || rm -rf "$4"
    tries=1
    until add "$@" >&2; do
        [ "$tries" -lt 9 ] || exit 125
        sleep "0.$tries"
        tries=$((tries + 1))
    done
    if [ -e "$4/.gitmodules" ]; then
        export RAMHERD_TOP="$1" RAMHERD_TREE="$4"
        git -C "$1" submodule --quiet foreach --recursive "$6" >&2
        unset RAMHERD_TOP RAMHERD_TREE
    fi
    echo "$2" >"$(git -C "$4" rev-parse --absolute-git-dir)/ramherd-made" || exit 125
fi
mkdir -p "$4/$5" && cd "$4/$5" || exit 125
shift 6
exec "$@"
"""


def isolate(jobs: Sequence[Job], folder: Path) -> list[Job]:
    """Jobs with an agent get a worktree if they ask for one or share a repository."""
    tops = {cwd: find_top(cwd) for cwd in {job.cwd for job in jobs if job.brief is not None}}
    sharing = Counter(tops[job.cwd] for job in jobs if job.brief is not None)
    commits = {top: find_commit(top, HEAD) for top in sharing if top}
    made = [
        with_tree(job, top, commits.get(top, ""), folder, shared=sharing[top] > 1)
        for job in jobs
        for top in [tops.get(job.cwd, "")]
    ]
    return with_parents(with_bases(made), {cwd: top for cwd, top in tops.items() if top})


def with_tree(job: Job, top: str, commit: str, folder: Path, *, shared: bool) -> Job:
    brief = job.brief
    if brief is None:
        return job
    if brief.worktree is False:
        check_no_base(job.name, brief.base)
        return job
    is_asked = bool(brief.worktree or brief.base)
    if not commit and (is_asked or (top and shared)):
        raise no_commit(job, top)
    if not commit or not (is_asked or shared):
        return job
    if brief.reuse:
        raise UsageError(
            f"job {job.name}: reuse is for jobs in one directory, and in a git repository each"
            " gets a worktree of its own",
            hint="--no-worktree, or worktree = false",
        )
    inside = os.path.relpath(os.path.realpath(job.cwd), top)
    tree = Tree(top, commit, str(folder / job.id), branch_of(job), inside)
    return replace(job, brief=replace(brief, tree=tree))


def check_no_base(name: str, base: str) -> None:
    """Without a worktree, a job starts from the checked out commit: only `HEAD` is valid."""
    if base not in ("", HEAD):
        raise UsageError(
            f"job {name}: base {shown(base)} needs a worktree, and worktree is false",
            hint="remove one of the two",
        )


def no_commit(job: Job, top: str) -> UsageError:
    """A worktree needs a commit to start from. Several agents in one directory would overwrite each
    other's files, so the user has to ask for that.
    """
    if not top:
        return UsageError(f"job {job.name}: no worktree: {job.cwd} is in no git repository")
    first = f"git -C {shlex.quote(top)} commit --allow-empty -m start"
    return UsageError(
        f"job {job.name}: no worktree: {top} has no commit",
        hint=f"{first}; or --no-worktree: then all its agents work in one directory",
    )


def branch_of(job: Job) -> str:
    """A readable name that is valid in a ref and unique to the job."""
    words = "".join(c if c.isascii() and c.isalnum() else " " for c in job.name).split()
    return f"ramherd/{'-'.join(words)[:40]}-{job.id[-8:].lower()}"


def find_top(cwd: str) -> str:
    """The repository that a directory is in, or ""."""
    return read_git(cwd, "rev-parse", "--show-toplevel")


def argv_in(tree: Tree, argv: Sequence[str]) -> tuple[str, ...]:
    named = (tree.repository, tree.commit, tree.branch, tree.path, tree.inside, FILL)
    return ("/bin/sh", "-c", MAKE, "worktree", *named, *argv)
