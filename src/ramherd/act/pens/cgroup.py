"""A pen made of cgroups: one part counts and limits memory, another holds the processes."""

import errno
import os
import signal
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from ramherd.act.pens import Pen, SpawnPart
from ramherd.core.errors import NoPen
from ramherd.core.model import PenReading, ProcId
from ramherd.system.files import remove_dirs, try_control, write_control
from ramherd.system.pidfd import open_pid, send_signal, signal_processes
from ramherd.system.procfs import is_running, read_processes, read_text

if TYPE_CHECKING:
    from ramherd.act.pens.cgroup1 import Cgroup1Memory
    from ramherd.act.pens.cgroup2 import Cgroup2Memory

# Freezing takes some milliseconds; a task asleep in the kernel's OOM handling never freezes.
FREEZE_S = 0.2
# A file shorter than this was read whole.
WHOLE_BYTES = 2048


class CgroupFiles:
    """Files of a cgroup that are read often, kept open: reading 50 pens then costs 0.05 ms instead
    of 0.36. Marks are armed in threads, so two threads may read the same file at a time.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fds: dict[str, int] = {}
        self._lock = Lock()
        self._closed = False

    def fd(self, name: str) -> int:
        with self._lock:
            if self._closed:
                raise FileNotFoundError(errno.ENOENT, "its pen was removed", str(self._path))
            if name not in self._fds:
                self._fds[name] = os.open(f"{self._path}/{name}", os.O_RDONLY | os.O_CLOEXEC)
            return self._fds[name]

    def read(self, name: str) -> bytes:
        fd = self.fd(name)
        data = os.pread(fd, 1 << 16, 0)
        # The kernel fills a page before it stops between two lines.
        if len(data) < WHOLE_BYTES:
            return data
        while more := os.pread(fd, 1 << 16, len(data)):
            data += more
        return data

    def close(self) -> None:
        """The cgroup was removed: no file is opened after this."""
        with self._lock:
            self._closed = True
            for fd in self._fds.values():
                os.close(fd)
            self._fds.clear()


class CgroupProcesses:
    """The processes of a pen: their list, signals, freezing, killing.

    On a cgroup2 directory, with or without controllers, freezing is `cgroup.freeze` and killing is
    atomic (`cgroup.kill`, kernel 5.14); on older machines the v1 freezer does both.
    """

    def __init__(self, path: Path, *, freezer: bool = False) -> None:
        self._path = path
        self._freezer = freezer
        self._files = CgroupFiles(path)

    def pids(self) -> list[int]:
        """Includes cgroups that a run made below its own: each adds a link to our directory."""
        found = [int(pid) for pid in self._files.read("cgroup.procs").split()]
        if os.stat(self._path).st_nlink > 2:
            for path in self._path.glob("**/*/cgroup.procs"):
                found += [int(pid) for pid in (read_text(path) or "").split()]
        return found

    def on_loss(self) -> dict[str, list[tuple[str, str]]]:
        """The files that the keeper writes when there is no supervisor any more."""
        kill = [] if self._freezer else [(f"{self._path}/cgroup.kill", "1")]
        return {"thaw": [self._freeze_write(frozen=False)], "kill": kill}

    def signal(self, number: int) -> int:
        """Signals every process and returns their number. The list is read again once the processes
        are pinned: a pid of the first list may belong to another process by then.
        """
        pinned = {pid: fd for pid in self.pids() if (fd := open_pid(pid)) is not None}
        try:
            reached = [pid for pid in self.pids() if pid in pinned]
            for pid in reached:
                send_signal(pinned[pid], number)
        finally:
            for fd in pinned.values():
                os.close(fd)
        return len(reached)

    def freeze(self) -> None:
        write_control(*self._freeze_write(frozen=True))

    def thaw(self) -> None:
        write_control(*self._freeze_write(frozen=False))

    def _freeze_write(self, *, frozen: bool) -> tuple[str, str]:
        if self._freezer:
            return f"{self._path}/freezer.state", "FROZEN" if frozen else "THAWED"
        return f"{self._path}/cgroup.freeze", "1" if frozen else "0"

    def kill(self) -> None:
        """Kills all processes, including those forked meanwhile: at once on cgroup2; else they are
        frozen, so that none forks, then killed, which takes effect on thawing.
        """
        if not self._freezer:
            if not try_control(f"{self._path}/cgroup.kill", "1"):
                os.stat(self._path)
            return
        self.freeze()
        deadline = time.monotonic() + FREEZE_S
        while b"FROZEN" not in self._files.read("freezer.state") and time.monotonic() < deadline:
            time.sleep(0.001)
        self.signal(signal.SIGKILL)
        self.thaw()

    def close(self) -> None:
        self._files.close()


class CgroupPen:
    def __init__(
        self,
        kind: str,
        paths: Mapping[str, Path],
        memory: "Cgroup1Memory | Cgroup2Memory",
        processes: CgroupProcesses,
    ) -> None:
        self.kind = kind
        self._paths = dict(paths)
        self._memory = memory
        self._processes = processes
        self._first: ProcId | None = None
        self._removed = False

    def spawn_part(self) -> SpawnPart:
        return {
            "join": [f"{path}/cgroup.procs" for path in self._paths.values()],
            "on_loss": self._processes.on_loss(),
            "dirs": self.dirs(),
        }

    def dirs(self) -> list[str]:
        return [str(path) for path in self._paths.values()]

    def set_first(self, first: ProcId) -> None:
        """Needed only if another program moves the run and removes its cgroup."""
        self._first = first

    def set_empty(self) -> None:
        """Not needed: the kernel lists the processes of a cgroup."""

    def read(self) -> PenReading:
        """The memory of a pen that another process removed is unknown."""
        try:
            return self._memory.read(len(self._processes.pids()))
        except OSError as error:
            raise_unless_gone(error)
            return PenReading(procs=len(self._processes_elsewhere()))

    def read_memory(self) -> PenReading:
        """Omits the number of processes: a fleet would have to read a file for each pen."""
        try:
            return self._memory.read(0)
        except OSError as error:
            raise_unless_gone(error)
            return PenReading()

    def _processes_elsewhere(self) -> list[ProcId]:
        """The processes of a run that was moved out of its cgroup before the cgroup was removed:
        its session, while its first process lives. After that, another session may have the number.
        """
        first = self._first
        if first is None or self._removed or not is_running(first):
            return []
        return [proc.id for proc in read_processes() if proc.is_alive and proc.sid == first.pid]

    def pids(self) -> list[int]:
        try:
            return self._processes.pids()
        except OSError as error:
            raise_unless_gone(error)
            return [proc.pid for proc in self._processes_elsewhere()]

    def set_limit(self, limit_bytes: int) -> None:
        self._memory.set_limit(limit_bytes)

    def set_grant(self, mark_bytes: int, most_bytes: int) -> None:
        """The first grant has to succeed; later, a pen that is gone cannot be limited."""
        try:
            self._memory.set_grant(mark_bytes, most_bytes)
        except OSError as error:
            if self._first is None:
                raise
            raise_unless_gone(error)

    def grant_fd(self) -> int | None:
        return self._memory.grant_fd()

    def clear_event(self) -> None:
        self._memory.clear_event()

    def trim(self, to_bytes: int) -> None:
        self._memory.trim(to_bytes)

    @property
    def can_reclaim(self) -> bool:
        return self._memory.can_reclaim

    def reclaim(self, most_bytes: int) -> None:
        self._memory.reclaim(most_bytes)

    @property
    def arms_slowly(self) -> bool:
        return self.kind == "cgroup1"

    def arm(self) -> int | None:
        return self._memory.arm()

    def set_event(self, event: int) -> None:
        """A pen that is gone needs no event."""
        if self._removed:
            os.close(event)
        else:
            self._memory.set_event(event)

    def signal(self, number: int) -> int:
        return self._act(lambda: self._processes.signal(number), number)

    def freeze(self) -> None:
        self._act(self._processes.freeze, signal.SIGSTOP)

    def thaw(self) -> None:
        self._act(self._processes.thaw, signal.SIGCONT)

    def kill(self) -> None:
        self._act(self._processes.kill, signal.SIGKILL)

    def _act(self, on_cgroup: Callable[[], int | None], number: int) -> int:
        """Acts on the cgroup. If it was removed, signals the processes that were moved out of it.
        Returns how many were signalled.
        """
        try:
            return on_cgroup() or 0
        except OSError as error:
            raise_unless_gone(error)
            return signal_processes(self._processes_elsewhere(), number)

    def close(self) -> None:
        """Closes the files only."""
        self._memory.close()
        self._processes.close()

    def residue_bytes(self) -> int:
        """Memory that the run left in tmpfs: it stays charged to the fleet when the pen is gone."""
        try:
            return self._memory.residue_bytes()
        except OSError:
            return 0

    def remove(self, wait_s: float = 2.0) -> bool:
        """A pen that could not be removed is still read, and removed later."""
        self._removed = self._removed or remove_dirs(self.dirs(), wait_s)
        if self._removed:
            self.close()
        return self._removed

    def record(self) -> dict[str, Any]:
        return {"kind": self.kind, "paths": {n: str(p) for n, p in self._paths.items()}}


class CgroupFleet:
    """The parents of all pens; counted, limited and removed like a pen. `make_parents` makes the
    missing ones, `make_pen` makes the cgroups of one run; `leave` undoes the changes around the
    fleet.
    """

    kernel_limits = True
    soon_s = 0.01

    def __init__(
        self,
        make_parents: Callable[[], CgroupPen],
        make_pen: Callable[[str], CgroupPen],
        leave: Callable[[], None],
    ) -> None:
        self._make_parents = make_parents
        self._make_pen = make_pen
        self._leave = leave
        self._whole = make_parents()
        self.kind = self._whole.kind
        self._limit_bytes: int | None = None

    def add(self, run: str, limit_bytes: int | None) -> CgroupPen:
        try:
            pen = self._make_pen(run)
        except OSError as error:
            raise_unless_gone(error)
            self._make_again()
            pen = self._make_pen(run)
        if limit_bytes is not None:
            try:
                pen.set_limit(limit_bytes)
            except OSError:
                pen.remove(0.0)
                raise
        return pen

    def _make_again(self) -> None:
        """Called when another program has removed some or all of the fleet's own cgroups."""
        whole = self._make_parents()
        self._whole.close()
        self._whole = whole
        if self._limit_bytes is not None:
            whole.set_limit(self._limit_bytes)

    def scan(self) -> None:
        """Not needed: the kernel lists the processes of each pen."""

    def read(self) -> PenReading:
        """Reads the memory of the fleet. Each pen counts its own processes."""
        return self._whole.read_memory()

    def set_limit(self, limit_bytes: int) -> None:
        """A fleet that is gone gets the limit as soon as it is made again."""
        self._limit_bytes = limit_bytes
        try:
            self._whole.set_limit(limit_bytes)
        except OSError as error:
            raise_unless_gone(error)

    def set_keeper(self, keeper: ProcId) -> None:
        """The keeper stays outside: it is not a run."""

    def dirs(self) -> list[str]:
        return self._whole.dirs()

    def remove(self) -> bool:
        removed = self._whole.remove()
        self._leave()
        return removed

    def record(self) -> dict[str, Any]:
        return self._whole.record()


def raise_unless_gone(error: OSError) -> None:
    """A cgroup that another process removed is not an error."""
    if error.errno not in (errno.ENODEV, errno.ENOENT):
        raise error


def limit_pids(pen: Pen, most: int) -> bool:
    """Limits the processes of a pen: the same file in cgroup v1 and v2. False if the kernel does
    not enforce it.
    """
    wrote = [try_control(f"{path}/pids.max", str(most)) for path in pen.spawn_part()["dirs"]]
    return any(wrote)


def refuse_read_only(own: Path) -> None:
    """Most container engines mount cgroups read-only: this error differs from missing rights."""
    if os.statvfs(own).f_flag & os.ST_RDONLY:
        raise NoPen(
            f"the cgroup {own} is mounted read-only",
            hint="let the container have its cgroup tree writable, or pass --pen polling",
        )
