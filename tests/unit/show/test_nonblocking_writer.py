"""Writing to who may not read: nothing waits, and nothing is lost without a word."""

import os
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

import pytest

from ramherd.show.nonblocking_writer import MOST_BYTES, NonblockingWriter

LINE = "x" * 99 + "\n"
# A pipe takes 64 KiB, and what is kept is bounded: so many are kept, and so many never.
FITS = MOST_BYTES // len(LINE)
TOO_MANY = 2 * (MOST_BYTES + 65536) // len(LINE)


class Waited(Exception):
    """Not an OSError: that is what a closed window is."""


@contextmanager
def alarm(seconds: float) -> Iterator[None]:
    def ring(*_: object) -> None:
        raise Waited

    old = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)


class Pipe:
    """`out` is the end to write to; what arrived is read without waiting."""

    def __init__(self, encoding: str = "utf-8") -> None:
        self._read, write = os.pipe()
        os.set_blocking(self._read, False)
        self.out: TextIO = open(write, "w", encoding=encoding)  # noqa: SIM115

    def read(self) -> bytes:
        data = b""
        with suppress(BlockingIOError):
            while chunk := os.read(self._read, 1 << 20):
                data += chunk
        return data

    def hang_up(self) -> None:
        os.close(self._read)
        self._read = -1

    def close(self) -> None:
        if self._read != -1:
            os.close(self._read)
        self.out.close()


@contextmanager
def a_pipe(encoding: str = "utf-8") -> Iterator[Pipe]:
    pipe = Pipe(encoding)
    try:
        yield pipe
    finally:
        pipe.close()


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    with a_pipe() as made:
        yield made


def write_lines(writer: NonblockingWriter, number: int, within_s: float = 5.0) -> list[str]:
    """So many different lines, while nobody reads."""
    lines = [f"{n:099}\n" for n in range(number)]
    with alarm(within_s):
        for line in lines:
            writer.write(line)
    return lines


def drain(writer: NonblockingWriter, pipe: Pipe) -> bytes:
    """A reader that came back, until nothing more comes."""
    data = b""
    while chunk := pipe.read():
        data += chunk
        writer.flush()
    return data


def test_what_is_written_is_there_at_once(pipe: Pipe) -> None:
    """No line waits for the next."""
    writer = NonblockingWriter(pipe.out)

    writer.write("a\n")
    assert pipe.read() == b"a\n"
    writer.write("b\n")
    assert pipe.read() == b"b\n"


def test_what_is_not_read_is_kept_and_comes_later(pipe: Pipe) -> None:
    """In order, each byte once, without another write."""
    writer = NonblockingWriter(pipe.out)
    lines = write_lines(writer, FITS)

    assert drain(writer, pipe).decode() == "".join(lines)


def test_what_is_kept_is_bounded_and_the_rest_is_counted(pipe: Pipe) -> None:
    """The first lines whole, then how many are missing, then what comes after."""
    writer = NonblockingWriter(pipe.out)
    lines = write_lines(writer, TOO_MANY)

    found = drain(writer, pipe).decode()
    writer.write("afterwards\n")
    found += drain(writer, pipe).decode()

    *kept, gap, last = found.splitlines(keepends=True)
    count = re.fullmatch(r"\[(\d+) lines were not read in time, and not kept\]\n", gap)
    assert kept == lines[: len(kept)]
    assert count is not None
    assert len(kept) + int(count[1]) == len(lines)
    assert MOST_BYTES <= len("".join(kept)) <= MOST_BYTES + 65536 + 2 * len(LINE)
    assert last == "afterwards\n"


def test_one_long_text_is_never_cut(pipe: Pipe) -> None:
    """Larger than the pipe and the bound together: it is one frame of a display."""
    writer, text = NonblockingWriter(pipe.out), "y" * (MOST_BYTES + 100_000)
    with alarm(5.0):
        writer.write(text)

    assert drain(writer, pipe).decode() == text


@contextmanager
def read_later(pipe: Pipe) -> Iterator[list[bytes]]:
    """A reader that takes its time: it reads now and then, beside what is done meanwhile."""
    found: list[bytes] = []
    old = signal.signal(signal.SIGALRM, lambda *_: found.append(pipe.read()))
    signal.setitimer(signal.ITIMER_REAL, 0.02, 0.01)
    try:
        yield found
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
    found.append(pipe.read())


def test_finish_writes_all_that_is_kept(pipe: Pipe) -> None:
    """It waits for the reader: a summary is worth that."""
    writer = NonblockingWriter(pipe.out)
    lines = write_lines(writer, FITS)
    with read_later(pipe) as found:
        writer.finish()

    assert b"".join(found).decode() == "".join(lines)


def test_finish_says_what_is_missing(pipe: Pipe) -> None:
    """And what is written afterwards, which is the summary, is whole."""
    writer = NonblockingWriter(pipe.out)
    write_lines(writer, TOO_MANY)
    with read_later(pipe) as found:
        writer.finish()
        writer.write("summary\n")
        writer.finish()

    *_kept, gap, last = b"".join(found).splitlines()
    assert b"lines were not read in time" in gap
    assert last == b"summary"


def test_a_reader_that_went_away_is_no_error(pipe: Pipe) -> None:
    """`ramherd run | head -1`: nothing is kept for nobody."""
    writer = NonblockingWriter(pipe.out)
    pipe.hang_up()
    with alarm(5.0):
        for _ in range(TOO_MANY):
            writer.write(LINE)
        writer.flush()
        writer.finish()


def test_a_reader_that_goes_away_with_much_unread_is_no_error(pipe: Pipe) -> None:
    """`ramherd run | less`, and q."""
    writer = NonblockingWriter(pipe.out)
    write_lines(writer, TOO_MANY)
    pipe.hang_up()

    with alarm(5.0):
        writer.write("x\n")
        writer.finish()


def test_a_letter_that_the_encoding_lacks_becomes_a_question_mark() -> None:
    """An old locale: the rest of the line is read all the same."""
    with a_pipe("ascii") as pipe:
        NonblockingWriter(pipe.out).write("a\u65e5b\n")
        assert pipe.read() == b"a?b\n"
    with a_pipe("latin-1") as pipe:
        NonblockingWriter(pipe.out).write("\u00e9\n")
        assert pipe.read() == b"\xe9\n"


def test_a_terminal_that_is_not_read_does_not_stop_the_herd() -> None:
    """Ctrl-S, a hung ssh: a terminal that says it is ready may take some bytes only."""
    ours, theirs = os.openpty()
    try:
        with open(theirs, "w") as out:
            write_lines(NonblockingWriter(out), 2000, within_s=0.5)
    finally:
        os.close(ours)


def test_an_outlet_that_does_not_block_by_itself_loses_nothing(pipe: Pipe) -> None:
    """Node makes the terminal that it shares with us non-blocking: full is not gone."""
    os.set_blocking(pipe.out.fileno(), False)
    writer = NonblockingWriter(pipe.out)
    lines = write_lines(writer, FITS)

    assert drain(writer, pipe).decode() == "".join(lines)


def test_finish_loses_nothing_where_nothing_blocks(pipe: Pipe) -> None:
    """The same at the end: it waits until there is room."""
    os.set_blocking(pipe.out.fileno(), False)
    writer = NonblockingWriter(pipe.out)
    lines = write_lines(writer, 1000)
    with read_later(pipe) as found:
        writer.finish()

    assert b"".join(found).decode() == "".join(lines)
