"""The socket to which the next supervisor connects. Used by the keeper: `_socket` instead of
`socket` saves 0.7 MB.
"""

from __future__ import annotations

import _socket
import os

from ramherd.keeper.event_loop import GONE


class AdoptionSocket:
    """A listening socket, and how long runs continue while no supervisor connects."""

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
        """GONE if the client has closed its connection."""
        self.is_ready = False
        try:
            return self._socket._accept()[0]  # type: ignore[attr-defined,no-any-return]
        except OSError:
            return GONE


def refuse_second(fd: int) -> None:
    """Refuses the connection: there is a supervisor already."""
    try:
        os.write(fd, b'{"did": "busy", "run": ""}\n')
    except OSError:  # the client has closed it
        pass
    os.close(fd)
