"""Finds the processes that hold locks on a file, by /proc/locks.

F_GETLK would work as well, but needs the file open, and closing it drops the POSIX locks that this
process holds on it: those of its own SQLite connection.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from ramherd.system.proc_stat import PROC, Root
from ramherd.system.procfs import read_locks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


class FileLock(NamedTuple):
    """An exclusive lock that is held. `last` is None for a lock up to the end of the file."""

    pid: int
    inode: int
    first: int
    last: int | None

    def covers(self, offset: int) -> bool:
        return self.first <= offset and (self.last is None or offset <= self.last)


def parse_locks(text: str) -> Iterator[FileLock]:
    """Omits shared locks, and processes that wait for a lock ("->"). A process of another pid
    namespace has the pid 0, an open file description -1.
    """
    for line in text.splitlines():
        words = line.split()
        if len(words) != 8 or words[3] != "WRITE":
            continue
        _number, _kind, _manner, _mode, pid, place, first, last = words
        inode = int(place.rpartition(":")[2])
        yield FileLock(int(pid), inode, int(first), None if last == "EOF" else int(last))


def find_lock_holders(path: str, offset: int = 0, proc: Root = PROC) -> list[int]:
    """Pids of other processes that have this byte of the file locked. Only the inode is
    compared: on btrfs and overlayfs the device differs from that of stat.
    """
    try:
        inode = os.stat(path).st_ino
    except OSError:
        return []
    return [
        lock.pid
        for lock in parse_locks(read_locks(proc))
        if lock.inode == inode and lock.covers(offset) and lock.pid not in (0, -1, os.getpid())
    ]
