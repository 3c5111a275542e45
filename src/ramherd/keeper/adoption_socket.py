"""Where the next supervisor knocks. Used by the keeper: `_socket`, because what `socket` adds to
it costs 0.7 MB.
"""

from __future__ import annotations

import _socket
import os

GONE = -1


class Door:
    """A listening socket, and how long runs go on while nobody comes."""

    def __init__(self, fd: int, alone_s: float) -> None:
        self.fd = fd
        self.alone_s = alone_s
        self.knocked = False
        self._socket = _socket.socket(fileno=fd)
        self._socket.setblocking(False)

    def accept(self) -> int:
        self.knocked = False
        try:
            return self._socket._accept()[0]  # type: ignore[attr-defined,no-any-return]
        except OSError:  # whoever knocked went away again
            return GONE

    def send_away(self, fd: int) -> None:
        try:
            os.write(fd, b'{"did": "busy", "run": ""}\n')
        except OSError:  # it went by itself
            pass
        os.close(fd)
