"""The socket to the supervisor: requests arrive and messages are sent as lines of JSON.

Used by the keeper, so it imports only small modules.
"""

from __future__ import annotations

import json
import os
import time

from ramherd.keeper.event_loop import GONE
from ramherd.keeper.requests import MOST_BYTES, parse_request

TYPE_CHECKING = False  # the keeper avoids the 1 MB that `typing` costs
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ramherd.keeper.event_loop import EventLoop


class SupervisorLink:
    """`handle` gets each request, and raises ValueError if it cannot be carried out; `on_lost` is
    called once the supervisor is gone.
    """

    def __init__(
        self,
        loop: EventLoop,
        handle: Callable[[dict[str, Any]], None],
        on_lost: Callable[[], None],
    ) -> None:
        self._loop = loop
        self._handle = handle
        self._on_lost = on_lost
        self._fd = GONE
        self._inbox = b""
        self.lost_s = 0.0

    @property
    def is_connected(self) -> bool:
        return self._fd != GONE

    def connect(self, fd: int) -> None:
        self._fd = fd
        self._loop.watch(fd, self._receive)

    def send(self, did: str, run: str, **values: Any) -> None:
        """A supervisor that is gone gets no message. Its last requests may still be in the socket:
        `_receive` reads them, then the end of the connection.
        """
        message = json.dumps({"did": did, "run": run, **values}).encode() + b"\n"
        try:
            while message and self.is_connected:
                message = message[os.write(self._fd, message) :]
        except (BrokenPipeError, ConnectionResetError):
            pass

    def disconnect(self) -> None:
        """An incomplete request is dropped."""
        if self.is_connected:
            self._loop.close(self._fd)
            self._fd = GONE
            self._inbox = b""
            self.lost_s = time.monotonic()
            self._on_lost()

    def _receive(self) -> None:
        try:
            data = os.read(self._fd, 1 << 16)
        except ConnectionResetError:
            data = b""
        *lines, self._inbox = (self._inbox + data).split(b"\n")
        for line in lines:
            try:
                request = parse_request(line)
                if request["do"] == "ping":
                    self.send("pong", "")
                else:
                    self._handle(request)
            except ValueError as error:
                self.send("bad", "", what=str(error)[:200])
        if not data or len(self._inbox) > MOST_BYTES:
            self.disconnect()
