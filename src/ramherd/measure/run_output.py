"""Reading the output of a run: the head, the ring put in order, and the bytes dropped in between.

`keeper/output_log.py` writes the layout; `meta.json` is needed only once bytes were dropped.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ramherd.system.files import parse_record

CHUNK_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class Layout:
    """`total` bytes were printed and written in order: first the `head`, then around a `ring`. All
    of them are still in the file, except `dropped` bytes from byte `gap` on.
    """

    total: int
    head: int = 0
    ring: int = 0
    lost: int = 0
    gap: int = 0
    dropped: int = 0

    def pieces(self, start: int = 0) -> Iterator[tuple[int | None, int]]:
        """(offset in the file, length) of all output from `start` on; the offset is None where
        bytes were dropped.
        """
        if not self.dropped:
            yield start, self.total - start
            return
        if start < self.gap:
            yield start, self.gap - start
        oldest = self.gap + self.dropped
        if (missing := oldest - max(start, self.gap)) > 0:
            yield None, missing
        first = max(start, oldest)
        while first < self.total:
            inside = (first - self.head) % self.ring
            offset = first if first < self.head else self.head + inside
            end = self.head if first < self.head else self.head + self.ring
            length = min(end - offset, self.total - first)
            yield offset, length
            first += length


def read_layout(run_dir: Path, stream: str) -> Layout:
    """Before any byte is dropped, the layout follows from the file's size, without delay; after
    that from `meta.json`, which is written every second.
    """
    size = _size(run_dir / stream)
    try:
        meta = parse_record((run_dir / "meta.json").read_bytes())
    except OSError:
        meta = None
    if meta is None or stream not in meta:
        return Layout(total=size)
    meta = meta[stream]
    kept = meta["bytes"] - meta["lost_bytes"]
    if not meta["dropped_bytes"]:
        return Layout(total=max(size, kept), lost=meta["lost_bytes"])
    head = meta["head_bytes"]
    # Keepers of earlier versions dropped only the bytes that the ring overwrote.
    gap = meta.get("dropped_from", head)
    return Layout(
        kept, head, meta["ring_bytes"], meta["lost_bytes"], gap, meta["dropped_bytes"]
    )  # fmt: skip


def is_interactive(run_dir: Path) -> bool:
    """Whether the run was a session of `ramherd exec`, which printed to its terminal."""
    try:
        meta = parse_record((run_dir / "meta.json").read_bytes())
    except FileNotFoundError:
        return False
    return bool(meta and meta.get("interactive"))


def read_output(
    run_dir: Path, stream: str, layout: Layout, start: int = 0
) -> Iterator[bytes | int]:
    """The output from byte `start` on, in order and in chunks of bounded size; a number stands for
    that many dropped bytes.
    """
    try:
        fd = os.open(run_dir / stream, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        for offset, length in layout.pieces(start):
            if offset is None:
                yield length
            else:
                yield from _read_piece(fd, offset, length)
    finally:
        os.close(fd)


def read_tail(run_dir: Path, stream: str, most: int) -> bytes:
    layout = read_layout(run_dir, stream)
    found = read_output(run_dir, stream, layout, max(layout.total - most, 0))
    return b"".join(piece for piece in found if isinstance(piece, bytes))


class OutputCursor:
    """Reads one stream of a run from its last position."""

    def __init__(self, run_dir: Path, stream: str) -> None:
        self._run_dir = run_dir
        self.stream = stream
        self._at = 0
        self._seen: object = None
        # Bytes that were never written because the disk was full.
        self.lost_bytes = 0

    def read_new(self) -> Iterator[bytes | int]:
        """In chunks of bounded size; a number stands for that many dropped bytes."""
        seen = [_version(self._run_dir / name) for name in (self.stream, "meta.json")]
        if seen == self._seen:
            return
        self._seen = seen
        layout = read_layout(self._run_dir, self.stream)
        yield from read_output(self._run_dir, self.stream, layout, self._at)
        self._at, self.lost_bytes = layout.total, layout.lost


class Follower:
    """One stream of a growing run: new output, once, in pieces of bounded size.

    `kept_bytes` is the capacity of the file: below it, the file's size is all that was printed.
    """

    def __init__(self, run_dir: Path, stream: str, kept_bytes: int) -> None:
        self._run_dir = run_dir
        self._stream = stream
        self._kept = kept_bytes
        self._at = 0
        # Whether there was more output than the last call was allowed to read.
        self.is_behind = False

    @property
    def at(self) -> int:
        """The number of bytes read."""
        return self._at

    def read(self, most: int) -> Iterator[bytes]:
        """Bytes that were dropped before they could be read end the line that they were in."""
        self.is_behind = False
        size = _size(self._run_dir / self._stream)
        if size < self._kept and size <= self._at:
            return
        layout = Layout(size) if size < self._kept else read_layout(self._run_dir, self._stream)
        if layout.total <= self._at:
            return
        until = self._at + most
        for piece in read_output(self._run_dir, self._stream, layout, self._at):
            self._at += piece if isinstance(piece, int) else len(piece)
            yield b"\n" if isinstance(piece, int) else piece
            if self._at >= until:
                self.is_behind = self._at < layout.total
                return


def _read_piece(fd: int, offset: int, length: int) -> Iterator[bytes]:
    end = offset + length
    while offset < end and (chunk := os.pread(fd, min(CHUNK_BYTES, end - offset), offset)):
        yield chunk
        offset += len(chunk)


def _version(path: Path) -> tuple[int, int]:
    try:
        found = path.stat()
    except FileNotFoundError:
        return 0, 0
    return found.st_size, found.st_mtime_ns


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
