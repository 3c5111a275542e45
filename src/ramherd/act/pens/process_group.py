"""Holding a process tree by its cgroup: who is in it, signals, freezing, killing.

On a cgroup2 directory, with or without controllers, freezing is `cgroup.freeze` and killing is
atomic (`cgroup.kill`, kernel 5.14); on older machines the v1 freezer does both.
"""

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

from ramherd.act.pens.open_files import KeptFiles
from ramherd.system.files import try_control, write_control
from ramherd.system.procfs import read_text

# Freezing takes some milliseconds; a task asleep in the kernel's OOM handling never freezes.
FREEZE_S = 0.2


class Holder:
    def __init__(self, path: Path, *, freezer: bool = False) -> None:
        self._path = path
        self._freezer = freezer
        self._files = KeptFiles(path)

    def pids(self) -> list[int]:
        """Also in cgroups that a run made below its own: each is one more link to ours."""
        found = [int(pid) for pid in self._files.read("cgroup.procs").split()]
        if os.stat(self._path).st_nlink > 2:
            for path in self._path.glob("**/*/cgroup.procs"):
                found += [int(pid) for pid in (read_text(path) or "").split()]
        return found

    def on_loss(self) -> dict[str, list[tuple[str, str]]]:
        """What the keeper writes when there is no supervisor any more."""
        kill = [] if self._freezer else [(f"{self._path}/cgroup.kill", "1")]
        return {"thaw": [self._freeze_write(frozen=False)], "kill": kill}

    def signal(self, number: int) -> int:
        """To every process; how many got it. The list is read again once the processes are
        pinned: a pid of the first list may be someone else by then.
        """
        pinned = {pid: fd for pid in self.pids() if (fd := pin(pid)) is not None}
        try:
            reached = [pid for pid in self.pids() if pid in pinned]
            for pid in reached:
                with suppress(ProcessLookupError):
                    signal.pidfd_send_signal(pinned[pid], number)
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
        """Everything, whatever it forks meanwhile: at once on cgroup2; else frozen, so that
        nothing forks, then killed, which takes effect on thawing.
        """
        if not self._freezer:
            try_control(f"{self._path}/cgroup.kill", "1")
            return
        self.freeze()
        deadline = time.monotonic() + FREEZE_S
        while b"FROZEN" not in self._files.read("freezer.state") and time.monotonic() < deadline:
            time.sleep(0.001)
        self.signal(signal.SIGKILL)
        self.thaw()

    def close(self) -> None:
        self._files.close()


def pin(pid: int) -> int | None:
    try:
        return os.pidfd_open(pid)
    except OSError:
        return None
