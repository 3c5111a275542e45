"""Waits until a descriptor is ready; makes descriptors that a thread, or the kernel at a memory
mark, makes ready. Used by the keeper: imports only `os` and `select`.
"""

from __future__ import annotations

import os
import select

TYPE_CHECKING = False  # the keeper avoids the 1 MB that `typing` costs
if TYPE_CHECKING:
    from collections.abc import Iterable

READ, WRITE = select.EPOLLIN, select.EPOLLOUT
# A change of a cgroup file, which is always readable.
NEWS = select.EPOLLPRI
CLOSED = select.EPOLLHUP | select.EPOLLERR


class Poller:
    """Waits repeatedly for many descriptors; a descriptor costs time only when it is ready."""

    def __init__(self) -> None:
        self._epoll = select.epoll()

    def fileno(self) -> int:
        """Readable while a descriptor is ready: one poller can wait for another."""
        return self._epoll.fileno()

    def add(self, fd: int, events: int = READ) -> None:
        self._epoll.register(fd, events)

    def change(self, fd: int, events: int) -> None:
        self._epoll.modify(fd, events)

    def remove(self, fd: int) -> None:
        self._epoll.unregister(fd)

    def wait(self, timeout_s: float = -1) -> list[tuple[int, int]]:
        """(descriptor, events) of each ready descriptor; -1 waits without a limit."""
        return self._epoll.poll(timeout_s)

    def close(self) -> None:
        self._epoll.close()


def wait_for(link: int, fds: Iterable[int], timeout_s: float, *, sending: bool) -> set[int]:
    """The readable descriptors; with `sending`, also `link` when it is writable. A negative `link`
    is ignored.
    """
    poll = select.poll()
    if link >= 0:
        poll.register(link, select.POLLIN | (select.POLLOUT * sending))
    for fd in fds:
        poll.register(fd, select.POLLIN)
    return {fd for fd, _events in poll.poll(timeout_s * 1000)}


def wait_writable(fd: int, timeout_s: float | None) -> bool:
    """None waits without a limit."""
    poll = select.poll()
    poll.register(fd, select.POLLOUT)
    return bool(poll.poll(None if timeout_s is None else timeout_s * 1000))


def wait_readable(fd: int, timeout_s: float) -> bool:
    """Whether there was data, or the end of the stream, in time."""
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return bool(poll.poll(timeout_s * 1000))


def is_hung_up(fd: int) -> bool:
    """Whether no process has the other end of a pipe open."""
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return any(event & (select.POLLHUP | select.POLLERR) for _fd, event in poll.poll(0))


def open_event() -> int:
    """An event that is readable once it is set."""
    return os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)


def set_event(fd: int) -> None:
    os.eventfd_write(fd, 1)


def clear_event(fd: int) -> bool:
    """Returns whether the event was set."""
    try:
        os.eventfd_read(fd)
    except BlockingIOError:
        return False
    return True
