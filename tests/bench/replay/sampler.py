"""Looks at the arena and at the tool while a contest goes on."""

import threading
import time
from collections.abc import Sequence

from bench.replay.arena import Arena
from bench.replay.kernel_log import KernelLog
from bench.replay.meminfo import Meminfo
from ramherd.system.proc_stat import PROC, Root, read_children
from ramherd.system.procfs import (
    TICKS_PER_S,
    read_cmdline,
    read_peak_rss_bytes,
    read_process,
)

# A second of trace at 60 times the pace: what a tool that looks once a second would see.
EVERY_S = 1 / 60
# The tree of cgroups and the tool's own processes, which take longer to read.
TREE_EVERY_S = 0.1


class Sampler(threading.Thread):
    """`samples` are (seconds, bytes of all), `costs` (seconds, processes, CPU s of the tool)."""

    def __init__(self, arena: Arena, meminfo: Meminfo, tool_pid: int) -> None:
        super().__init__(daemon=True)
        self.samples: list[tuple[float, int]] = []
        self.costs: list[tuple[float, int, float]] = []
        self.kill_times_s: list[float] = []
        self.rss_peak_bytes: dict[int, int] = {}
        self._cpu_s: dict[int, float] = {}
        self._arena, self._meminfo, self._tool_pid = arena, meminfo, tool_pid
        self._log = KernelLog(arena.name)
        self._start = time.monotonic()
        self._over = threading.Event()

    @property
    def oom_kills(self) -> int:
        return max(self._arena.seen_kills, self._log.kills)

    @property
    def cpu_s(self) -> float:
        return sum(self._cpu_s.values())

    @property
    def rss_bytes(self) -> int:
        return sum(self.rss_peak_bytes.values())

    def run(self) -> None:
        tree_due = 0.0
        while not self._over.wait(EVERY_S):
            at_s = time.monotonic() - self._start
            used = self._arena.used_bytes()
            self._meminfo.update(used)
            self.samples.append((at_s, used))
            if at_s >= tree_due:
                self.look(at_s)
                tree_due = at_s + TREE_EVERY_S

    def look(self, at_s: float) -> None:
        before = self.oom_kills
        self._arena.look_for_kills()
        self._log.read_on()
        self.kill_times_s += [at_s] * (self.oom_kills - before)
        for pid in tool_pids(self._tool_pid):
            self.rss_peak_bytes[pid] = max(
                self.rss_peak_bytes.get(pid, 0), read_peak_rss_bytes(pid)
            )
            self._cpu_s[pid] = max(self._cpu_s.get(pid, 0.0), read_cpu_s(pid))
        self.costs.append((at_s, len(self._arena.pids()), self.cpu_s))

    def stop(self) -> None:
        """After a last look: what was killed at the end counts."""
        self._over.set()
        self.join()
        self.look(time.monotonic() - self._start)
        self._log.close()


def tool_pids(pid: int) -> list[int]:
    """The tool, and ramherd's keeper. Programs that others start to look at the memory are not
    counted, which is kind to them.
    """
    return [pid, *(child for child in read_children(pid) or () if is_keeper(child))]


def is_keeper(pid: int) -> bool:
    return any("keeper" in word for word in read_cmdline(pid) or ())


def read_cpu_s(pid: int, proc: Root = PROC) -> float:
    """Of the process itself, without its children."""
    found = read_process(pid, proc)
    return found.cpu_ticks / TICKS_PER_S if found is not None else 0.0


def share_of_core(costs: Sequence[tuple[float, int, float]], runs: int) -> float | None:
    """CPU of the tool while at least so many processes were there."""
    busy = [(at_s, cpu_s) for at_s, processes, cpu_s in costs if processes >= runs]
    if len(busy) < 2 or busy[-1][0] == busy[0][0]:
        return None
    return (busy[-1][1] - busy[0][1]) / (busy[-1][0] - busy[0][0])
