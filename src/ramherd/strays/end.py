"""Ending strays: TERM, a grace, KILL, each by pidfd, so that it can only be that very process."""

import os
import select
import signal
import time
from collections.abc import Iterable, Mapping
from enum import StrEnum

from ramherd.core.model import ProcId
from ramherd.system.procfs import is_running

KILL_S = 5.0


class EndResult(StrEnum):
    ENDED = "ended"
    KILLED = "killed"
    DENIED = "denied"
    # It lives on after KILL: asleep in the kernel.
    STUCK = "stuck"


def open_processes(procs: Iterable[ProcId]) -> dict[ProcId, int]:
    """A pidfd of each that is still itself; a pid that is somebody else's by now is left out."""
    found = {}
    for proc in procs:
        try:
            fd = os.pidfd_open(proc.pid)
        except OSError:
            continue
        if is_running(proc):
            found[proc] = fd
        else:
            os.close(fd)
    return found


def close_processes(opened: Mapping[ProcId, int]) -> None:
    for fd in opened.values():
        os.close(fd)


def end_processes(
    opened: Mapping[ProcId, int], grace_s: float, first: int = signal.SIGTERM
) -> dict[ProcId, EndResult]:
    """All at once: each has its grace at the same time."""
    denied = {proc for proc, fd in opened.items() if not tell(fd, first)}
    waiting = {proc: fd for proc, fd in opened.items() if proc not in denied}
    for fd in waiting.values():
        # A stopped process has to go on to end.
        tell(fd, signal.SIGCONT)
    stubborn = await_ends(waiting, grace_s)
    for fd in stubborn.values():
        tell(fd, signal.SIGKILL)
    stuck = await_ends(stubborn, KILL_S)
    return {proc: outcome_of(proc, denied, stubborn, stuck) for proc in opened}


def outcome_of(
    proc: ProcId, denied: set[ProcId], stubborn: Mapping[ProcId, int], stuck: Mapping[ProcId, int]
) -> EndResult:
    if proc in denied:
        return EndResult.DENIED
    if proc in stuck:
        return EndResult.STUCK
    return EndResult.KILLED if proc in stubborn else EndResult.ENDED


def tell(fd: int, number: int) -> bool:
    """False if that is not allowed; one that has ended needs no signal."""
    try:
        signal.pidfd_send_signal(fd, number)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return True


def await_ends(opened: Mapping[ProcId, int], for_s: float) -> dict[ProcId, int]:
    """Those that are still there when the time is over."""
    poll = select.poll()
    left = {fd: proc for proc, fd in opened.items()}
    for fd in left:
        poll.register(fd, select.POLLIN)
    end_s = time.monotonic() + for_s
    while left:
        ready = poll.poll(max((end_s - time.monotonic()) * 1000, 0))
        for fd, _event in ready:
            poll.unregister(fd)
            del left[fd]
        if not ready:
            break
    return {proc: fd for fd, proc in left.items()}
