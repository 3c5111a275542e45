"""`ramherd logs`: what is printed of what was printed."""

import os
from contextlib import closing
from pathlib import Path

import pytest

from ramherd.cli.logs import Printer, print_from
from ramherd.core.model import ProcId
from ramherd.store.herds import add_herd, add_run
from ramherd.store.owner import Owner
from ramherd.store.sqlite import SqliteStore
from ramherd.system.procfs import read_boot_id
from support.make import HERD, job, status
from unit.measure.test_run_output import HEAD, RING, write_run


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
    """The disk was full from the start: five times a second is too often."""
    write_run(tmp_path / "R1", b"", HEAD, RING, lost=99)
    with closing(SqliteStore(tmp_path / "ramherd.db")) as store:
        add_herd(store, HERD, Owner("O", "boot", ProcId(1, 1)), [status(job("a"))])
        add_run(store, "R1", "id-a", 1, 0)
        printer = Printer(store, tmp_path, "id-a", "out")
        printer.print(follow=False)
        printer.print(follow=False)

    assert capsysbinary.readouterr().out.count(b"not kept") == 1


def test_nobody_follows_a_job_whose_ramherd_died(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    """It never ends by itself: what there is is printed, and that is all."""
    monkeypatch.setenv("RAMHERD_RUNTIME_DIR", str(tmp_path / "ramherd"))
    monkeypatch.setattr("ramherd.cli.logs.time.sleep", lambda _s: pytest.fail("goes on"))
    write_run(tmp_path / "R1", b"last\n", HEAD, RING)
    with closing(SqliteStore(tmp_path / "ramherd.db")) as store:
        dead = Owner("O", read_boot_id(), ProcId(os.getpid(), 1))
        add_herd(store, HERD, dead, [status(job("a"))])
        add_run(store, "R1", "id-a", 1, 0)
        Printer(store, tmp_path, "id-a", "out").print(follow=True)

    assert capsysbinary.readouterr().out == b"last\n"
