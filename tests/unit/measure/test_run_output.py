"""What a run printed, read back: the head, the ring in order, and what was dropped between."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramherd.measure.run_output import Follower, Layout, read_layout, read_output, read_tail

HEAD, RING = 5, 7
SIZES = st.integers(0, 40)


def on_disk(data: bytes, head: int, ring: int) -> bytes:
    """The file as it is when each byte went to its place, one after the other."""
    file = bytearray()
    for at, byte in enumerate(data):
        place = at if at < head else head + (at - head) % ring
        file[place : place + 1] = bytes([byte])
    return bytes(file)


def expected(data: bytes, head: int, ring: int, start: int) -> list[bytes | int]:
    """From `start` on: byte by byte, and a number for what is not there any more."""
    dropped = max(len(data) - head - ring, 0)
    kept_again = head + dropped
    found: list[bytes | int] = []
    if start < min(head, len(data)) and dropped:
        found.append(data[start:head])
    if dropped and start < kept_again:
        found.append(kept_again - max(start, head))
    found.append(data[start if not dropped else max(start, kept_again) :])
    return joined(found)


def joined(pieces: list[bytes | int]) -> list[bytes | int]:
    """Neighbouring bytes are one piece, and no piece is empty."""
    found: list[bytes | int] = []
    for piece in pieces:
        if isinstance(piece, bytes) and found and isinstance(found[-1], bytes):
            found[-1] += piece
        elif piece:
            found.append(piece)
    return found


def write_run(run_dir: Path, data: bytes, head: int, ring: int, lost: int = 0) -> None:
    run_dir.mkdir(exist_ok=True)
    (run_dir / "out").write_bytes(on_disk(data, head, ring))
    meta = {
        "bytes": len(data) + lost,
        "dropped_bytes": max(len(data) - head - ring, 0),
        "lost_bytes": lost,
        "errno": 0,
        "head_bytes": head,
        "ring_bytes": ring,
    }
    (run_dir / "meta.json").write_text(json.dumps({"out": meta}))


@given(SIZES, SIZES, st.integers(1, 12), SIZES)
def test_everything_kept_is_read_in_order(
    tmp_path: Path, size: int, head: int, ring: int, start: int
) -> None:
    """From any byte on, against a model that writes one byte after the other."""
    data, start = bytes(range(size)), min(start, size)
    write_run(tmp_path, data, head, ring)

    layout = read_layout(tmp_path, "out")
    found = list(read_output(tmp_path, "out", layout, start))

    assert joined(found) == expected(data, head, ring, start)
    assert layout.total == size


@given(SIZES, SIZES, st.integers(1, 12), SIZES)
def test_pieces_cover_what_was_printed_exactly_once(
    total: int, head: int, ring: int, start: int
) -> None:
    """Their lengths add up, and each lies inside the file."""
    start = min(start, total)
    dropped = max(total - head - ring, 0)
    pieces = list(Layout(total, head, ring, gap=head, dropped=dropped).pieces(start))

    assert sum(length for _offset, length in pieces) == total - start
    assert sum(offset is None for offset, _length in pieces) <= 1
    for offset, length in pieces:
        assert length >= 0
        assert offset is None or offset + length <= min(total, head + ring)


@given(SIZES, st.integers(0, 30))
def test_the_tail_is_the_last_of_it(tmp_path: Path, size: int, most: int) -> None:
    """At most so many bytes; fewer where the ring no longer has them."""
    data = bytes(range(size))
    write_run(tmp_path, data, HEAD, RING)

    found = expected(data, HEAD, RING, max(size - most, 0))

    assert read_tail(tmp_path, "out", most) == b"".join(x for x in found if isinstance(x, bytes))


def test_while_nothing_was_dropped_the_size_of_the_file_says_it_all(tmp_path: Path) -> None:
    """No meta.json yet, or one that is older than the file."""
    (tmp_path / "out").write_bytes(b"0123456789")
    assert read_layout(tmp_path, "out") == Layout(total=10)

    write_run(tmp_path, b"012", HEAD, RING)
    (tmp_path / "out").write_bytes(b"0123456789")
    assert read_layout(tmp_path, "out") == Layout(total=10)


def test_a_run_that_printed_nothing_has_an_empty_output(tmp_path: Path) -> None:
    """No file, no meta.json, no directory: nothing to read, and no error."""
    nowhere = tmp_path / "none"

    assert read_layout(nowhere, "out") == Layout(total=0)
    assert list(read_output(nowhere, "out", Layout(total=10))) == []
    assert read_tail(nowhere, "err", 100) == b""


def test_what_no_disk_took_is_known(tmp_path: Path) -> None:
    """Counted beside what was kept, and no part of it."""
    write_run(tmp_path, b"0123", HEAD, RING, lost=99)

    layout = read_layout(tmp_path, "out")

    assert (layout.total, layout.lost, layout.dropped) == (4, 99, 0)


def test_a_stream_that_meta_does_not_know_is_read_by_its_size(tmp_path: Path) -> None:
    """Each stream for itself."""
    write_run(tmp_path, b"0" * 30, HEAD, RING)
    (tmp_path / "err").write_bytes(b"err")

    assert read_tail(tmp_path, "err", 100) == b"err"


def test_a_file_shorter_than_told_ends_where_it_ends(tmp_path: Path) -> None:
    """Somebody truncated it: what is there is read, and nobody waits for the rest."""
    (tmp_path / "out").write_bytes(b"01234")

    assert b"".join(read_output(tmp_path, "out", Layout(total=100), 3)) == b"34"  # type: ignore[arg-type]


def test_chunks_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A large log does not become large memory."""
    monkeypatch.setattr("ramherd.measure.run_output.CHUNK_BYTES", 4)
    (tmp_path / "out").write_bytes(b"0123456789")

    assert list(read_output(tmp_path, "out", Layout(total=10))) == [b"0123", b"4567", b"89"]


def test_a_reader_that_stops_early_leaves_no_file_open(tmp_path: Path) -> None:
    """`ramherd logs | head`."""
    (tmp_path / "out").write_bytes(b"x" * (1 << 20))

    pieces = read_output(tmp_path, "out", Layout(total=1 << 20))
    assert next(pieces)
    pieces.close()  # type: ignore[attr-defined]


@pytest.mark.parametrize("meta", [b"", b'{"out": {"byt', b"\xff"])
def test_a_meta_that_cannot_be_read_is_none(tmp_path: Path, meta: bytes) -> None:
    """A power cut: what is on disk is read by its size."""
    (tmp_path / "out").write_bytes(b"0123")
    (tmp_path / "meta.json").write_bytes(meta)

    assert read_layout(tmp_path, "out") == Layout(total=4)


@given(st.lists(SIZES, min_size=1, max_size=6))
def test_a_follower_reads_each_byte_once(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int]
) -> None:
    """Whatever comes between two looks; what was dropped meanwhile is an end of line."""
    run_dir = tmp_path_factory.mktemp("run")
    follower, data, at, found, gaps = Follower(run_dir, "out", HEAD + RING), b"", 0, b"", 0
    for size in sizes:
        data += bytes(48 + (len(data) + n) % 60 for n in range(size))
        write_run(run_dir, data, HEAD, RING)
        lost = max(len(data) - RING - max(at, HEAD), 0) if len(data) > HEAD + RING else 0
        found += b"".join(follower.read(1 << 20))
        gaps += lost > 0
        at = len(data)

    assert found.count(b"\n") == gaps
    assert found.endswith(data[-RING:].lstrip(b"\n")) or len(data) <= HEAD
    assert gaps or found == data


def test_a_follower_reads_no_more_than_it_may(tmp_path: Path) -> None:
    """The rest comes with the next look."""
    write_run(tmp_path, b"x" * 200_000, 1 << 20, 1 << 20)
    follower = Follower(tmp_path, "out", 2 << 20)
    first = b"".join(follower.read(100_000))

    assert follower.is_behind
    assert 100_000 <= len(first) < 200_000
    assert len(b"".join(follower.read(1 << 20))) == 200_000 - len(first)
    assert not follower.is_behind


def test_a_follower_of_nothing_waits(tmp_path: Path) -> None:
    """The keeper has not made the file yet."""
    assert list(Follower(tmp_path, "out", 10).read(10)) == []
