"""Cleans up after a run: removes its TMPDIR and its pen.

The files of a TMPDIR are removed in a thread, because a build tree must not block the supervisor's
loop; a cgroup that is still busy is tried again in the next step.
"""

import os
import threading
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from typing import NamedTuple

from ramherd.act.pens import Pen
from ramherd.system.procfs import read_mounts


class CleanedPen(NamedTuple):
    run: str
    residue_bytes: int
    removed: bool = True


class CleanupTask:
    def __init__(self, pen: Pen, tmp: Path) -> None:
        self.pen, self.tmp = pen, tmp
        self.begun = self.tmp_done = False
        self.residue_bytes: int | None = None


class Cleanup:
    def __init__(self) -> None:
        self._tasks: dict[str, CleanupTask] = {}
        self._trees: SimpleQueue[CleanupTask | None] = SimpleQueue()
        self._thread: threading.Thread | None = None

    @property
    def is_busy(self) -> bool:
        return bool(self._tasks)

    def add(self, run: str, pen: Pen, tmp: Path) -> None:
        """Only records the task: the next start does not wait for it."""
        self._tasks[run] = CleanupTask(pen, tmp)

    def _begin(self, task: CleanupTask) -> None:
        task.begun = True
        task.tmp_done = is_gone(task.tmp)
        if not task.tmp_done:
            self._start_thread()
            self._trees.put(task)

    def advance(self, wait_s: float = 0.0) -> list[CleanedPen]:
        """Returns the pens that were removed since the last call."""
        for task in self._tasks.values():
            if not task.begun:
                self._begin(task)
        removed = [
            CleanedPen(run, task.residue_bytes or 0)
            for run, task in self._tasks.items()
            if task.tmp_done and is_removed(task, wait_s)
        ]
        for cleaned in removed:
            del self._tasks[cleaned.run]
        return removed

    def finish(self) -> list[CleanedPen]:
        first = self.advance()
        if self._thread is not None:
            self._trees.put(None)
            self._thread.join()
            self._thread = None
        removed = self.advance(wait_s=2.0)
        stuck = [
            CleanedPen(run, task.residue_bytes or 0, False) for run, task in self._tasks.items()
        ]
        return first + removed + stuck

    def _start_thread(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._remove_trees, daemon=True)
            self._thread.start()

    def _remove_trees(self) -> None:
        while (task := self._trees.get()) is not None:
            with suppress(OSError):
                remove_tree(task.tmp)
            task.tmp_done = True  # or it failed: the pen does not wait for it


def is_removed(task: CleanupTask, wait_s: float) -> bool:
    """First reads the memory that the run left in tmpfs: it stays charged to the fleet."""
    if task.residue_bytes is None:
        task.residue_bytes = task.pen.residue_bytes()
    return task.pen.remove(wait_s)


def is_gone(tmp: Path) -> bool:
    """Most runs leave an empty TMPDIR, or never had one."""
    try:
        os.rmdir(tmp)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def remove_tree(path: Path) -> None:
    """A run may have removed its own permissions (Go's module cache does), or replaced its TMPDIR
    by a link: the target of the link is not ours.
    """
    if path.is_symlink():
        path.unlink()
        return
    if has_mounts(path):
        return
    open_up(path)
    for root, dirs, _files in os.walk(path):
        for name in dirs:
            open_up(Path(root, name))
    # `shutil.rmtree` would work, but importing `shutil` costs 1 MB for its compression modules.
    with suppress(OSError):
        for _root, dirs, files, fd in os.fwalk(path, topdown=False):
            for name in (*files, *dirs):
                remove_entry(name, fd)
        path.rmdir()


def remove_entry(name: str, directory: int) -> None:
    """Removes a file, a link, or an empty directory, if possible."""
    with suppress(OSError):
        try:
            os.unlink(name, dir_fd=directory)
        except (IsADirectoryError, PermissionError):  # Linux, macOS
            os.rmdir(name, dir_fd=directory)


def has_mounts(path: Path) -> bool:
    """Whether a file system is mounted at or below it: those files do not belong to the run."""
    real = os.path.realpath(path)
    return any(point == real or point.startswith(f"{real}/") for point, _kind in read_mounts())


def open_up(directory: Path) -> None:
    """Makes the directory accessible before the walk enters it."""
    try:
        if not directory.is_symlink():
            directory.chmod(0o700)
    except OSError:
        pass
