"""The ballast: a file beside the store whose space is given back when the disk is full."""

import os
from pathlib import Path

from ramherd.measure.disk_usage import BALLAST

FLAGS = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW


def set_ballast(state: Path, size: int) -> bool:
    """Whether it holds that much now. Released, it keeps its size as a hole: so every ramherd knows
    how much there was.
    """
    try:
        fd = os.open(state / BALLAST, FLAGS, 0o600)
        try:
            resize(fd, size)
        finally:
            os.close(fd)
    except OSError:  # the disk has become full, or takes no such file
        return False
    return True


def resize(fd: int, size: int) -> None:
    before = os.fstat(fd).st_size
    if size == 0:
        os.ftruncate(fd, 0)
        os.ftruncate(fd, before)
        return
    try:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(fd, 0, size)
        else:
            for offset in range(0, size, 4096):
                os.pwrite(fd, b"\1", offset)
    except OSError:
        os.ftruncate(fd, 0)
        os.ftruncate(fd, before)
        raise
