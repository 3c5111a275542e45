"""Merges a job's branch into the branch that the user has checked out.

First the user's branch is merged into the job's, in the job's worktree: a conflict stays there.
Then the user's checkout is fast-forwarded, which git refuses if that would overwrite an uncommitted
file. No hooks run and nothing is signed.
"""

import os
import shlex
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ramherd.act.worktrees import MARK
from ramherd.act.worktrees.bases import find_commit, is_in, read_identity
from ramherd.act.worktrees.git import GitFailed, find_operation, read_git, run_git
from ramherd.act.worktrees.job_branch import JobBranch, heads
from ramherd.act.worktrees.submodules import fetch_submodules, find_submodules
from ramherd.core.errors import RamherdError, UsageError
from ramherd.core.record import record, replace

# Filters such as git-lfs may fetch each file. A checkout is never killed in the middle.
MERGE_S = 3600.0
# The user may commit to the branch at the same moment.
TRIES = 3
SUBJECT_LENGTH = 72


@record
class MergeConflict:
    """The conflict stays in `worktree`: the user's checkout is unchanged."""

    worktree: str
    files: tuple[str, ...]


@record
class MergedBranch:
    """The user's `branch` in `checkout` moved from the commit `before` to `commit`. `submodules`
    point to other commits now.
    """

    branch: str
    checkout: str
    before: str
    commit: str
    submodules: tuple[str, ...] = ()


class CannotMerge(RamherdError):
    """The user's checkout is unchanged."""

    exit_code = 1


def merge_back(
    branch: JobBranch, checkout: str, *, squash: str = ""
) -> MergedBranch | MergeConflict | None:
    """None: the user's branch has all changes already. With `squash`, all changes become one commit
    with that message.
    """
    name = read_user_branch(branch, checkout)
    for tries in range(TRIES):
        head = find_commit(checkout, "HEAD")
        merged = merge_user_branch(branch, head, name)
        if isinstance(merged, MergeConflict):
            return merged
        branch = merged
        if has_all(checkout, branch.tip, head):
            return None
        target = commit_squashed(checkout, branch.tip, head, squash) if squash else branch.tip
        try:
            name_there = branch.branch or "ramherd-merge"
            fetch_submodules(branch.worktree, checkout, head, target, name_there)
            fast_forward(branch, checkout, target)
        except GitFailed as error:
            if find_commit(checkout, "HEAD") == head or tries == TRIES - 1:
                raise refused(error, name, checkout) from None
            continue
        submodules = tuple(path for path, _commit in find_submodules(checkout, head, target))
        return MergedBranch(name, checkout, head, target, submodules)
    raise AssertionError  # the last try returns or raises


def read_user_branch(branch: JobBranch, checkout: str) -> str:
    name = read_git(checkout, "symbolic-ref", "-q", "--short", "HEAD")
    if not name:
        raise UsageError(
            f"{checkout} has no branch checked out: its HEAD is detached",
            hint=f"git -C {shlex.quote(checkout)} switch BRANCH",
        )
    if name == branch.branch:
        raise UsageError(
            f"{checkout} has the branch of the job itself checked out, {name}",
            hint=f"git -C {shlex.quote(checkout)} switch BRANCH",
        )
    return name


def has_all(top: str, tip: str, head: str) -> bool:
    return is_in(top, tip, head) or tree_id(top, tip) == tree_id(top, head)


def tree_id(top: str, commit: str) -> str:
    return run_git(top, "rev-parse", f"{commit}^{{tree}}").strip()


def merge_user_branch(branch: JobBranch, head: str, name: str) -> JobBranch | MergeConflict:
    """Merges the user's branch into the job's branch."""
    if branch.worktree and (what := find_operation(branch.worktree)):
        raise in_the_middle(branch, what)
    if is_in(branch.repository, head, branch.tip) or is_in(branch.repository, branch.tip, head):
        return branch
    if not branch.worktree:
        branch = add_worktree(branch)
    words = ("merge", "-q", "--no-ff", "--no-autostash", "-m", message_of(branch, name), head)
    identity = read_identity(branch.repository)
    try:
        run_git(branch.worktree, *words, env=identity, timeout_s=MERGE_S)
    except GitFailed as error:
        files = run_git(branch.worktree, "diff", "--name-only", "--diff-filter=U", "-z")
        if not files:
            raise refused(error, branch.branch, branch.worktree) from None
        return MergeConflict(branch.worktree, tuple(files.rstrip("\0").split("\0")))
    return replace(branch, tip=find_commit(branch.worktree, "HEAD"))


def message_of(branch: JobBranch, name: str) -> str:
    return f"Merge branch '{name}' into {branch.branch or 'HEAD'}"


def in_the_middle(branch: JobBranch, what: str) -> CannotMerge:
    return CannotMerge(
        f"the worktree of job {branch.job} is in the middle of {what}: {branch.worktree}",
        hint="resolve it there and commit, then merge again; or undo it: "
        f"ramherd merge --abort {shlex.quote(branch.job)}",
    )


def add_worktree(branch: JobBranch) -> JobBranch:
    """Makes the worktree again: the user has removed it, but not its branch."""
    if other := find_worktree_with(branch):
        raise CannotMerge(
            f"branch {branch.branch} is checked out in {other}",
            hint=f"git -C {shlex.quote(other)} switch BRANCH",
        )
    # The path may still be registered. MAKE in `making.py` starts over if the mark is missing.
    run_git(
        branch.repository, "worktree", "add", "-q", "-f", branch.path, branch.branch,
        timeout_s=MERGE_S,
    )  # fmt: skip
    folder = run_git(branch.path, "rev-parse", "--absolute-git-dir").strip()
    Path(folder, MARK).write_text(f"{branch.base}\n", encoding="utf-8")
    return replace(branch, worktree=branch.path)


def find_worktree_with(branch: JobBranch) -> str:
    """Another worktree that has the job's branch checked out, or ""."""
    path = ""
    for line in run_git(branch.repository, "worktree", "list", "--porcelain").splitlines():
        word, _, value = line.partition(" ")
        path = value if word == "worktree" else path
        is_it = word == "branch" and value == heads(branch.branch)
        if is_it and path != branch.path and os.path.isdir(path):
            return path
    return ""


def abort_merge(branch: JobBranch) -> None:
    """Restores the job's worktree to its state before the merge."""
    if not branch.worktree or find_operation(branch.worktree) != "a merge":
        raise UsageError(f"no merge of job {branch.job} is open")
    run_git(branch.worktree, "merge", "--abort", timeout_s=MERGE_S)


def commit_squashed(top: str, tip: str, head: str, message: str) -> str:
    words = ("commit-tree", "-p", head, "-F", "-", f"{tip}^{{tree}}")
    return run_git(top, *words, stdin=message, env=read_identity(top)).strip()


def fast_forward(branch: JobBranch, checkout: str, target: str) -> None:
    with uninterrupted():
        words = ("merge", "-q", "--ff-only", "--no-autostash", target)
        run_git(
            checkout,
            *words,
            timeout_s=MERGE_S,
            env={"GIT_REFLOG_ACTION": f"ramherd merge {branch.job}"},
        )


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Ignores SIGINT: a git that is killed during a checkout leaves it incomplete."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def refused(error: GitFailed, name: str, where: str) -> CannotMerge:
    """Lists the files that git would have overwritten, if git named any."""
    files = parse_overwritten(error.stderr)
    if not files:
        return CannotMerge(f"git cannot merge into {name} in {where}: {error.line}")
    return CannotMerge(
        f"{name} in {where} has changes that are not committed in {', '.join(files)}",
        hint="commit them or stash them (git stash), then merge again",
    )


def parse_overwritten(stderr: str) -> list[str]:
    """git indents names of files with a tab."""
    return [line.strip() for line in stderr.splitlines() if line.startswith("\t")]


def render_squash_message(job: str, prompt: str, messages: Sequence[str]) -> str:
    """The message of the agent's only commit; else the prompt, and the subjects of its commits."""
    if len(messages) == 1:
        return messages[0]
    first, _, rest = prompt.strip().partition("\n")
    subject = (
        first if len(first) <= SUBJECT_LENGTH else f"{first[: SUBJECT_LENGTH - 3].rstrip()}..."
    )
    body = prompt.strip() if subject != first or rest.strip() else ""
    listed = "\n".join(f"- {message.partition(chr(10))[0]}" for message in messages)
    return "\n\n".join(part for part in (subject or job, body, listed) if part) + "\n"


def read_messages(branch: JobBranch) -> list[str]:
    """The messages of the agent's own commits, the oldest first, without commits of ramherd."""
    words = ("log", "--no-merges", "--reverse", "--format=%B%x00", branch.tip, f"^{branch.base}")
    found = [text.strip() for text in run_git(branch.where, *words).split("\0")]
    return [text for text in found if text and not text.startswith("ramherd: ")]
