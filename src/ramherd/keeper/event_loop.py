"""The keeper's event loop: descriptors, each with the function to call when it is ready.

Used by the keeper, so it imports only small modules.
"""

from __future__ import annotations

import os

from ramherd.system.wait import READ, Poller

TYPE_CHECKING = False  # the keeper avoids the 1 MB that `typing` costs
if TYPE_CHECKING:
    from collections.abc import Callable

# The value for no descriptor or no pid.
GONE = -1


class EventLoop:
    def __init__(self) -> None:
        self._poller = Poller()
        self._handlers: dict[int, Callable[[], object]] = {}

    def watch(self, fd: int, handler: Callable[[], object], events: int = READ) -> None:
        self._handlers[fd] = handler
        self._poller.add(fd, events)

    def is_watched(self, fd: int) -> bool:
        return fd in self._handlers

    def unwatch(self, fd: int) -> None:
        if self._handlers.pop(fd, None) is not None:
            self._poller.remove(fd)

    def close(self, fd: int) -> None:
        """After this, the number may belong to another file."""
        self.unwatch(fd)
        os.close(fd)

    def turn(self, timeout_s: float) -> None:
        for fd, _events in self._poller.wait(timeout_s):
            handler = self._handlers.get(fd)
            if handler is not None:  # else it was closed in this turn
                handler()
