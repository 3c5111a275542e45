"""Writing to a terminal or a pipe without ever waiting for who reads it.

`ramherd run | less`, Ctrl-S, a window that is gone: limits, timeouts and signals are looked
after all the same. What is not taken at once is kept, up to a bound, and written later.
"""

import os
import select
from typing import TextIO

# A pipe that is ready takes so much without blocking (PIPE_BUF).
PIECE_BYTES = 4096
MOST_BYTES = 1 << 18


class Outlet:
    def __init__(self, out: TextIO) -> None:
        self._encoding = getattr(out, "encoding", None) or "utf-8"
        self._fd = out.fileno()
        self._waiting = b""
        self._dropped = 0

    def write(self, text: str) -> None:
        if self._dropped or len(self._waiting) > MOST_BYTES:
            self._dropped += text.count("\n")
        else:
            self._waiting += text.encode(self._encoding, "replace")
        self.flush()

    def flush(self) -> None:
        """As much as is taken now."""
        try:
            while self._waiting and self._is_ready():
                self._write_piece()
        except OSError:  # nobody there any more: not a reason to end anything
            self._waiting = b""
        if self._dropped and not self._waiting:
            dropped, self._dropped = self._dropped, 0
            self.write(f"[{dropped} lines were not read in time, and not kept]\n")

    def finish(self) -> None:
        """All of it, however long that takes: there is nothing else left to do."""
        try:
            while self._waiting:
                self._write_piece()
        except OSError:
            self._waiting = b""

    def _is_ready(self) -> bool:
        poll = select.poll()
        poll.register(self._fd, select.POLLOUT)
        return bool(poll.poll(0))

    def _write_piece(self) -> None:
        written = os.write(self._fd, self._waiting[:PIECE_BYTES])
        self._waiting = self._waiting[written:]
