"""What is left to do after a run: removing its TMPDIR and its pen.

The files of a TMPDIR are removed in a thread, because the supervisor's loop must not stand
still for a build tree; a cgroup that is still busy is tried again in the next step.
"""

import os
import shutil
import threading
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

from ramherd.act.pens import Pen
from ramherd.measure.cgroups import read_mount_points


@dataclass(frozen=True, slots=True)
class CleanedPen:
    run: str
    residue_bytes: int
    removed: bool = True


@dataclass
class CleanupTask:
    pen: Pen
    tmp: Path
    begun: bool = False
    tmp_done: bool = False
    residue_bytes: int | None = None


class Cleanup:
    def __init__(self) -> None:
        self._sweeps: dict[str, CleanupTask] = {}
        self._trees: SimpleQueue[CleanupTask | None] = SimpleQueue()
        self._thread: threading.Thread | None = None

    @property
    def is_busy(self) -> bool:
        return bool(self._sweeps)

    def sweep(self, run: str, pen: Pen, tmp: Path) -> None:
        """Noted only: the next start does not wait for it."""
        self._sweeps[run] = CleanupTask(pen, tmp)

    def _begin(self, sweep: CleanupTask) -> None:
        sweep.begun = True
        sweep.tmp_done = is_gone(sweep.tmp)
        if not sweep.tmp_done:
            self._start_thread()
            self._trees.put(sweep)

    def advance(self, wait_s: float = 0.0) -> list[CleanedPen]:
        """Those that are through since the last time."""
        for sweep in self._sweeps.values():
            if not sweep.begun:
                self._begin(sweep)
        through = [
            CleanedPen(run, sweep.residue_bytes or 0)
            for run, sweep in self._sweeps.items()
            if sweep.tmp_done and is_removed(sweep, wait_s)
        ]
        for cleaned in through:
            del self._sweeps[cleaned.run]
        return through

    def finish(self) -> list[CleanedPen]:
        first = self.advance()
        if self._thread is not None:
            self._trees.put(None)
            self._thread.join()
            self._thread = None
        through = self.advance(wait_s=2.0)
        stuck = [
            CleanedPen(run, sweep.residue_bytes or 0, False) for run, sweep in self._sweeps.items()
        ]
        return first + through + stuck

    def _start_thread(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._remove_trees, daemon=True)
            self._thread.start()

    def _remove_trees(self) -> None:
        while (sweep := self._trees.get()) is not None:
            remove_tree(sweep.tmp)
            sweep.tmp_done = True  # or it cannot be done: the pen does not wait for it


def is_removed(sweep: CleanupTask, wait_s: float) -> bool:
    """What the run left in tmpfs is read first: it stays charged to the fleet afterwards."""
    if sweep.residue_bytes is None:
        sweep.residue_bytes = sweep.pen.residue_bytes()
    return sweep.pen.remove(wait_s)


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
    """A run may have taken its own permissions away (Go's module cache does), or put a link in
    the place of its TMPDIR: where that leads to is not ours.
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
    shutil.rmtree(path, ignore_errors=True)


def has_mounts(path: Path) -> bool:
    """Whether something is mounted at it or below: what is there is somebody else's."""
    real = os.path.realpath(path)
    return any(point == real or point.startswith(f"{real}/") for point in read_mount_points())


def open_up(directory: Path) -> None:
    """Before the walk goes into it."""
    try:
        if not directory.is_symlink():
            directory.chmod(0o700)
    except OSError:
        pass
