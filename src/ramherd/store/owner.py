"""Whether the application that owns a herd or a lease is alive.

A lock on a file shows that better than a pid: the kernel releases it in every kind of death. The
process itself is looked up as well, in case the runtime directory was cleaned.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from ramherd.core.errors import StoreError
from ramherd.core.procid import ProcId
from ramherd.system.ids import new_id
from ramherd.system.lock_file import acquire_lock, is_locked
from ramherd.system.procfs import is_running, read_boot_id, read_own_id

if TYPE_CHECKING:
    from pathlib import Path

    from ramherd.system.lock_file import LockFile

OWNERS = "owners"


class Owner(NamedTuple):
    """The record of an owner. An owner without a lock, because it is not a process of ramherd (a
    hooked session), is alive as long as its process.
    """

    id: str
    boot_id: str
    proc: ProcId


class OwnerLock:
    """Held while this process lives."""

    def __init__(self, runtime: Path) -> None:
        self.owner = Owner(new_id(), read_boot_id(), read_own_id())
        self._lock = self._acquire(runtime)

    def restore(self, runtime: Path) -> bool:
        """Makes the file again if it was removed, or if the runtime directory has changed. Returns
        whether it did.
        """
        if self._lock.path == str(lock_path(runtime, self.owner.id)) and self._lock.is_in_place():
            return False
        before, self._lock = self._lock, self._acquire(runtime)
        before.remove()
        return True

    def close(self) -> None:
        self._lock.remove()

    def _acquire(self, runtime: Path) -> LockFile:
        path = str(lock_path(runtime, self.owner.id))
        try:
            made = acquire_lock(path)
        except OSError as error:
            raise StoreError(
                f"cannot lock {path}: {error.strerror}",
                hint=f"the directory must belong to you: ls -ld {runtime}",
            ) from None
        assert made is not None, "it waits for the lock"
        return made


def lock_path(runtime: Path, owner: str) -> Path:
    return runtime / OWNERS / owner


def session_owner(proc: ProcId) -> Owner:
    """A session of an agent that we did not start: the same owner for each of its hooks."""
    return Owner(f"session-{proc.pid}-{proc.start_ticks}", read_boot_id(), proc)


def is_alive(owner: Owner, runtime: Path | str) -> bool:
    if owner.boot_id != read_boot_id():
        return False
    return is_locked(os.path.join(runtime, OWNERS, owner.id)) or is_running(owner.proc)
