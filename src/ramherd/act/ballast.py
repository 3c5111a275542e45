"""The ballast: a file beside the store whose space is released when the disk is full."""

import os
from pathlib import Path

from ramherd.measure.disk_usage import BALLAST

FLAGS = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW


def set_ballast(state: Path, size: int) -> bool:
    """Returns whether the ballast has `size` bytes now. When released, it keeps its length as a
    hole, so that every ramherd can read how large it was.
    """
    try:
        fd = os.open(state / BALLAST, FLAGS, 0o600)
        try:
            resize(fd, size)
        finally:
            os.close(fd)
    except OSError:  # the disk is full now, or does not support such a file
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
