"""Finishes the worktree of a job that has ended, so that no change exists only there: uncommitted
changes become a commit on top of the job's branch, and the changes of the job are counted. A
worktree without changes is removed.

Finishing again changes nothing. Only worktrees that ramherd made are finished, never the user's own
checkout. Changes that cannot be committed stay in the worktree, with a note.
"""

import fcntl
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import IO, Any

from ramherd.act.worktrees import MARK
from ramherd.act.worktrees.bases import read_identity
from ramherd.act.worktrees.changes import Change, read_changes_in, render_index_info
from ramherd.act.worktrees.git import GIT_S, GitFailed, find_operation, read_git, run_git
from ramherd.act.worktrees.job_branch import choose_base, read_numstat
from ramherd.act.worktrees.removal import remove_worktree
from ramherd.act.worktrees.worktree_process import explain_failure, stays
from ramherd.core.errors import RamherdError
from ramherd.core.model import Tree
from ramherd.core.record import replace
from ramherd.decide.left_out import choose_listed
from ramherd.system.procfs import read_cwd, read_processes

# Two supervisors may finish the same worktree, after one has died: the second waits.
LOCK_S = 30.0
NOTHING_CHANGED = {"files_changed": 0, "lines_added": 0, "lines_removed": 0}


class LeftAlone(RamherdError):
    """Nothing is committed in this worktree now; the message has the cause."""


def finish(tree: Tree, job: str, most_s: float) -> dict[str, Any]:
    """The result, by the keys of `core.agent_task.SAID`."""
    finishing = Finishing(tree, job, time.monotonic() + most_s)
    try:
        return finishing.run()
    except LeftAlone as error:
        note = f"{error}: left alone"
    except (GitFailed, OSError) as error:
        note = explain_failure(error)
    return {**stays(tree, note), **finishing.try_to_count()}


class Finishing:
    def __init__(self, tree: Tree, job: str, deadline_s: float) -> None:
        self._tree, self._job, self._deadline_s = tree, job, deadline_s
        self._ref = f"refs/heads/{tree.branch}"
        self._git_dir = ""
        # The commit that the job started from.
        self._base = tree.commit
        self._notes: list[str] = []

    def run(self) -> dict[str, Any]:
        if not os.path.lexists(self._tree.path):
            return self._finish_without_directory()
        self._git_dir = self._find_git_dir()
        if not os.path.exists(f"{self._git_dir}/{MARK}"):
            return self._remove()  # incomplete: the agent never worked in it
        with open(f"{self._git_dir}/{MARK}", encoding="utf-8") as mark:
            wait_for_lock(mark, min(self._deadline_s, time.monotonic() + LOCK_S))
            self._base = mark.read().strip() or self._base
            return self._finish()

    def _finish_without_directory(self) -> dict[str, Any]:
        """The worktree was never made, or was removed. Commits on its branch stay."""
        tip = read_git(self._tree.repository, "rev-parse", "--verify", "-q", self._ref)
        if tip in ("", self._base):
            return self._remove()
        return {"worktree": None, "branch": self._tree.branch, **self._count()}

    def _find_git_dir(self) -> str:
        """Without the file `.git`, which an agent may have removed, git would find a repository
        around the worktree.
        """
        with suppress(GitFailed):
            found = self._git("rev-parse", "--show-toplevel", "--absolute-git-dir")
            top, git_dir = found.rstrip("\n").split("\n")
            is_same = os.path.realpath(top) == os.path.realpath(self._tree.path)
            if is_same and "/worktrees/" in git_dir:
                return git_dir
        raise LeftAlone("it is no longer a git worktree")

    def _finish(self) -> dict[str, Any]:
        changes = self._read_changes()
        self._commit(changes)
        listed, more = choose_listed([change.file for change in changes])
        left = [one for one in changes if one.is_left_out and not one.file.is_ignored]
        if not left and not self._notes and self._read_tips() == {self._base}:
            return self._remove()
        if more:
            self._notes.append(f"{more} more paths were left out")
        note = "; ".join(self._notes) or None
        return {**stays(self._tree, ""), "worktree_note": note, "left_out": listed, **self._count()}

    def _remove(self) -> dict[str, Any]:
        if not remove_worktree(self._tree, self._base):
            return stays(self._tree, "nothing was changed in it, and it cannot be removed")
        return {"worktree": None, "branch": None, **NOTHING_CHANGED}

    def _read_changes(self) -> list[Change]:
        """LeftAlone if git is in the middle of an operation."""
        if what := find_operation(self._tree.path):
            raise LeftAlone(f"in the middle of {what}")
        self._remove_stale_locks()
        changes = read_changes_in(self._tree.path)
        if any(change.is_unmerged for change in changes):
            raise LeftAlone("with unresolved conflicts")
        return changes

    def _remove_stale_locks(self) -> None:
        """All processes of the job have ended. A lock that one of them left would block git for
        ever; another process that works in the worktree, such as the user's, may hold it.
        """
        common = self._git("rev-parse", "--path-format=absolute", "--git-common-dir").strip()
        paths = (f"{self._git_dir}/index", f"{self._git_dir}/HEAD", f"{common}/{self._ref}")
        # The last is git's lock on our own index, left if this process was killed.
        locks = (*(f"{path}.lock" for path in paths), f"{self._git_dir}/index.lock.lock")
        for lock in filter(os.path.exists, locks):
            if user := find_process_in(self._tree.path):
                raise LeftAlone(f"{os.path.basename(lock)} is held by process {user}")
            os.unlink(lock)

    def _commit(self, changes: list[Change]) -> None:
        head = read_git(self._tree.path, "rev-parse", "--verify", "-q", "HEAD")
        at = read_git(self._tree.path, "symbolic-ref", "-q", "HEAD")
        if all(change.file.is_ignored for change in changes):
            self._move_branch(at, head, head)
            return
        with self._own_index() as env:
            no_object = "0" * (len(head) or 40)
            left_out = [one for one in changes if one.is_left_out and not one.file.is_ignored]
            resets = render_index_info(left_out, no_object)
            self._git("update-index", "-z", "--index-info", stdin=resets, env=env)
            for option, is_deleted in (("--force-remove", True), ("--replace", False)):
                chosen = [one for one in changes if one.is_deleted is is_deleted]
                self._git(
                    "update-index", "--add", option, "-z", "--stdin", env=env,
                    stdin="".join(f"{one.file.path}\0" for one in chosen if not one.is_left_out),
                    timeout_s=self._left_s(),
                )  # fmt: skip
            written = self._git("write-tree", env=env).strip()
            is_new = not head or written != self._git("rev-parse", "HEAD^{tree}").strip()
            self._move_branch(at, head, self._commit_tree(written, head) if is_new else head)
        for change in changes:
            if "C" in change.file.submodule:
                self._notes.append(f"commits of submodule {change.file.path} are only in it")

    @contextmanager
    def _own_index(self) -> Iterator[dict[str, str]]:
        """A copy of the index, which replaces the index at the end. It has the name of git's lock:
        no other git changes the index meanwhile, and if this process is killed, the index is
        unchanged.
        """
        index, lock = f"{self._git_dir}/index", f"{self._git_dir}/index.lock"
        try:
            copy_file(index, lock)
        except FileExistsError:
            raise LeftAlone("index.lock is held") from None
        try:
            yield {"GIT_INDEX_FILE": lock}
            os.rename(lock, index)
        finally:
            for path in (lock, f"{lock}.lock"):
                with suppress(FileNotFoundError):
                    os.unlink(path)

    def _commit_tree(self, written: str, head: str) -> str:
        """Runs no hook and no editor, and signs nothing."""
        message = f"ramherd: uncommitted changes of {' '.join(self._job.split())}"
        parents = ("-p", head) if head else ()
        made = self._git(
            "commit-tree", *parents, "-m", message, written, env=read_identity(self._tree.path)
        )
        return made.strip()

    def _move_branch(self, at: str, head: str, new: str) -> None:
        """The job's branch gets all commits, even if the agent has checked out another branch, or
        none (`at` is ""). A branch of the user is never changed. If the job's branch has other
        commits, a second branch is made.
        """
        if at == self._ref or at.startswith(f"{self._ref}-"):  # or the second branch
            if new != head:
                self._git("update-ref", "-m", "ramherd", at, new, head)
            return
        if new == head and not self._is_own_work(at, head):
            return
        tip = read_git(self._tree.path, "rev-parse", "--verify", "-q", self._ref)
        target, before = self._ref, tip
        if tip and not self._is_ancestor(tip, new):
            target, before = self._find_free_ref(), ""
            self._notes.append(f"the last changes are on branch {short(target)}")
        self._git("update-ref", "-m", "ramherd", target, new, before)
        self._git("symbolic-ref", "-m", "ramherd", "HEAD", target)

    def _is_own_work(self, at: str, head: str) -> bool:
        """Whether `head` is the agent's own work: on no branch, or on a branch that it made."""
        if not at:
            others = ("--not", "--branches", "--remotes", "--tags")
            return bool(read_git(self._tree.path, "rev-list", "-n", "1", "HEAD", *others))
        log = read_git(self._tree.path, "log", "-g", "--date=unix", "--format=%gd", at, "--")
        begin_s = log.rpartition("@{")[2].rstrip("}")
        made_s = int(os.stat(f"{self._git_dir}/{MARK}").st_mtime)
        return bool(head) and begin_s.isdecimal() and int(begin_s) >= made_s

    def _is_ancestor(self, old: str, new: str) -> bool:
        try:
            self._git("merge-base", "--is-ancestor", old, new)
        except GitFailed as error:
            if error.code != 1:
                raise
            return False
        return True

    def _find_free_ref(self) -> str:
        number = 2
        while read_git(self._tree.path, "rev-parse", "--verify", "-q", f"{self._ref}-{number}"):
            number += 1
        return f"{self._ref}-{number}"

    def _read_tips(self) -> set[str]:
        return set(self._git("rev-parse", "HEAD", self._ref).split())

    def _count(self) -> dict[str, int]:
        """Counts changes from the commit that the job started from to its branch."""
        tip = run_git(self._tree.repository, "rev-parse", "--verify", self._ref).strip()
        base = choose_base(replace(self._tree, commit=self._base), tip)
        files = read_numstat(self._tree.repository, base, tip)
        return {
            "files_changed": len(files), "lines_added": sum(file.added or 0 for file in files),
            "lines_removed": sum(file.removed or 0 for file in files),
        }  # fmt: skip

    def try_to_count(self) -> dict[str, int]:
        try:
            return self._count()
        except GitFailed:
            return {}

    def _left_s(self) -> float:
        return max(self._deadline_s - time.monotonic(), 0.1)

    def _git(
        self, *args: str, stdin: str = "", env: Mapping[str, str] | None = None,
        timeout_s: float = GIT_S,
    ) -> str:  # fmt: skip
        """Runs git in the worktree, and never in a repository around it."""
        around = {"GIT_CEILING_DIRECTORIES": os.path.dirname(self._tree.path)}
        return run_git(
            self._tree.path, *args, stdin=stdin,
            env={**around, **(env or {})}, timeout_s=min(timeout_s, self._left_s()),
        )  # fmt: skip


def wait_for_lock(file: IO[str], deadline_s: float) -> None:
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline_s:
                raise LeftAlone("another ramherd process is using it") from None
            time.sleep(0.05)
        else:
            return


def copy_file(source: str, target: str) -> None:
    """FileExistsError if the target exists. An index that does not exist yet is empty."""
    with open(target, "xb") as copy, suppress(FileNotFoundError), open(source, "rb") as file:
        while chunk := file.read(1 << 20):
            copy.write(chunk)
    if not os.path.getsize(target):
        os.unlink(target)


def find_process_in(path: str) -> int | None:
    """A process whose working directory is in the worktree."""
    real = os.path.realpath(path)
    cwds = ((process.id.pid, read_cwd(process.id.pid)) for process in read_processes())
    return next((pid for pid, cwd in cwds if cwd and f"{cwd}/".startswith(f"{real}/")), None)


def short(ref: str) -> str:
    return ref.removeprefix("refs/heads/")
