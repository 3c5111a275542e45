"""Whether the application that owns a herd is alive.

A lock on a file says so better than a pid: the kernel lets go of it in every kind of death.
The process itself is asked as well, in case somebody cleaned the runtime directory.
"""

import fcntl
import os
from dataclasses import dataclass
from pathlib import Path

from ramherd.ids import new_id
from ramherd.measure.procfs import is_same, read_boot_id, read_proc
from ramherd.model import ProcId


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
        self._path.parent.mkdir(mode=0o700, exist_ok=True)
        self._fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._fd, fcntl.LOCK_EX)

    def close(self) -> None:
        self._path.unlink(missing_ok=True)
        os.close(self._fd)


def lock_path(runtime: Path, owner: str) -> Path:
    return runtime / "owners" / owner


def is_alive(owner: Owner, runtime: Path) -> bool:
    if owner.boot_id != read_boot_id():
        return False
    return is_locked(lock_path(runtime, owner.id)) or is_same(owner.proc)


def is_locked(path: Path) -> bool:
    try:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False
