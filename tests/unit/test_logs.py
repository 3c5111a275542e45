"""`ramherd logs`: what is printed of what was printed."""

from pathlib import Path

import pytest

from ramherd.cli.logs import print_from
from unit.test_output import HEAD, RING, write_run


def test_all_of_it_is_printed_as_it_is(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    """Bytes of any kind, and the end is where the next look begins."""
    write_run(tmp_path, b"\xff\x00\n", HEAD, RING)

    assert print_from(tmp_path, "out", 0) == 3
    assert capsysbinary.readouterr().out == b"\xff\x00\n"


def test_what_was_dropped_is_said_where_it_is_missing(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    """Between the head and the ring, with how much."""
    write_run(tmp_path, b"0123456789abcdefghij", HEAD, RING)

    assert print_from(tmp_path, "out", 0) == 20
    assert capsysbinary.readouterr().out == b"01234\n[ramherd: 8 B dropped here]\ndefghij"


def test_a_second_look_prints_what_is_new(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    """Nothing, when nothing is."""
    write_run(tmp_path, b"0123", HEAD, RING)
    at = print_from(tmp_path, "out", 0)
    capsysbinary.readouterr()

    assert print_from(tmp_path, "out", at) == at
    assert capsysbinary.readouterr().out == b""


def test_what_was_not_kept_is_said_once(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    """`logs -f` looks again and again; a full disk is said the first time."""
    write_run(tmp_path, b"0123", HEAD, RING, lost=99)
    at = print_from(tmp_path, "out", 0)
    assert b"not kept" in capsysbinary.readouterr().out

    print_from(tmp_path, "out", at)
    assert capsysbinary.readouterr().out == b""
