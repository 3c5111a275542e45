"""`ramherd drop JOB`: removes the worktree and the branch of a job, if that loses nothing."""

import argparse
import json
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from ramherd.act.worktrees.drop_branch import UnmergedChanges, drop_branch, find_unmerged
from ramherd.act.worktrees.git import find_operation
from ramherd.act.worktrees.job_branch import BranchGone
from ramherd.cli.job_names import add_herd_option
from ramherd.cli.job_worktree import (
    find_job_branch,
    locked_worktree,
    read_ended_job,
    record_worktree,
    tree_of,
)
from ramherd.core.errors import RamherdError
from ramherd.show.event_lines import printable
from ramherd.store.herds import StoredJob

EPILOG = """\
examples:
  ramherd drop fix-lint
  ramherd drop fix-lint --force       # even if changes are not merged

Its output and results stay: `ramherd prune` removes output.
"""
# The number of files and commits that an error names.
NAMED = 5


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    add = parser.add_argument
    add("jobs", metavar="JOB", nargs="+", help="its number or name")
    add_herd_option(parser)
    add("--force", action="store_true", help="drop changes that are in no other branch, too")
    add("--json", action="store_true", help="one JSON object for each job")
    parser.set_defaults(verb=drop)


def drop(options: argparse.Namespace) -> int:
    for name in options.jobs:
        stored = read_ended_job(name, options.herd)
        with locked_worktree(stored):
            dropped = drop_job(stored, force=options.force)
        if options.json:
            print(json.dumps(dropped))
        else:
            print(render_dropped(dropped))
    return 0


def drop_job(stored: StoredJob, *, force: bool = False) -> dict[str, Any]:
    """Returns the removed things, as JSON. Without `force`, raises if work would be lost."""
    name, tree = stored.job.name, tree_of(stored)
    try:
        branch = find_job_branch(stored)
    except BranchGone:
        if stored.said.get("branch"):
            record_worktree(stored, {"worktree": None, "branch": None})
        raise
    lost = find_unmerged(branch, tree.branch)
    if lost and not force:
        if branch.worktree and find_operation(branch.worktree) == "a merge":
            raise explain_open_merge(name, branch.worktree)
        left_out = frozenset(one["path"] for one in stored.said.get("left_out") or ())
        raise explain_loss(name, branch.worktree, lost, left_out)
    drop_branch(branch, tree.branch)
    lost_merge = {"merged_into": None} if lost.commits else {}
    record_worktree(stored, {"worktree": None, "branch": None, **lost_merge})
    return {
        "job": name, "dropped": True, "worktree": branch.worktree or None, "branch": tree.branch,
        "lost": {"files": lost.files, "commits": lost.commits},
    }  # fmt: skip


def render_dropped(dropped: Mapping[str, Any]) -> str:
    what = "its worktree and its branch" if dropped["worktree"] else "its branch"
    return printable(f"{dropped['job']}: removed {what} {dropped['branch']}")


def explain_open_merge(job: str, worktree: str) -> RamherdError:
    """The files that git reports as changed are mostly those of the user's branch."""
    name = shlex.quote(job)
    return RamherdError(
        printable(f"job {job} has a merge that is not finished, in {worktree}"),
        hint=f"undo it: ramherd merge --abort {name}, or lose the changes of the job: "
        f"ramherd drop --force {name}",
    )


def explain_loss(
    job: str, worktree: str, lost: UnmergedChanges, left_out: frozenset[str]
) -> RamherdError:
    """Names the work that would be lost. A merge does not commit `left_out` either."""
    parts = []
    if lost.commits:
        parts.append(f"{count(lost.commits, 'commit')} ({some(lost.commits)})")
    if lost.files:
        parts.append(f"{count(lost.files, 'uncommitted file')} ({some(lost.files)})")
    name = shlex.quote(job)
    is_mergeable = lost.commits or not left_out.issuperset(lost.files)
    save = f"ramherd merge {name}" if is_mergeable else f"copy them from {shlex.quote(worktree)}"
    return RamherdError(
        printable(f"job {job} has changes that are nowhere else: {' and '.join(parts)}"),
        hint=f"{save}, or lose them: ramherd drop --force {name}",
    )


def count(things: tuple[str, ...], what: str) -> str:
    return f"{len(things)} {what}" + ("" if len(things) == 1 else "s")


def some(names: Sequence[str]) -> str:
    rest = len(names) - NAMED
    return ", ".join(names[:NAMED]) + (f" and {rest} more" if rest > 0 else "")
