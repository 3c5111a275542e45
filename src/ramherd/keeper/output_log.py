"""The output of a run, on disk with a limit: the first 8 MiB, then a ring of the last 56 MiB.

Used by the keeper, so it imports only small modules. Bytes go from the pipe to the file inside the
kernel (splice): the keeper's memory does not grow, even if an agent prints 5 GB or one line of 1
GB. When all logs together are too large, the oldest part of the ring is dropped (a hole in the
file), then the end of the head: the position of a byte in the file never changes.
"""

import errno
import os
import time

from ramherd.keeper.log_quota import LogQuota
from ramherd.system.holes import punch_hole
from ramherd.system.splice import splice

HEAD_BYTES = 8 << 20
RING_BYTES = 56 << 20
# One splice moves the content of the pipe, usually 64 KiB; after 64 of them other runs get a turn.
CHUNK_BYTES = 1 << 20
TURNS = 64
PAGE_BYTES = 4096
# A disk that was full is tried again after this.
RETRY_S = 1.0


class OutputLog:
    """One stream of one run. `total` counts the printed bytes, `lost` those that a full disk
    refused. The file has the rest, except for the dropped bytes from `_gap` up to `_oldest`.
    """

    def __init__(
        self,
        path: str,
        head: int = HEAD_BYTES,
        ring: int = RING_BYTES,
        quota: LogQuota | None = None,
    ) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        self._fd = os.open(path, flags, 0o600)
        self._null = -1
        self._head = head
        self._ring = ring
        self._gap = self._oldest = head
        self.total = 0
        self.lost = 0
        self.error = 0
        self._retry_s = 0.0
        # Its file system does not support holes.
        self.is_fixed = False
        self._quota = quota or LogQuota()
        self._quota.add(self)

    @property
    def kept(self) -> int:
        """How many bytes were written to the file, including those dropped since."""
        return self.total - self.lost

    @property
    def dropped(self) -> int:
        return self._oldest - self._gap

    @property
    def held(self) -> int:
        return self.kept - self.dropped

    def drain(self, pipe: int) -> bool:
        """Moves the content of the pipe into the file; False at its end."""
        for _turn in range(TURNS):
            try:
                moved = self._move(pipe)
            except BlockingIOError:
                return True
            if moved == 0:
                return False
        return True

    def _move(self, pipe: int) -> int:
        if self.error and time.monotonic() < self._retry_s:
            return self._discard(pipe)
        if not self._quota.may_grow(self):
            return self._discard(pipe)
        offset, room = self._position()
        try:
            moved = splice(pipe, self._fd, room, offset)
        except BlockingIOError:
            raise
        except OSError as error:
            if error.errno == errno.EINVAL:  # a file system without splice
                return self._copy(pipe, offset, room)
            self._fail(error)
            return self._discard(pipe)
        self.total += moved
        self._count_growth(moved)
        return moved

    def _position(self) -> tuple[int, int]:
        """The offset of the next byte, and how many bytes fit there in one piece."""
        offset = self._offset_of(self.kept)
        end = self._head if offset < self._head else self._head + self._ring
        return offset, min(end - offset, CHUNK_BYTES)

    def _offset_of(self, place: int) -> int:
        """The offset of byte `place` of the stream in the file."""
        if place < self._head:
            return place
        return self._head + (place - self._head) % self._ring

    def _count_growth(self, moved: int) -> None:
        """Bytes that the ring overwrote count as dropped, and did not make the file larger."""
        before = self.dropped
        if self.kept > self._head + self._ring:
            if self._oldest < self._head:  # writing does not overwrite the end of the head
                self._punch(self._oldest, self._head)
                self._oldest = self._head
            self._oldest = max(self._oldest, self.kept - self._ring)
        self._quota.count(moved - (self.dropped - before))

    def drop(self, size: int) -> int:
        """Frees `size` bytes, in whole pages, and returns how many. An eighth of the remaining
        bytes is the beginning, as in a log of full size.
        """
        before, left = self.held, self.held - size
        gap = min(self._gap, left // 8 // PAGE_BYTES * PAGE_BYTES)
        oldest = -((left - gap - self.kept) // PAGE_BYTES * PAGE_BYTES)
        oldest = min(max(oldest, self._oldest if self.dropped else gap), self.kept)
        try:
            if self.dropped:
                self._punch(gap, self._gap)
                self._punch(self._oldest, oldest)
            else:
                self._punch(gap, oldest)
        except OSError:
            self.is_fixed = True
            return 0
        self._gap, self._oldest = gap, oldest
        return before - self.held

    def _punch(self, first: int, end: int) -> None:
        """Frees bytes `first` to `end` of the stream, which may be in several parts of the file."""
        while first < end:
            offset = self._offset_of(first)
            edge = self._head if first < self._head else self._head + self._ring
            length = min(end - first, edge - offset)
            punch_hole(self._fd, offset, length)
            first += length

    def _copy(self, pipe: int, offset: int, room: int) -> int:
        data = os.read(pipe, min(room, 1 << 16))
        written = 0
        try:
            while written < len(data):
                written += os.pwrite(self._fd, data[written:], offset + written)
        except OSError as error:
            self._fail(error)
            self.lost += len(data) - written
        self.total += len(data)
        self._count_growth(written)
        return len(data)

    def _fail(self, error: OSError) -> None:
        self.error = error.errno or errno.EIO
        self._retry_s = time.monotonic() + RETRY_S

    def _discard(self, pipe: int) -> int:
        """A full disk must not stop the agent: its output is counted meanwhile, not kept."""
        if self._null < 0:
            self._null = os.open("/dev/null", os.O_WRONLY | os.O_CLOEXEC)
        moved = splice(pipe, self._null, CHUNK_BYTES)
        self.total += moved
        self.lost += moved
        return moved

    @property
    def is_partial(self) -> bool:
        """Whether output is missing in the file: `meta.json` is needed to read it."""
        return self.dropped > 0 or self.lost > 0

    def meta(self) -> dict[str, int]:
        return {
            "bytes": self.total,
            "dropped_bytes": self.dropped,
            "dropped_from": self._gap,
            "lost_bytes": self.lost,
            "errno": self.error,
            "head_bytes": self._head,
            "ring_bytes": self._ring,
        }

    def close(self) -> None:
        self._quota.remove(self)
        for fd in (self._fd, self._null):
            if fd >= 0:
                os.close(fd)
        self._fd = self._null = -1
