"""One service per user: a lock that the kernel lets go of in every kind of death."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ramherd.core.errors import UsageError


@contextmanager
def service_lock(runtime: Path) -> Iterator[None]:
    path = runtime / "service.lock"
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pid = os.pread(fd, 32, 0).decode(errors="replace").strip()
            raise UsageError(
                f"a service of yours is running already (pid {pid})", hint="ramherd jobs"
            ) from None
        os.ftruncate(fd, 0)
        os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(fd)
