"""/proc/PID/stat and the list of a process's children: only this module opens them.

It imports only `os`, because the keeper uses it directly. All others get records from
`system/procfs.py`. A process that is gone is not an error (`None`, or absent from the result).
"""

from __future__ import annotations

import os

TYPE_CHECKING = False  # the keeper avoids the 1 MB that `typing` costs
if TYPE_CHECKING:
    from collections.abc import Iterator

PROC = "/proc"
# A directory that looks like /proc: tests have their own.
Root = str | os.PathLike[str]
# Positions after the name, counted from field 3 of proc(5).
STATE, PPID, PGID, SID, TTY, FLAGS = 0, 1, 2, 3, 4, 6
UTIME, STIME, CUTIME, CSTIME, START, RSS = 11, 12, 13, 14, 19, 21
# Zombie and dead processes.
ENDED = (b"Z", b"X", b"x")
GONE = (FileNotFoundError, ProcessLookupError, PermissionError)
# The longest line has about 400 bytes.
STAT_BYTES = 4096


def split_stat(text: bytes) -> tuple[bytes, list[bytes]]:
    """The name, and the fields after it. The name is in brackets and may itself contain brackets,
    spaces and newlines.
    """
    right = text.rindex(b")")
    return text[text.index(b"(") + 1 : right], text[right + 2 :].split()


def read_stat(pid: int | str, proc: Root = PROC) -> tuple[bytes, int] | None:
    """The line of one process, and its effective user."""
    return _read(f"{proc}/{pid}/stat")


def read_stats(proc: Root = PROC) -> Iterator[tuple[int, bytes, int]]:
    """(pid, line, user) of every process. Relative to an open directory, which saves 3 us each."""
    directory = os.open(proc, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for entry in os.listdir(directory):
            if entry.isdigit() and (found := _read(f"{entry}/stat", directory)) is not None:
                yield int(entry), *found
    finally:
        os.close(directory)


def _read(path: str, directory: int | None = None) -> tuple[bytes, int] | None:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC, dir_fd=directory)
    except GONE:
        return None
    try:
        return os.read(fd, STAT_BYTES), os.fstat(fd).st_uid
    except GONE:
        return None
    finally:
        os.close(fd)


def read_start_ticks(pid: int, proc: Root = PROC) -> int | None:
    """The start time, in ticks since boot: together with the pid it identifies a process."""
    found = read_stat(pid, proc)
    return None if found is None else int(split_stat(found[0])[1][START])


def read_parents(proc: Root = PROC) -> dict[int, int]:
    """pid -> ppid of every process that is not a zombie."""
    parents = {}
    for pid, text, _uid in read_stats(proc):
        # Not `split_stat`: the keeper needs two of fifty fields, 50 times a second at the end.
        state, ppid = text[text.rindex(b")") + 2 :].split(maxsplit=2)[:2]
        if state not in ENDED:
            parents[pid] = int(ppid)
    return parents


def read_children(pid: int, proc: Root = PROC) -> list[int] | None:
    """The children of all threads of a process, as the kernel lists them: a scan of /proc rarely
    finds a process that forks and exits in a chain. None if the kernel does not list them, or if
    the process is gone.
    """
    children: list[int] = []
    try:
        for task in os.listdir(f"{proc}/{pid}/task"):
            with open(f"{proc}/{pid}/task/{task}/children", "rb") as file:
                children += map(int, file.read().split())
    except OSError:
        return None
    return children
