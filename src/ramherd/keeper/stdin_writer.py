"""The stdin of a run that gets one prompt after another: a pipe, written from files.

Used by the keeper, so it imports only small modules. A prompt may be larger than a pipe, and a
reader slow: only as much of a file is read and written as the pipe accepts.
"""

from __future__ import annotations

import os

from ramherd.keeper.event_loop import GONE

CHUNK_BYTES = 1 << 16


class StdinWriter:
    def __init__(self, pipe: int) -> None:
        os.set_blocking(pipe, False)
        self.pipe = pipe
        # There are no more prompts: close the pipe when all is written.
        self.is_last = False
        self._files: list[int] = []
        self._rest = b""

    def add(self, path: str) -> None:
        self._files.append(os.open(path, os.O_RDONLY | os.O_CLOEXEC))

    def advance(self) -> bool:
        """Writes as much as the pipe accepts. Returns whether there is more."""
        while self._rest or self._read_more():
            try:
                self._rest = self._rest[os.write(self.pipe, self._rest) :]
            except BlockingIOError:
                return True
            except BrokenPipeError:  # the program has closed its stdin
                self._drop()
        return False

    def close(self) -> None:
        self._drop()
        if self.pipe != GONE:
            os.close(self.pipe)
        self.pipe = GONE

    def _read_more(self) -> bool:
        while self._files and not self._rest:
            self._rest = os.read(self._files[0], CHUNK_BYTES)
            if not self._rest:
                os.close(self._files.pop(0))
        return bool(self._rest)

    def _drop(self) -> None:
        self._rest = b""
        while self._files:
            os.close(self._files.pop())
