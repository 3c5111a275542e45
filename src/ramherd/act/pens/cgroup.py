"""A pen made of cgroups: one part counts and limits memory, another holds the processes."""

import errno
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from ramherd.act.pens import SpawnPart
from ramherd.act.pens.process_group import Holder
from ramherd.core.errors import NoPen
from ramherd.core.model import PenReading, ProcId
from ramherd.system.files import remove_dirs


def refuse_read_only(own: Path) -> None:
    """As most container engines mount it: to be told apart from a lack of rights."""
    if os.statvfs(own).f_flag & os.ST_RDONLY:
        raise NoPen(
            f"the cgroup {own} is mounted read-only",
            hint="let the container have its cgroup tree writable, or pass --pen polling",
        )


class Memory(Protocol):
    """The memory part of cgroup v1 or v2."""

    def read(self, procs: int) -> PenReading: ...
    def set_limit(self, limit_bytes: int) -> None: ...
    def set_grant(self, mark_bytes: int, most_bytes: int) -> None: ...
    def grant_fd(self) -> int | None: ...
    def clear_event(self) -> None: ...
    def trim(self, to_bytes: int) -> None: ...
    def arm(self) -> int | None: ...
    def take_event(self, event: int) -> None: ...
    def residue_bytes(self) -> int: ...
    def close(self) -> None: ...


class CgroupPen:
    def __init__(
        self, kind: str, paths: Mapping[str, Path], memory: Memory, holder: Holder
    ) -> None:
        self._kind = kind
        self._paths = dict(paths)
        self._memory = memory
        self._holder = holder
        self._removed = False

    def spawn_part(self) -> SpawnPart:
        return {
            "join": [f"{path}/cgroup.procs" for path in self._paths.values()],
            "on_loss": self._holder.on_loss(),
            "dirs": self.dirs(),
        }

    def dirs(self) -> list[str]:
        return [str(path) for path in self._paths.values()]

    def note_start(self, first: ProcId) -> None:
        """Nothing to remember: the kernel does."""

    def note_empty(self) -> None:
        """The kernel knows who is in it, whoever their parents are."""

    def read(self) -> PenReading:
        """A pen that somebody removed is empty."""
        return self._read(lambda: self._memory.read(len(self._holder.pids())))

    def read_memory(self) -> PenReading:
        """Without looking who is in it: of a whole fleet that takes a file for each pen."""
        return self._read(lambda: self._memory.read(0))

    def _read(self, read: Callable[[], PenReading]) -> PenReading:
        try:
            return read()
        except OSError as error:
            if error.errno not in (errno.ENODEV, errno.ENOENT):
                raise
            return PenReading()

    def pids(self) -> list[int]:
        return self._holder.pids()

    def set_limit(self, limit_bytes: int) -> None:
        self._memory.set_limit(limit_bytes)

    def set_grant(self, mark_bytes: int, most_bytes: int) -> None:
        self._memory.set_grant(mark_bytes, most_bytes)

    def grant_fd(self) -> int | None:
        return self._memory.grant_fd()

    def clear_event(self) -> None:
        self._memory.clear_event()

    def trim(self, to_bytes: int) -> None:
        self._memory.trim(to_bytes)

    @property
    def arms_slowly(self) -> bool:
        return self._kind == "cgroup1"

    def arm(self) -> int | None:
        return self._memory.arm()

    def take_event(self, event: int) -> None:
        """A pen that is gone needs none."""
        if self._removed:
            os.close(event)
        else:
            self._memory.take_event(event)

    def signal(self, number: int) -> int:
        return self._holder.signal(number)

    def freeze(self) -> None:
        self._holder.freeze()

    def thaw(self) -> None:
        self._holder.thaw()

    def kill(self) -> None:
        self._holder.kill()

    def residue_bytes(self) -> int:
        """What the run left in tmpfs: it stays charged to the fleet when the pen is gone."""
        try:
            return self._memory.residue_bytes()
        except OSError:
            return 0

    def remove(self, wait_s: float = 2.0) -> bool:
        self._removed = True
        self._memory.close()
        self._holder.close()
        return remove_dirs(self.dirs(), wait_s)

    def record(self) -> dict[str, Any]:
        return {"kind": self._kind, "paths": {n: str(p) for n, p in self._paths.items()}}


class CgroupFleet:
    """The parents of all pens; one more pen as to counting, limiting and removing."""

    kernel_limits = True
    soon_s = 0.01

    def __init__(self, whole: CgroupPen) -> None:
        self._whole = whole

    def scan(self) -> None:
        """Nothing to look for: each pen knows its own."""

    def read(self) -> PenReading:
        """Its memory; who is in it is for each pen to say."""
        return self._whole.read_memory()

    def set_limit(self, limit_bytes: int) -> None:
        self._whole.set_limit(limit_bytes)

    def note_keeper(self, keeper: ProcId) -> None:
        """The keeper stays outside: it is no run."""

    def dirs(self) -> list[str]:
        return self._whole.dirs()

    def remove(self) -> bool:
        return self._whole.remove()

    def record(self) -> dict[str, Any]:
        return self._whole.record()
