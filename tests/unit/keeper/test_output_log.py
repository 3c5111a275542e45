"""The log of one stream: through a real pipe into a real file."""

import errno
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramherd.keeper.output_log import OutputLog
from ramherd.measure.run_output import Layout, read_output
from unit.measure.test_run_output import expected, joined, on_disk


class Pipe:
    """Both ends of a pipe; the reading one does not block, as the keeper's does not."""

    def __init__(self) -> None:
        self.read, self.write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)

    def close(self) -> None:
        for fd in {self.read, self.write} - {-1}:
            os.close(fd)
        self.read = self.write = -1

    def end(self) -> None:
        os.close(self.write)
        self.write = -1


@contextmanager
def logging(path: Path | str, head: int = 5, ring: int = 7) -> Iterator[tuple[OutputLog, Pipe]]:
    log, pipe = OutputLog(str(path), head, ring), Pipe()
    try:
        yield log, pipe
    finally:
        log.close()
        pipe.close()


def layout_of(log: OutputLog) -> Layout:
    meta = log.meta()
    kept = meta["bytes"] - meta["lost_bytes"]
    return Layout(
        kept, meta["head_bytes"], meta["ring_bytes"], meta["lost_bytes"],
        meta["dropped_from"], meta["dropped_bytes"],
    )  # fmt: skip


@given(
    st.lists(st.binary(max_size=20), max_size=8), st.integers(0, 20), st.integers(1, 12),
    st.booleans(),
)  # fmt: skip
def test_head_and_ring_hold_what_the_model_says(
    tmp_path: Path, writes: list[bytes], head: int, ring: int, drain_each: bool
) -> None:
    """However the bytes come, and however often the keeper looks."""
    data = b"".join(writes)
    with logging(tmp_path / "out", head, ring) as (log, pipe):
        for piece in writes:
            os.write(pipe.write, piece)
            if drain_each:
                assert log.drain(pipe.read)
        assert log.drain(pipe.read)
        pipe.end()
        assert not log.drain(pipe.read)
        layout = layout_of(log)
        assert log.meta()["dropped_bytes"] == max(len(data) - head - ring, 0) == layout.dropped
        assert log.is_partial is (layout.dropped > 0)

    assert (tmp_path / "out").read_bytes() == on_disk(data, head, ring)
    found = list(read_output(tmp_path, "out", layout))
    assert joined(found) == expected(data, head, ring, 0)


def test_the_disk_stays_under_the_cap(tmp_path: Path) -> None:
    """A thousand times the ring is printed, head and ring are kept."""
    with logging(tmp_path / "out", 10, 100) as (log, pipe):
        for _ in range(100):
            os.write(pipe.write, b"x" * 1000)
            log.drain(pipe.read)
        assert log.meta() == {
            "bytes": 100_000, "dropped_bytes": 99_890, "dropped_from": 10, "lost_bytes": 0,
            "errno": 0, "head_bytes": 10, "ring_bytes": 100,
        }  # fmt: skip

    assert (tmp_path / "out").stat().st_size == 110


def test_an_empty_pipe_is_not_its_end(tmp_path: Path) -> None:
    """A run that is silent may still print; one that has closed its output will not."""
    with logging(tmp_path / "out") as (log, pipe):
        assert log.drain(pipe.read)
        pipe.end()
        assert not log.drain(pipe.read)


def test_one_drain_takes_its_turn_and_no_more(tmp_path: Path) -> None:
    """A run that floods does not keep the keeper from the others."""
    with logging(tmp_path / "out", 1 << 20, 1) as (log, pipe):
        os.write(pipe.write, b"x" * 60_000)
        with logging(tmp_path / "ring", 0, 1) as (tiny, _):
            # One byte a turn: 64 turns.
            assert tiny.drain(pipe.read)
            assert tiny.total == 64
        log.drain(pipe.read)
        assert log.total == 60_000 - 64


def test_a_log_is_private(tmp_path: Path) -> None:
    """Agents print secrets."""
    with logging(tmp_path / "out"):
        assert (tmp_path / "out").stat().st_mode & 0o777 == 0o600


def test_a_closed_log_can_be_closed_again(tmp_path: Path) -> None:
    """And never closes somebody else's descriptor."""
    with logging(tmp_path / "out") as (log, _):
        log.close()
        log.close()


@contextmanager
def file_size_limit(size: int) -> Iterator[None]:
    """Writes beyond fail with EFBIG: a disk that is full, for everybody who may run tests."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_does_not_stop_the_agent(tmp_path: Path) -> None:
    """What fits is kept; the rest is taken from the pipe, counted, and not kept."""
    data = bytes(range(256)) * 32
    with logging(tmp_path / "out", 1 << 20, 1 << 20) as (log, pipe):
        os.write(pipe.write, data)
        with file_size_limit(5000):
            assert log.drain(pipe.read)
        os.write(pipe.write, b"more")
        assert log.drain(pipe.read)
        meta = log.meta()

    kept = (tmp_path / "out").read_bytes()
    assert data.startswith(kept)
    assert meta["errno"] == errno.EFBIG
    assert (meta["bytes"], meta["lost_bytes"]) == (len(data) + 4, len(data) + 4 - len(kept))
    assert meta["dropped_bytes"] == 0


def test_a_disk_with_room_again_is_written_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lines in between are counted, and those after it follow the ones before."""
    monkeypatch.setattr("ramherd.keeper.output_log.RETRY_S", 0.0)
    with logging(tmp_path / "out", 1 << 20, 1 << 20) as (log, pipe):
        os.write(pipe.write, b"before ")
        assert log.drain(pipe.read)
        os.write(pipe.write, b"lost")
        with file_size_limit(7):
            assert log.drain(pipe.read)
        os.write(pipe.write, b"after")
        assert log.drain(pipe.read)

        assert (log.total, log.lost, log.is_partial) == (16, 4, True)
    assert (tmp_path / "out").read_bytes() == b"before after"


def test_a_file_system_without_splice_may_be_full_too() -> None:
    """/dev/full takes no splice and no byte: the keeper must not die of it."""
    with logging("/dev/full") as (log, pipe):
        os.write(pipe.write, b"abc")
        assert log.drain(pipe.read)
        assert log.meta() | {"bytes": 3, "lost_bytes": 3, "errno": errno.ENOSPC} == log.meta()


def test_a_file_system_without_splice_is_written_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some answer EINVAL: the bytes are copied, to the same places."""

    def refuse(*_args: object, **_options: object) -> int:
        raise OSError(errno.EINVAL, "no splice here")

    monkeypatch.setattr(os, "splice", refuse)
    data = bytes(range(30))
    with logging(tmp_path / "out") as (log, pipe):
        os.write(pipe.write, data)
        assert log.drain(pipe.read)
        pipe.end()
        assert not log.drain(pipe.read)
        assert log.total == 30

    assert (tmp_path / "out").read_bytes() == on_disk(data, 5, 7)
