"""What the tools of a subagent, or of a whole session, left behind; and its end.

Two things prove it. Claude gives every tool its session's id in the environment, and a child
inherits that. And a process whose parent has ended becomes the child of a process above the
session, which otherwise has no child with that id. Such a process, and all below it, is what a tool
left behind. One with a terminal, or in a run of ramherd, is left alone.
"""

from __future__ import annotations

import os
import select
import signal
import time
from typing import TYPE_CHECKING, NamedTuple

from ramherd.core.procid import ProcId
from ramherd.hook.caller import read_bytes
from ramherd.system.identity import PROC, is_running

if TYPE_CHECKING:
    from collections.abc import Iterator

TAG = b"CLAUDE_CODE_SESSION_ID="
TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")
# Policy.leftover_grace_s: Claude waits meanwhile.
GRACE_S = 2.0
ROUNDS = 3


class Proc(NamedTuple):
    id: ProcId
    ppid: int
    has_terminal: bool


def find_leftovers(
    session: str, root: ProcId, since_s: float, before_s: float | None, proc: str = PROC
) -> list[ProcId]:
    """Those started from `since_s` on (seconds since boot), and before `before_s`: what began
    later may be another subagent's that still runs.
    """
    found: list[ProcId] = []
    for tree in find_orphans(TAG + session.encode(), root, proc):
        started_s = tree[0].id.start_ticks / TICKS_A_SECOND
        if since_s <= started_s and (before_s is None or started_s < before_s):
            found += [each.id for each in tree]
    return found


def find_strays(root: ProcId, proc: str = PROC) -> list[ProcId]:
    """What tools of whichever session left behind."""
    return [each.id for tree in find_orphans(TAG, root, proc) for each in tree]


def find_orphans(tag: bytes, root: ProcId, proc: str) -> Iterator[list[Proc]]:
    """Each with all below it."""
    procs = read_procs(proc)
    above = find_above(root.pid, procs)
    for one in procs.values():
        if one.ppid not in above or one.id.pid in above or one.id == root:
            continue
        if has_variable(one.id.pid, tag, proc):
            tree = find_below(one, procs)
            if not any(is_spared(each, proc) for each in tree):
                yield tree


def sweep(session: str, root: ProcId, since_s: float, before_s: float | None) -> int:
    """How many were ended. Looked for again: one that ignores TERM may have started another."""
    ended = 0
    for _round in range(ROUNDS):
        found = find_leftovers(session, root, since_s, before_s)
        if not found:
            break
        ended += end(found)
    return ended


def read_procs(proc: str) -> dict[int, Proc]:
    found = {}
    for entry in os.listdir(proc):
        text = read_bytes(f"{proc}/{entry}/stat") if entry.isdigit() else b""
        fields = text[text.rfind(b")") + 2 :].split()
        if len(fields) > 19 and fields[0] not in (b"Z", b"X"):
            one = ProcId(int(entry), int(fields[19]))
            found[one.pid] = Proc(one, int(fields[1]), fields[4] != b"0")
    return found


def find_above(pid: int, procs: dict[int, Proc]) -> set[int]:
    above: set[int] = set()
    while (one := procs.get(pid)) is not None and one.ppid not in above:
        pid = one.ppid
        above.add(pid)
    return above - {0}


def find_below(top: Proc, procs: dict[int, Proc]) -> list[Proc]:
    tree = [top]
    for each in tree:
        tree += [one for one in procs.values() if one.ppid == each.id.pid]
    return tree


def has_variable(pid: int, start: bytes, proc: str) -> bool:
    """`start` is a whole `NAME=value`, or `NAME=` for any value."""
    variables = read_bytes(f"{proc}/{pid}/environ").split(b"\0")
    if start.endswith(b"="):
        return any(variable.startswith(start) for variable in variables)
    return start in variables


def is_spared(one: Proc, proc: str) -> bool:
    return one.has_terminal or has_variable(one.id.pid, b"RAMHERD_RUN=", proc)


def end(leftovers: list[ProcId]) -> int:
    """TERM, the grace, KILL; how many were ended."""
    fds = [fd for one in leftovers if (fd := open_pidfd(one)) is not None]
    try:
        for number in (signal.SIGTERM, signal.SIGKILL):
            for fd in fds:
                send(fd, number)
            await_ends(fds, GRACE_S)
    finally:
        for fd in fds:
            os.close(fd)
    return len(fds)


def open_pidfd(one: ProcId) -> int | None:
    """Looked at again once it is held: the number may have been given to another."""
    try:
        fd = os.pidfd_open(one.pid)
    except OSError:
        return None
    if is_running(one):
        return fd
    os.close(fd)
    return None


def send(fd: int, number: int) -> None:
    try:
        signal.pidfd_send_signal(fd, number)
    except (ProcessLookupError, PermissionError):
        pass


def await_ends(fds: list[int], grace_s: float) -> None:
    """A pidfd is readable when its process has ended."""
    poll, left = select.poll(), set(fds)
    for fd in fds:
        poll.register(fd, select.POLLIN)
    deadline_s = time.monotonic() + grace_s
    while left and (rest_s := deadline_s - time.monotonic()) > 0:
        for fd, _event in poll.poll(rest_s * 1000):
            poll.unregister(fd)
            left.discard(fd)
