"""The one memory cgroup in which a tool and its agents live, on cgroup v1.

There, `oom_kill` counts the kills of one cgroup and not of those below it, and it goes with the
cgroup. So the whole tree is looked at on the way, and the kernel's log is read as well.
"""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from ramherd.core.errors import RamherdError
from ramherd.core.units import format_size
from ramherd.measure.cgroups import parse_file_bytes_v1, parse_flat, read_trees
from ramherd.system.procfs import read_meminfo

CLEAR_S = 20.0


@dataclass
class Arena:
    path: Path
    limit_bytes: int
    # The highest count seen of each cgroup in the tree, by inode: a name may come again.
    kills: dict[int, int] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """As the kernel's log names it."""
        return "/" + str(self.path.relative_to(mount_point()))

    @property
    def seen_kills(self) -> int:
        return sum(self.kills.values())

    def used_bytes(self) -> int:
        """Without page cache, as `used` is everywhere in ramherd."""
        usage = int((self.path / "memory.usage_in_bytes").read_text())
        return max(usage - parse_file_bytes_v1((self.path / "memory.stat").read_bytes()), 0)

    def look_for_kills(self) -> None:
        for directory in self.tree():
            try:
                inode = directory.stat().st_ino
                counts = parse_flat((directory / "memory.oom_control").read_text())
            except OSError:
                continue
            self.kills[inode] = max(self.kills.get(inode, 0), counts.get("oom_kill", 0))

    def pids(self) -> list[int]:
        found: list[int] = []
        for directory in self.tree():
            try:
                found.extend(int(pid) for pid in (directory / "cgroup.procs").read_text().split())
            except OSError:
                continue
        return found

    def tree(self) -> Iterator[Path]:
        for directory, _below, _files in os.walk(self.path):
            yield Path(directory)

    def remove(self) -> None:
        """Everything in it was started for this contest, and ends with it."""
        deadline = time.monotonic() + CLEAR_S
        while self.path.exists():
            pids = self.pids()
            for pid in pids:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            for directory in sorted(self.tree(), reverse=True):
                # Busy until the last process is gone; or the tool was quicker.
                with suppress(OSError):
                    directory.rmdir()
            if time.monotonic() > deadline:
                raise RamherdError(
                    f"{self.path} cannot be cleared: {len(pids)} processes do not end"
                )
            time.sleep(0.02)


def mount_point() -> Path:
    own = own_memory_cgroup()
    while own.parent.joinpath("memory.usage_in_bytes").exists():
        own = own.parent
    return own


def own_memory_cgroup() -> Path:
    memory = read_trees().v1.get("memory")
    if memory is None or not os.access(memory, os.W_OK) or os.geteuid():
        raise RamherdError(
            "the benchmark needs root and a memory cgroup of version 1",
            hint="make bench-sim runs anywhere",
        )
    return memory


def make_arena(limit_bytes: int) -> Arena:
    _total, available = read_meminfo()
    if limit_bytes > available:
        raise RamherdError(
            f"the benchmark needs {format_size(limit_bytes)} of memory, "
            f"{format_size(available)} are available"
        )
    path = own_memory_cgroup() / f"replay-{os.getpid()}"
    path.mkdir()
    (path / "memory.limit_in_bytes").write_text(str(limit_bytes))
    return Arena(path, limit_bytes)
