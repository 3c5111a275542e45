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


@dataclass(frozen=True, slots=True)
class Swept:
    run: str
    residue_bytes: int
    removed: bool = True


@dataclass
class Sweep:
    pen: Pen
    tmp: Path
    residue_bytes: int | None = None


class Sweeper:
    def __init__(self) -> None:
        self._sweeps: dict[str, Sweep] = {}
        self._trees: SimpleQueue[Path | None] = SimpleQueue()
        self._thread: threading.Thread | None = None

    @property
    def is_busy(self) -> bool:
        return bool(self._sweeps)

    def sweep(self, run: str, pen: Pen, tmp: Path) -> None:
        self._sweeps[run] = Sweep(pen, tmp)
        if not is_gone(tmp):
            self._start_thread()
            self._trees.put(tmp)

    def advance(self, wait_s: float = 0.0) -> list[Swept]:
        """Those that are through since the last time."""
        through = [
            Swept(run, sweep.residue_bytes or 0)
            for run, sweep in self._sweeps.items()
            if not sweep.tmp.exists() and is_removed(sweep, wait_s)
        ]
        for swept in through:
            del self._sweeps[swept.run]
        return through

    def finish(self) -> list[Swept]:
        if self._thread is not None:
            self._trees.put(None)
            self._thread.join()
            self._thread = None
        through = self.advance(wait_s=2.0)
        stuck = [Swept(run, sweep.residue_bytes or 0, False) for run, sweep in self._sweeps.items()]
        return through + stuck

    def _start_thread(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._remove_trees, daemon=True)
            self._thread.start()

    def _remove_trees(self) -> None:
        while (tree := self._trees.get()) is not None:
            remove_tree(tree)


def is_removed(sweep: Sweep, wait_s: float) -> bool:
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
    """A run may have taken its own write permission away (Go's module cache does)."""
    for root, _dirs, _files in os.walk(path):
        try:
            os.chmod(root, 0o700)
        except OSError:
            pass
    shutil.rmtree(path, ignore_errors=True)
