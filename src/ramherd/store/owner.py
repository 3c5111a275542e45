"""Whether the application that owns a herd or a lease is alive.

A lock on a file tells that better than a pid: the kernel releases it in every kind of death. The
process itself is looked up as well, in case the runtime directory was cleaned.
"""

from __future__ import annotations

import fcntl
import os
from typing import TYPE_CHECKING, NamedTuple

from ramherd.core.procid import ProcId
from ramherd.system.ids import new_id
from ramherd.system.procfs import is_running, read_boot_id, read_own_id

if TYPE_CHECKING:
    from pathlib import Path


class Owner(NamedTuple):
    """What is stored of an owner. One without a lock, because it is not a process of ramherd (a
    hooked session), is alive as long as its process.
    """

    id: str
    boot_id: str
    proc: ProcId


class OwnerLock:
    """Held for as long as this process lives."""

    def __init__(self, runtime: Path) -> None:
        self.owner = Owner(new_id(), read_boot_id(), read_own_id())
        self._path = lock_path(runtime, self.owner.id)
        self._path.parent.mkdir(0o700, parents=True, exist_ok=True)
        self._fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._fd, fcntl.LOCK_EX)

    def close(self) -> None:
        self._path.unlink(missing_ok=True)
        os.close(self._fd)


def lock_path(runtime: Path, owner: str) -> Path:
    return runtime / "owners" / owner


def session_owner(proc: ProcId) -> Owner:
    """A session of an agent that we did not start: the same for every hook of it."""
    return Owner(f"session-{proc.pid}-{proc.start_ticks}", read_boot_id(), proc)


def is_alive(owner: Owner, runtime: Path | str) -> bool:
    if owner.boot_id != read_boot_id():
        return False
    return is_locked(os.path.join(runtime, "owners", owner.id)) or is_running(owner.proc)


def is_locked(path: str) -> bool:
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
