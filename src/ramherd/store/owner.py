"""Whether the application that owns a herd is alive.

A lock on a file says so better than a pid: the kernel lets go of it in every kind of death.
The process itself is asked as well, in case somebody cleaned the runtime directory.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from ramherd.core.procid import ProcId
from ramherd.store.lock_file import hold, is_locked
from ramherd.system.ids import new_id
from ramherd.system.procfs import is_running, read_boot_id, read_own_id

if TYPE_CHECKING:
    from pathlib import Path


class Owner(NamedTuple):
    """What is stored of an owner. One that has no lock, because nobody of ours lives in it (a
    hooked session), is as alive as its process.
    """

    id: str
    boot_id: str
    proc: ProcId


class OwnerLock:
    """Held for as long as this process lives."""

    def __init__(self, runtime: Path) -> None:
        self.owner = Owner(new_id(), read_boot_id(), read_own_id())
        self._path = lock_path(runtime, self.owner.id)
        self._fd = hold(str(self._path))

    def close(self) -> None:
        self._path.unlink(missing_ok=True)
        os.close(self._fd)


def lock_path(runtime: Path, owner: str) -> Path:
    return runtime / "owners" / owner


def session_owner(proc: ProcId) -> Owner:
    """A session of an agent that we did not start: every hook of it comes to the same."""
    return Owner(f"session-{proc.pid}-{proc.start_ticks}", read_boot_id(), proc)


def is_alive(owner: Owner, runtime: Path | str) -> bool:
    if owner.boot_id != read_boot_id():
        return False
    return is_locked(os.path.join(runtime, "owners", owner.id)) or is_running(owner.proc)
