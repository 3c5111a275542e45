"""`ramherd merge JOB`: merges a job's changes into the branch that is checked out."""

import argparse
import json
import shlex
from typing import Any

from ramherd.act.worktrees.bases import find_commit, is_in
from ramherd.act.worktrees.job_branch import (
    JobBranch,
    find_checkout,
    heads,
    list_uncommitted,
    read_numstat,
)
from ramherd.act.worktrees.merge_back import (
    MergeConflict,
    MergedBranch,
    abort_merge,
    merge_back,
    read_messages,
    read_user_branch,
    render_squash_message,
)
from ramherd.cli.drop import drop_job, render_dropped, some
from ramherd.cli.job_names import add_herd_option
from ramherd.cli.job_worktree import (
    changes_json,
    find_finished,
    find_job_branch,
    finish_worktree,
    locked_worktree,
    read_ended_job,
    record_worktree,
    render_changes,
    tree_of,
)
from ramherd.show.event_lines import printable
from ramherd.store.herds import StoredJob
from ramherd.system.user_files import read_cwd

EPILOG = """\
examples:
  ramherd merge fix-lint
  ramherd merge fix-lint write-tests --drop
  ramherd merge fix-lint --squash

Your branch is merged into the job's first, in the job's worktree. A conflict
stays there, and your checkout is as it was: resolve it there, commit, and
merge again. Files that you have changed and not committed are never touched;
where a merge would overwrite one, it is refused. Commits that ramherd makes
run no hooks and are not signed.

exit codes: 0 merged, or nothing to merge, 1 a conflict or refused, 2 usage
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    add = parser.add_argument
    add(
        "jobs",
        metavar="JOB",
        nargs="+",
        help="its number or name; several are merged in this order",
    )
    add_herd_option(parser)
    add("--squash", action="store_true", help="one commit with all changes of a job")
    add("-m", "--message", metavar="TEXT", help="the message of that commit (the job's prompt)")
    add("--drop", action="store_true", help="then remove the job's worktree and branch")
    add("--abort", action="store_true", help="undo a merge that met a conflict")
    add("--json", action="store_true", help="one JSON object for each job")
    parser.set_defaults(verb=merge)


def merge(options: argparse.Namespace) -> int:
    conflicts = [merge_job(name, options) for name in options.jobs]
    return int(any(conflicts))


def merge_job(name: str, options: argparse.Namespace) -> bool:
    """Returns whether there was a conflict."""
    stored = read_ended_job(name, options.herd)
    with locked_worktree(stored):
        if options.abort:
            abort_merge(find_job_branch(stored))
            finish_worktree(stored)  # the note on the worktree may still report a merge
            print(f"the merge of {printable(stored.job.name)} is undone")
            return False
        branch = find_finished(stored)
        checkout = find_checkout(branch, read_cwd())
        wants_squash = options.squash or options.message is not None
        message = options.message or squash_message(stored, branch) if wants_squash else ""
        merged = merge_back(branch, checkout, squash=message)
        if isinstance(merged, MergeConflict):
            found = conflict_json(stored, merged)
            lines = render_conflict(stored, checkout, merged, options)
        else:
            left, others = find_left(branch, tree_of(stored).branch)
            if not others:
                record_worktree(stored, {"merged_into": read_user_branch(branch, checkout)})
            found = {**merged_json(stored, merged), "not_merged": left}
            lines = [*render_merged(stored, merged), *render_left(branch, left, others)]
        print(json.dumps(found) if options.json else "\n".join(map(printable, lines)))
        if isinstance(merged, MergeConflict):
            return True
        if options.drop:
            dropped = drop_job(stored)
            if not options.json:
                print(render_dropped(dropped))
    return False


def squash_message(stored: StoredJob, branch: JobBranch) -> str:
    brief = stored.job.brief
    prompt = brief.prompt if brief is not None else ""
    return render_squash_message(stored.job.name, prompt, read_messages(branch))


def render_merged(stored: StoredJob, merged: MergedBranch | None) -> list[str]:
    name = stored.job.name
    if merged is None:
        return [f"{name}: nothing to merge, your branch has all of it"]
    changes = read_numstat(merged.checkout, merged.before, merged.commit)
    lines = [f"{name} is merged into {merged.branch}: {render_changes(changes)}"]
    if merged.submodules:
        listed = shlex.join(merged.submodules)
        lines.append(f"submodules have other commits: git submodule update -- {listed}")
    return lines


def find_left(branch: JobBranch, own_branch: str) -> tuple[list[str], str]:
    """Work that the merge leaves out: uncommitted files, and the job's first branch, if the agent
    left commits there and ended on another branch.
    """
    files = list_uncommitted(branch.worktree) if branch.worktree else []
    first = find_commit(branch.repository, heads(own_branch))
    has_other = bool(first) and not is_in(
        branch.repository, first, find_commit(branch.where, "HEAD")
    )
    return files, own_branch if branch.worktree and has_other else ""


def render_left(branch: JobBranch, files: list[str], others: str) -> list[str]:
    lines = [f"not committed, so not merged: {some(files)} in {branch.worktree}"] if files else []
    return [*lines, f"branch {others} has other commits: git merge {others}"] if others else lines


def merged_json(stored: StoredJob, merged: MergedBranch | None) -> dict[str, Any]:
    known: dict[str, Any] = {"job": stored.job.name, "merged": merged is not None, "conflicts": []}
    if merged is None:
        return known
    changes = read_numstat(merged.checkout, merged.before, merged.commit)
    where = {"branch": merged.branch, "checkout": merged.checkout, "commit": merged.commit}
    return {**known, **where, **changes_json(changes)}


def conflict_json(stored: StoredJob, conflict: MergeConflict) -> dict[str, Any]:
    where = {"worktree": conflict.worktree, "conflicts": list(conflict.files)}
    return {"job": stored.job.name, "merged": False, **where}


def render_conflict(
    stored: StoredJob, checkout: str, conflict: MergeConflict, options: argparse.Namespace
) -> list[str]:
    name, files = shlex.quote(stored.job.name), conflict.files
    count = "1 file" if len(files) == 1 else f"{len(files)} files"
    return [
        f"{stored.job.name} conflicts with your branch in {count}: {checkout} is as it was",
        *(f"  {file}" for file in files),
        f"resolve it in {shlex.quote(conflict.worktree)}, commit there, then:",
        f"  ramherd merge {name}{render_options(options)}",
        f"or undo it: ramherd merge --abort {name}",
    ]


def render_options(options: argparse.Namespace) -> str:
    """The options of this call, for a command to be typed."""
    words = ["--squash"] if options.squash else []
    words += ["-m", options.message] if options.message is not None else []
    words += ["--drop"] if options.drop else []
    words += ["--herd", options.herd] if options.herd is not None else []
    return "".join(f" {shlex.quote(word)}" for word in words)
