"""The Claude process that called the hook, and the memory of its process tree."""

from __future__ import annotations

import os

from ramherd.core.procid import ProcId
from ramherd.system.proc_stat import PROC
from ramherd.system.procfs import (
    is_running,
    read_anonymous_bytes,
    read_cmdline,
    read_descendants,
    read_process,
)

# Claude starts the hook through a shell whose command line has this word. A process that is not a
# shell may have it too, in a prompt or in settings: it is not skipped.
MARK = "ramherd.hook"
SHELLS = ("sh", "bash", "dash", "zsh", "ash", "busybox")


def find_session(proc: str = PROC) -> ProcId | None:
    """The nearest process above us that is not a shell which only started us."""
    pid = os.getppid()
    while pid > 1:
        found = read_process(pid, proc)
        if found is None or not found.is_alive:
            return None
        if not is_wrapper(read_cmdline(pid, proc) or ("",)):
            return found.id
        pid = found.ppid
    return None


def is_wrapper(words: tuple[str, ...]) -> bool:
    program = words[0].rpartition("/")[2]
    return program.lstrip("-") in SHELLS and any(MARK in word for word in words)


def read_tree_bytes(root: ProcId) -> int:
    """The memory of the session and all processes below it, without shared pages; 0 when it is
    gone. A kernel that does not list children leaves them out, and they count as memory of others.
    """
    if not is_running(root):
        return 0
    return sum(read_anonymous_bytes(pid) for pid in (root.pid, *read_descendants(root.pid)))
