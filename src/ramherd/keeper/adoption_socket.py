"""Where the next supervisor connects. Used by the keeper: `_socket`, because what `socket` adds to
it costs 0.7 MB.
"""

from __future__ import annotations

import _socket
import os

from ramherd.keeper.event_loop import GONE


class AdoptionSocket:
    """A listening socket, and how long runs go on while no supervisor connects."""

    def __init__(self, fd: int, alone_s: float) -> None:
        self.fd = fd
        self.alone_s = alone_s
        # A supervisor waits to be accepted.
        self.is_ready = False
        self._socket = _socket.socket(fileno=fd)
        self._socket.setblocking(False)

    def set_ready(self) -> None:
        self.is_ready = True

    def accept(self) -> int:
        """GONE when the one that connected went away again."""
        self.is_ready = False
        try:
            return self._socket._accept()[0]  # type: ignore[attr-defined,no-any-return]
        except OSError:
            return GONE


def refuse_second(fd: int) -> None:
    """There is a supervisor already."""
    try:
        os.write(fd, b'{"did": "busy", "run": ""}\n')
    except OSError:  # it went by itself
        pass
    os.close(fd)
