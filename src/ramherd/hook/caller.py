"""The session that called, and the memory of its processes."""

from __future__ import annotations

import os

from ramherd.core.procid import ProcId
from ramherd.strays.ancestry import find_below
from ramherd.system.identity import PROC, is_running, read_identity

PAGE = os.sysconf("SC_PAGE_SIZE")
# A shell with our name in its words is how we were called; whoever has it elsewhere, in a
# prompt or in settings on the command line, is not.
MARK = b"ramherd.hook"
SHELLS = (b"sh", b"bash", b"dash", b"zsh", b"ash", b"busybox")


def find_session(proc: str = PROC) -> ProcId | None:
    """The nearest process above us that is not on the way to us."""
    pid = os.getppid()
    while pid > 1:
        found = read_identity(pid, proc)
        if found is None:
            return None
        if not is_wrapper(read_bytes(f"{proc}/{pid}/cmdline")):
            return found[0]
        pid = found[1]
    return None


def is_wrapper(cmdline: bytes) -> bool:
    program = cmdline.split(b"\0", 1)[0].rpartition(b"/")[2]
    return program.lstrip(b"-") in SHELLS and MARK in cmdline


def read_tree_bytes(root: ProcId) -> int:
    """What the session and all below it hold, without shared pages; 0 when it has gone. On a
    kernel that does not list children these are left out, and count as memory of others.
    """
    if not is_running(root):
        return 0
    return sum(read_anonymous_bytes(pid) for pid in (root.pid, *find_below(root.pid)))


def read_anonymous_bytes(pid: int, proc: str = PROC) -> int:
    """`system/procfs.py` in small."""
    fields = read_bytes(f"{proc}/{pid}/statm").split()
    return max(int(fields[1]) - int(fields[2]), 0) * PAGE if fields else 0


def read_bytes(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""
