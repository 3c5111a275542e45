"""The logs of all runs together: what they may grow by, and who makes room. Real files."""

import errno
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramherd.keeper.log_quota import LEAST_BYTES, LogQuota
from ramherd.keeper.output_log import OutputLog
from ramherd.measure.run_output import read_output
from unit.keeper.test_output_log import Pipe, layout_of

MIB = 1 << 20
PIECE = 1 << 16


class Stream:
    """One log, and what was printed into it."""

    def __init__(self, path: Path, log: OutputLog, pipe: Pipe) -> None:
        self.path, self.log, self.pipe = path, log, pipe
        self.data = b""

    def print(self, data: bytes) -> None:
        self.data += data
        for at in range(0, len(data), PIECE):
            os.write(self.pipe.write, data[at : at + PIECE])
            assert self.log.drain(self.pipe.read)

    @property
    def on_disk(self) -> int:
        return self.path.stat().st_blocks * 512

    def check(self) -> None:
        """What the file holds is what was printed there, and the rest is counted."""
        place, held = 0, 0
        for piece in read_output(self.path.parent, self.path.name, layout_of(self.log)):
            if isinstance(piece, bytes):
                assert piece == self.data[place : place + len(piece)]
                held += len(piece)
            place += piece if isinstance(piece, int) else len(piece)
        assert (place, held) == (self.log.kept, self.log.held)


@contextmanager
def streams(
    tmp_path: Path, count: int, head: int = 8 * MIB, ring: int = 56 * MIB
) -> Iterator[tuple[LogQuota, list[Stream]]]:
    quota = LogQuota()
    with ExitStack() as stack:
        found = []
        for number in range(count):
            path = tmp_path / f"out{number}"
            log, pipe = OutputLog(str(path), head, ring, quota), Pipe()
            stack.callback(log.close)
            stack.callback(pipe.close)
            found.append(Stream(path, log, pipe))
        yield quota, found


def pattern(size: int) -> bytes:
    return (b"".join(b"%07d\n" % number for number in range(size // 8 + 1)))[:size]


def test_without_a_limit_nothing_is_dropped(tmp_path: Path) -> None:
    """A supervisor of an earlier version sets none."""
    with streams(tmp_path, 1) as (_quota, (one,)):
        one.print(pattern(4 * MIB))
        assert (one.log.held, one.log.is_partial) == (4 * MIB, False)


def test_a_flood_stays_within_its_limit(tmp_path: Path) -> None:
    """On disk, not by its size: the first and the last of it are there."""
    data = pattern(40 * MIB)
    with streams(tmp_path, 1) as (quota, (one,)):
        quota.set_growth(8 * MIB)
        one.print(data)

        assert 7 * MIB <= one.on_disk <= 8 * MIB + PIECE
        one.check()
        pieces = list(read_output(tmp_path, "out0", layout_of(one.log)))
        assert isinstance(pieces[0], bytes)
        assert isinstance(pieces[-1], bytes)
        assert data.startswith(pieces[0])
        assert data.endswith(pieces[-1])


def test_the_largest_makes_room(tmp_path: Path) -> None:
    """A run that prints little keeps all of it beside one that printed before."""
    with streams(tmp_path, 2) as (quota, (large, small)):
        quota.set_growth(12 * MIB)
        large.print(pattern(12 * MIB))
        small.print(pattern(4 * MIB))

        assert not small.log.is_partial
        assert large.log.held <= 8 * MIB
        assert small.on_disk + large.on_disk <= 12 * MIB + PIECE
        large.check()


def test_a_limit_below_zero_shrinks_what_is_there(tmp_path: Path) -> None:
    """log_total was lowered, or another ramherd writes too; each stream keeps its least."""
    with streams(tmp_path, 3) as (quota, all_):
        for stream in all_:
            stream.print(pattern(6 * MIB))
        quota.set_growth(-9 * MIB)
        assert sum(stream.log.held for stream in all_) <= 9 * MIB
        quota.set_growth(-90 * MIB)
        assert all(stream.log.held == LEAST_BYTES for stream in all_)
        for stream in all_:
            assert stream.on_disk <= LEAST_BYTES + 2 * 4096
            stream.check()
            stream.print(pattern(3 * MIB))
            stream.check()
            assert stream.log.held <= LEAST_BYTES + 4096


def test_room_that_comes_back_is_used(tmp_path: Path) -> None:
    """A ring that was made smaller grows again."""
    with streams(tmp_path, 1) as (quota, (one,)):
        one.print(pattern(8 * MIB))
        quota.set_growth(-6 * MIB)
        quota.set_growth(20 * MIB)
        one.print(pattern(10 * MIB))
        assert one.log.held == 12 * MIB
        one.check()


def test_what_a_finished_run_holds_is_not_dropped(tmp_path: Path) -> None:
    """Whoever counts finished runs removes their output."""
    with streams(tmp_path, 2) as (quota, (finished, live)):
        finished.print(pattern(4 * MIB))
        finished.log.close()
        quota.set_growth(-4 * MIB)
        live.print(pattern(2 * MIB))
        assert finished.on_disk == 4 * MIB
        assert live.log.held <= LEAST_BYTES + 4096


def test_where_no_holes_can_be_made_nothing_more_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bound holds there too: what does not fit is counted as lost."""

    def refuse(_fd: int, _start: int, _length: int) -> None:
        raise OSError(errno.ENOTTY, "no holes here")

    monkeypatch.setattr("ramherd.keeper.output_log.punch_hole", refuse)
    with streams(tmp_path, 1) as (quota, (one,)):
        quota.set_growth(2 * MIB)
        one.print(pattern(5 * MIB))
        assert 2 * MIB <= one.log.held <= 2 * MIB + PIECE
        assert one.log.lost == 5 * MIB - one.log.held
        one.check()


@given(
    st.integers(0, 40), st.integers(1, 60),
    st.lists(st.one_of(st.binary(min_size=1, max_size=40), st.integers(-60, 60)), max_size=12),
)  # fmt: skip
def test_whatever_is_printed_and_dropped_the_rest_is_read_in_order(
    tmp_path_factory: pytest.TempPathFactory, head: int, ring: int, steps: list[bytes | int]
) -> None:
    """Bytes printed, and limits set in between, with pages of one byte."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ramherd.keeper.output_log.PAGE_BYTES", 1)
        patch.setattr("ramherd.keeper.log_quota.LEAST_BYTES", 6)
        patch.setattr("ramherd.keeper.log_quota.STEP_BYTES", 5)
        with streams(tmp_path_factory.mktemp("logs"), 2, head, ring) as (quota, both):
            for number, step in enumerate(steps):
                if isinstance(step, int):
                    quota.set_growth(step)
                else:
                    both[number % 2].print(step)
                for stream in both:
                    stream.check()
