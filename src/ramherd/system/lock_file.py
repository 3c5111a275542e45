"""Files whose lock shows that a process lives: the kernel releases it however the process ends.

The hook loads this module for each subagent, so it does not import pathlib.
"""

from __future__ import annotations

import errno
import fcntl
import os

from ramherd.system.files import open_private

# The file does not exist, or a process of this user could not have locked it.
NO_LOCK = (errno.ENOENT, errno.ENOTDIR, errno.EACCES, errno.ELOOP)


class LockFile:
    """A file on which this process holds the lock. `acquire_lock` makes it."""

    def __init__(self, path: str, fd: int) -> None:
        self.path, self.fd = path, fd

    def is_in_place(self) -> bool:
        """Whether other processes still find it by its path."""
        return is_same(self.path, self.fd)

    def remove(self) -> None:
        """Keeps a file that another process has made at the path since ours was removed."""
        if self.is_in_place():
            os.unlink(self.path)
        self.close()

    def close(self) -> None:
        os.close(self.fd)


def acquire_lock(path: str, *, wait: bool = True) -> LockFile | None:
    """Makes the file, and its directory, if missing. None if another process has the lock and
    `wait` is False.
    """
    os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
    while True:
        fd = open_private(path, os.O_RDWR | os.O_CREAT)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            os.close(fd)
            return None
        except BaseException:
            os.close(fd)
            raise
        # `remove_unlocked` may have removed the file after we opened it.
        if is_same(path, fd):
            return LockFile(path, fd)
        os.close(fd)


def is_same(path: str, fd: int) -> bool:
    """Whether the path names the file that is open."""
    try:
        found = os.stat(path, follow_symlinks=False)
    except OSError:
        return False
    opened = os.fstat(fd)
    return (found.st_dev, found.st_ino) == (opened.st_dev, opened.st_ino)


def is_locked(path: str) -> bool:
    """Whether a process holds the lock. Also True if that cannot be found out, for example without
    a spare descriptor: a living process must not count as dead.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        return error.errno not in NO_LOCK
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


def remove_unlocked(directory: str) -> int:
    """Removes the files of dead processes; returns how many."""
    removed = 0
    try:
        names = os.listdir(directory)
    except OSError:
        return 0
    for name in names:
        removed += remove_if_unlocked(os.path.join(directory, name))
    return removed


def remove_if_unlocked(path: str) -> bool:
    """Holds the lock during the removal: a process that opened the file meanwhile makes another."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if is_same(path, fd):
            os.unlink(path)
            return True
    except OSError:  # locked, or removed by another ramherd
        pass
    finally:
        os.close(fd)
    return False
