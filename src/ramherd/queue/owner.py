"""Whether the application that owns a herd is alive.

A lock on a file says so better than a pid: the kernel lets go of it in every kind of death.
The process itself is asked as well, in case somebody cleaned the runtime directory.
"""

import os
from dataclasses import dataclass
from pathlib import Path

from ramherd.ids import new_id
from ramherd.measure.procfs import is_same, read_boot_id, read_proc
from ramherd.model import ProcId
from ramherd.queue.lockfile import hold, is_locked


@dataclass(frozen=True, slots=True)
class Owner:
    """What is stored of an owner."""

    id: str
    boot_id: str
    proc: ProcId


class OwnerLock:
    """Held for as long as this process lives."""

    def __init__(self, runtime: Path) -> None:
        own = read_proc(os.getpid())
        proc = own.id if own is not None else ProcId(os.getpid(), 0)
        self.owner = Owner(new_id(), read_boot_id(), proc)
        self._path = lock_path(runtime, self.owner.id)
        self._fd = hold(str(self._path))

    def close(self) -> None:
        self._path.unlink(missing_ok=True)
        os.close(self._fd)


def lock_path(runtime: Path, owner: str) -> Path:
    return runtime / "owners" / owner


def is_alive(owner: Owner, runtime: Path) -> bool:
    if owner.boot_id != read_boot_id():
        return False
    return is_locked(str(lock_path(runtime, owner.id))) or is_same(owner.proc)
