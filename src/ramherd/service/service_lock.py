"""One service for each store, and one for each runtime directory.

The lock of the store is in the state directory, which is not removed at logout: two services never
run the same jobs, wherever their runtime directories are. The lock of the runtime directory shows
which service owns its `api.sock`.
"""

import os
import time
from contextlib import suppress
from pathlib import Path

from ramherd.core.errors import StoreError, UsageError
from ramherd.system.lock_file import LockFile, acquire_lock
from ramherd.system.procfs import read_process

NAME = "service.lock"
# The other service takes the lock a moment before it writes its pid to the file.
PID_S = 0.5
PID_LETTERS = 10


class ServiceLock:
    def __init__(self, state: Path, runtime: Path) -> None:
        self._store_lock = self._acquire(state)
        try:
            self._runtime_lock = self._acquire(runtime)
        except BaseException:
            self._store_lock.close()
            raise

    def restore(self, runtime: Path) -> bool:
        """Takes the lock of the runtime directory again, if that was removed or has changed.
        Returns whether it did.
        """
        before = self._runtime_lock
        if before.path == str(runtime / NAME) and before.is_in_place():
            return False
        self._runtime_lock = self._acquire(runtime)
        before.close()
        return True

    def close(self) -> None:
        self._runtime_lock.close()
        self._store_lock.close()

    def _acquire(self, directory: Path) -> LockFile:
        path = str(directory / NAME)
        try:
            made = acquire_lock(path, wait=False)
        except OSError as error:
            raise StoreError(
                f"cannot lock {path}: {error.strerror}", hint="ramherd doctor"
            ) from None
        if made is None:
            raise UsageError(
                f"a service of yours is running already (pid {read_pid(path)}), with {directory}",
                hint="ramherd jobs",
            )
        # In place, which a full disk allows unless the file is new. Only messages need the pid.
        with suppress(OSError):
            os.pwrite(made.fd, f"{os.getpid():<{PID_LETTERS}}\n".encode(), 0)
        return made


def read_service_pid(state: Path) -> int:
    """The pid of the running service; 0 if unknown."""
    pid = read_pid(str(state / NAME))
    return int(pid) if pid.isdigit() else 0


def read_pid(path: str) -> str:
    deadline = time.monotonic() + PID_S
    while True:
        with open(path, encoding="ascii", errors="replace") as file:
            pid = file.read(32).strip()
        is_known = pid.isdigit() and read_process(int(pid)) is not None
        if is_known or time.monotonic() >= deadline:
            return pid or "unknown"
        time.sleep(0.01)
