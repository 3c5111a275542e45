"""Processes held by pidfd: a signal can only reach the process that was opened.

A pid may belong to another process by the time it is signalled. So a process is opened first,
compared with the intended one, and signalled through its descriptor.
"""

from __future__ import annotations

import os
import select
import signal
import time
from enum import StrEnum
from typing import TYPE_CHECKING

from ramherd.system.procfs import is_running
from ramherd.system.termination import KILL_S, terminate

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ramherd.core.procid import ProcId


class EndResult(StrEnum):
    ENDED = "ended"
    KILLED = "killed"
    DENIED = "denied"
    # It survives KILL: asleep in the kernel.
    STUCK = "stuck"


def open_pid(pid: int) -> int | None:
    """The process that has the pid now; None if there is none."""
    try:
        return os.pidfd_open(pid)
    except OSError:
        return None


def open_process(proc: ProcId) -> int | None:
    """None if the process has ended; its pid may belong to another process by now."""
    fd = open_pid(proc.pid)
    if fd is not None and not is_running(proc):
        os.close(fd)
        return None
    return fd


def open_processes(procs: Iterable[ProcId]) -> dict[ProcId, int]:
    """The processes whose pid was not reused."""
    return {proc: fd for proc in procs if (fd := open_process(proc)) is not None}


def close_processes(opened: Mapping[ProcId, int]) -> None:
    for fd in opened.values():
        os.close(fd)


def send_signal(fd: int, number: int) -> bool:
    """False if not permitted; a process that has ended needs no signal."""
    try:
        signal.pidfd_send_signal(fd, number)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return True


def signal_process(proc: ProcId, number: int) -> bool:
    """Returns whether the process was alive, and we were permitted to signal it."""
    fd = open_process(proc)
    if fd is None:
        return False
    try:
        return send_signal(fd, number)
    finally:
        os.close(fd)


def signal_processes(procs: Iterable[ProcId], number: int) -> int:
    """Returns how many processes got the signal."""
    return sum(signal_process(proc, number) for proc in procs)


def wait_ends(fds: Iterable[int], for_s: float) -> set[int]:
    """The pidfds of processes that have not ended in time: a pidfd is readable at its end."""
    poll, left = select.poll(), set(fds)
    for fd in left:
        poll.register(fd, select.POLLIN)
    deadline = time.monotonic() + for_s
    while left:
        ready = poll.poll(max((deadline - time.monotonic()) * 1000, 0))
        for fd, _event in ready:
            poll.unregister(fd)
            left.discard(fd)
        if not ready:
            break
    return left


def wait_end(fd: int) -> None:
    """Waits without a limit."""
    select.select([fd], [], [])


def end_processes(
    opened: Mapping[ProcId, int], grace_s: float, first: int = signal.SIGTERM
) -> dict[ProcId, EndResult]:
    """TERM, the grace, KILL for all processes at once: their graces run in parallel."""
    ending = _Ending(opened)
    terminate(ending.send, ending.kill, ending.wait, grace_s, first=first, kill_s=KILL_S)
    return {proc: ending.result_of(fd) for proc, fd in opened.items()}


class _Ending:
    def __init__(self, opened: Mapping[ProcId, int]) -> None:
        self.left = set(opened.values())
        self.denied: set[int] = set()
        self.killed: set[int] = set()

    def send(self, number: int) -> None:
        self.denied |= {fd for fd in self.left if not send_signal(fd, number)}
        self.left -= self.denied

    def kill(self) -> None:
        self.killed |= self.left
        self.send(signal.SIGKILL)

    def wait(self, for_s: float) -> bool:
        self.left = wait_ends(self.left, for_s)
        return not self.left

    def result_of(self, fd: int) -> EndResult:
        if fd in self.denied:
            return EndResult.DENIED
        if fd in self.left:
            return EndResult.STUCK
        return EndResult.KILLED if fd in self.killed else EndResult.ENDED
