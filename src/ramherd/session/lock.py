"""The lock that says that an owner lives: `queue/owner.py` in small."""

from __future__ import annotations

import fcntl
import os


def hold_lock(owners_dir: str, owner: str) -> tuple[str, int]:
    """The file that says we live, as `queue/owner.py` looks for it."""
    os.makedirs(owners_dir, 0o700, exist_ok=True)
    path = f"{owners_dir}/{owner}"
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(fd, fcntl.LOCK_EX)
    return path, fd


def is_locked(path: str) -> bool:
    try:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False
