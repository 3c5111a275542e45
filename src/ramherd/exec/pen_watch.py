"""The pen of a session: its processes, their memory, and the peak."""

import os
import resource

from ramherd.act.pens import Pen
from ramherd.act.pens.polling import PollingFleet
from ramherd.act.pens.selection import Fleet
from ramherd.core.model import PenReading, ProcId
from ramherd.system.proc_stat import read_children
from ramherd.system.procfs import read_process, read_processes


class PenWatch:
    def __init__(self, fleet: Fleet, pen: Pen, run: str, guard: int) -> None:
        self.fleet, self.pen, self._run, self._guard = fleet, pen, run, guard

    def read(self) -> PenReading:
        """Read seldom, so the measured peak is too small. The kernel's own peak of the pen counts
        page cache; its peak of the largest process does not.
        """
        self._adopt()
        self.fleet.scan()
        seen = self.pen.read()
        largest = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss << 10
        peak = max(seen.peak_bytes, min(seen.charged_bytes, largest))
        return PenReading(
            seen.used_bytes, peak, seen.procs, seen.kernel_kills, seen.limit_hit,
            seen.charged_bytes, seen.cache_bytes,
        )  # fmt: skip

    def _adopt(self) -> None:
        """On a polling pen we are the subreaper: each child of ours except the guard belongs to the
        session, whatever its environment is.
        """
        if not isinstance(self.fleet, PollingFleet):
            return
        for proc in find_children():
            if proc.pid != self._guard:
                self.fleet.set_owner(proc, self._run)


def find_children() -> list[ProcId]:
    pids = read_children(os.getpid())
    if pids is None:
        return [process.id for process in read_processes() if process.ppid == os.getpid()]
    return [process.id for pid in pids if (process := read_process(pid)) is not None]
