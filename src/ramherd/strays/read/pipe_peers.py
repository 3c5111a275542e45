"""Whether anybody is at the other side of a descriptor of another process.

A pipe is opened through /proc and asked: POLLHUP means that no writer is left anywhere, POLLERR
that no reader is. Of a socket the kernel tells the other end.
"""

import os
import select
import stat
from collections.abc import Mapping

from ramherd.strays.nouns import PeerState

PTY_MASTER = "/dev/ptmx"


def read_end(
    pid: int, fd: int, peers: Mapping[int, int], proc: str = "/proc"
) -> tuple[PeerState, int]:
    """(what is at the other side, inode of the pipe or socket)."""
    path = f"{proc}/{pid}/fd/{fd}"
    try:
        target = os.readlink(path)
    except FileNotFoundError:
        return PeerState.NONE, 0
    except OSError:
        return PeerState.UNKNOWN, 0
    if target.startswith(("/dev/pts/", "/dev/tty")):
        return PeerState.TERMINAL, 0
    kind, _colon, number = target.partition(":")
    inode = int(number[1:-1]) if number[1:-1].isdigit() else 0
    if kind == "pipe":
        return probe_pipe(path, writes=fd != 0), inode
    if kind == "socket":
        return end_of_socket(inode, peers), inode
    return PeerState.NONE, 0


def end_of_socket(inode: int, peers: Mapping[int, int]) -> PeerState:
    """A socket that is not in the list is of another kind, or of another network namespace."""
    if inode not in peers:
        return PeerState.UNKNOWN
    return PeerState.LIVE if peers[inode] else PeerState.GONE


def probe_pipe(path: str, *, writes: bool) -> PeerState:
    flags = os.O_NONBLOCK | os.O_CLOEXEC | (os.O_WRONLY if writes else os.O_RDONLY)
    try:
        fd = os.open(path, flags)
    except OSError:
        return PeerState.UNKNOWN
    try:
        # The number may be another file by now.
        if not stat.S_ISFIFO(os.fstat(fd).st_mode):
            return PeerState.UNKNOWN
        return PeerState.GONE if is_lonely(fd) else PeerState.LIVE
    finally:
        os.close(fd)


def is_lonely(fd: int) -> bool:
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return any(event & (select.POLLHUP | select.POLLERR) for _fd, event in poll.poll(0))
