"""Writes to a terminal or a pipe without ever waiting for its reader.

With `ramherd run | less`, Ctrl-S or a closed window, limits, timeouts and signals still work. Text
that the reader does not take at once is kept, up to a bound, and written later.
"""

import io
import os
import threading
from typing import TextIO

from ramherd.system.wait import wait_writable

# A pipe that is ready takes this much without blocking (PIPE_BUF).
PIECE_BYTES = 4096
MOST_BYTES = 1 << 18


class NonblockingWriter:
    def __init__(self, out: TextIO) -> None:
        self._encoding = getattr(out, "encoding", None) or "utf-8"
        self._apart = open_apart(out.fileno())
        self._fd = out.fileno() if self._apart is None else self._apart.fileno()
        self._waiting = b""
        self._dropped = 0
        # The output of jobs comes from a separate thread.
        self.lock = threading.RLock()

    def write(self, text: str) -> None:
        self.write_bytes(text.encode(self._encoding, "replace"))

    def write_bytes(self, data: bytes) -> None:
        with self.lock:
            if self._dropped or len(self._waiting) > MOST_BYTES:
                self._dropped += data.count(b"\n")
            else:
                self._waiting += data
            self.flush()

    @property
    def is_behind(self) -> bool:
        """The reader has not taken text that was written long ago."""
        self.flush()
        return len(self._waiting) > PIECE_BYTES

    def flush(self) -> None:
        """Writes as much as the reader takes now."""
        with self.lock:
            self._flush()

    def _flush(self) -> None:
        try:
            while self._waiting and wait_writable(self._fd, 0):
                self._write_piece()
        except BlockingIOError:
            return
        except OSError:  # a closed reader does not end anything
            self._waiting = b""
        if not self._waiting:
            self._report_dropped()

    def finish(self) -> None:
        """Writes everything, however long that takes: nothing else is left to do."""
        with self.lock:
            self._report_dropped()
            while self._waiting:
                try:
                    wait_writable(self._fd, None)
                    self._write_piece()
                except BlockingIOError:
                    continue
                except OSError:
                    self._waiting = b""

    def _report_dropped(self) -> None:
        if self._dropped:
            note = f"[{self._dropped} lines were not read in time, and not kept]\n"
            self._waiting += note.encode()
            self._dropped = 0

    def _write_piece(self) -> None:
        written = os.write(self._fd, self._waiting[:PIECE_BYTES])
        self._waiting = self._waiting[written:]


def open_apart(fd: int) -> io.FileIO | None:
    """A terminal that is ready may take less than a piece, so it is opened a second time, as
    non-blocking: other processes share the descriptor that we were given.
    """
    try:
        flags = os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
        return io.FileIO(os.open(os.ttyname(fd), flags), "w")
    except OSError:
        return None
