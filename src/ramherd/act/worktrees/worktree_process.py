"""The process that finishes one worktree, or merges the branches that a worktree starts from: git
runs in a pen, with limits on its memory and time, and does not block the supervisor's loop.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ramherd.act.pens import Pen
from ramherd.act.user_command import open_input
from ramherd.core.model import Job, Tree
from ramherd.core.units import MIB
from ramherd.system.procfs import read_process
from ramherd.system.termination import LOOP_REAP_S, reap

PROGRAM = str(Path(__file__).parent / "__main__.py")
# The index of a repository with 500,000 files takes 100 MB in git's memory.
LIMIT_BYTES = 512 * MIB
# Most worktrees take 0.2 s; a filter such as git-lfs reads each file. The program then gives up.
MOST_S = 120.0
# A program that does not give up is killed.
KILL_AFTER_S = MOST_S + 10.0


class WorktreeProcess:
    """`name` is the name of its pen, `task` is from `finish_task` or `merge_task`. The task is
    passed in a file below `folder`: 400 jobs to merge do not fit in an argument. OSError: the
    process could not be started.
    """

    def __init__(
        self, name: str, job: Job, pen: Pen, at_s: float, *, task: Mapping[str, Any], folder: Path
    ) -> None:
        self.name, self.job, self.pen, self.started_s = name, job, pen, at_s
        self.task, asked = task, {"join": pen.spawn_part()["join"], **task}
        stdin = open_input(folder, name, json.dumps(asked).encode())
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-X", "utf8", PROGRAM],
                env={**os.environ, "RAMHERD_RUN": name}, start_new_session=True,
                stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            )  # fmt: skip
        finally:
            os.close(stdin)
        assert self._process.stdout is not None
        self._output = self._process.stdout
        self._printed = b""
        os.set_blocking(self.fileno(), False)
        if (process := read_process(self._process.pid)) is not None:
            pen.set_first(process.id)

    def fileno(self) -> int:
        """Readable when the process has printed something, or has ended."""
        return self._output.fileno()

    def receive(self) -> dict[str, Any] | None:
        """The result, once the process has ended; None until then. `error` is why it has none."""
        with suppress(BlockingIOError):
            while chunk := os.read(self.fileno(), 1 << 16):
                self._printed += chunk
            self._close()
            return parse_result(self._printed) or {
                "error": describe_end(self._printed, self._process.returncode)
            }
        return None

    def kill(self) -> None:
        """Kills the process with all its children."""
        self.pen.kill()
        self._process.kill()
        self._close()

    def _close(self) -> None:
        """A process that hangs in the kernel, on a file system that does not answer, is left."""
        self._output.close()
        reap(self._process, LOOP_REAP_S)

    def is_over_limit(self) -> bool:
        """Also works where the kernel does not enforce the limit."""
        return self.pen.read().used_bytes > LIMIT_BYTES


def finish_task(job: Job) -> dict[str, Any]:
    return {"finish": {"tree": asdict(tree_of(job)), "job": job.name, "most_s": MOST_S}}


def merge_task(job: Job, parents: Iterable[tuple[Job, bool]]) -> dict[str, Any]:
    """`parents` are the jobs whose branches are merged, in their order, each with whether it has
    changes.
    """
    trees = [(one.name, asdict(tree_of(one)), is_changed) for one, is_changed in parents]
    return {"merge": {"top": tree_of(job).repository, "parents": trees}}


def tree_of(job: Job) -> Tree:
    assert job.tree is not None
    return job.tree


def parse_result(printed: bytes) -> dict[str, Any] | None:
    """The result is the last line: warnings of Python may precede it."""
    lines = printed.splitlines()
    try:
        found = json.loads(lines[-1]) if lines else None
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def describe_end(printed: bytes, status: int) -> str:
    lines = printed.decode(errors="replace").splitlines()
    return lines[-1].strip() if lines else f"the process ended with status {status}"


def explain_unfinished(job: Job, why: str) -> dict[str, Any]:
    return stays(tree_of(job), explain_failure(why))


def explain_failure(why: object) -> str:
    return f"changes were not committed: {why}"


def stays(tree: Tree, note: str) -> dict[str, Any]:
    """Nothing is removed: the worktree stays as the job left it. What an earlier run changed may be
    merged, what this one changed is not.
    """
    return {
        "worktree": tree.path, "branch": tree.branch, "worktree_note": note, "merged_into": None,
    }  # fmt: skip
