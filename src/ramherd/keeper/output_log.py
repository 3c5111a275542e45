"""What a run prints, on disk with a bound: the first 8 MiB, then a ring of the last 56 MiB.

Used by the keeper, so os only. Bytes go from the pipe to the file inside the kernel (splice):
whatever an agent prints, 5 GB or one line of 1 GB, the keeper's memory stays as it is.
"""

import errno
import os

from ramherd.system.splice import splice

HEAD_BYTES = 8 << 20
RING_BYTES = 56 << 20
# One splice moves what the pipe holds, 64 KiB mostly; after 64 of them other runs get a turn.
CHUNK_BYTES = 1 << 20
TURNS = 64


class OutputLog:
    """One stream of one run. `total` counts what was printed, `lost` what no disk took."""

    def __init__(self, path: str, head: int = HEAD_BYTES, ring: int = RING_BYTES) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        self._fd = os.open(path, flags, 0o600)
        self._null = -1
        self._head = head
        self._ring = ring
        self.total = 0
        self.lost = 0
        self.error = 0

    def drain(self, pipe: int) -> bool:
        """Move what the pipe holds into the file; False at its end."""
        for _turn in range(TURNS):
            try:
                moved = self._move(pipe)
            except BlockingIOError:
                return True
            if moved == 0:
                return False
        return True

    def _move(self, pipe: int) -> int:
        if self.error:
            return self._discard(pipe)
        offset, room = self._position()
        try:
            moved = splice(pipe, self._fd, room, offset)
        except BlockingIOError:
            raise
        except OSError as error:
            if error.errno == errno.EINVAL:  # a file system without splice
                return self._copy(pipe, offset, room)
            self.error = error.errno or errno.EIO
            return self._discard(pipe)
        self.total += moved
        return moved

    def _position(self) -> tuple[int, int]:
        """Where the next byte goes, and how many fit there in one piece."""
        if self.total < self._head:
            return self.total, min(self._head - self.total, CHUNK_BYTES)
        inside = (self.total - self._head) % self._ring
        return self._head + inside, min(self._ring - inside, CHUNK_BYTES)

    def _copy(self, pipe: int, offset: int, room: int) -> int:
        data = os.read(pipe, min(room, 1 << 16))
        written = 0
        try:
            while written < len(data):
                written += os.pwrite(self._fd, data[written:], offset + written)
        except OSError as error:
            self.error = error.errno or errno.EIO
            self.lost += len(data) - written
        self.total += len(data)
        return len(data)

    def _discard(self, pipe: int) -> int:
        """A full disk must not stop the agent: from then on bytes are counted, not kept."""
        if self._null < 0:
            self._null = os.open("/dev/null", os.O_WRONLY | os.O_CLOEXEC)
        moved = splice(pipe, self._null, CHUNK_BYTES)
        self.total += moved
        self.lost += moved
        return moved

    @property
    def wrapped(self) -> bool:
        return self.total - self.lost > self._head + self._ring

    def meta(self) -> dict[str, int]:
        kept = self.total - self.lost
        dropped = max(kept - self._head - self._ring, 0)
        return {
            "bytes": self.total,
            "dropped_bytes": dropped,
            "lost_bytes": self.lost,
            "errno": self.error,
            "head_bytes": self._head,
            "ring_bytes": self._ring,
        }

    def close(self) -> None:
        for fd in (self._fd, self._null):
            if fd >= 0:
                os.close(fd)
        self._fd = self._null = -1
