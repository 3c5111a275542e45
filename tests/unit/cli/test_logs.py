"""`ramherd logs`: what is printed of what was printed."""

import argparse
import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ramherd.cli.job_log import LoggedJob
from ramherd.cli.logs import LineSkip, make_printers, print_jobs
from ramherd.core.model import ProcId
from ramherd.store.herds import add_herd, add_run
from ramherd.store.owner import Owner
from ramherd.store.sqlite import SqliteStore
from ramherd.system.procfs import read_boot_id
from support.make import HERD, job, status
from unit.measure.test_run_output import HEAD, RING, write_run

DEFAULTS = {"out": False, "err": False, "raw": False, "json": False, "follow": False, "lines": None}


class Logs:
    """A store with the jobs `a` and `b`, whose runs R1 and R2 are below `runs`."""

    def __init__(self, store: SqliteStore, runs: Path) -> None:
        self.store, self.runs = store, runs

    def print(self, *names: str, **options: Any) -> None:
        jobs = [LoggedJob(f"id-{name}", name, "", "") for name in names]
        chosen = argparse.Namespace(**{**DEFAULTS, **options})
        printers = make_printers(self.store, jobs, chosen, is_tagged=len(jobs) > 1)
        print_jobs(printers, is_following=chosen.follow)


@pytest.fixture
def logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Logs]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("RAMHERD_RUNTIME_DIR", str(tmp_path / "runtime"))
    monkeypatch.setattr("ramherd.cli.logs.time.sleep", lambda _s: pytest.fail("goes on"))
    runs = tmp_path / "ramherd/runs"
    runs.mkdir(parents=True)
    with closing(SqliteStore(tmp_path / "ramherd/ramherd.db")) as store:
        dead = Owner("O", read_boot_id(), ProcId(os.getpid(), 1))
        add_herd(store, HERD, dead, [status(job("a")), status(job("b"))])
        add_run(store, "R1", "id-a", 1, 0)
        add_run(store, "R2", "id-b", 1, 0)
        yield Logs(store, runs)


def test_all_of_it_is_printed_as_it_is(
    logs: Logs, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    """Bytes of any kind; standard error goes to standard error, or alone to standard output."""
    write_run(logs.runs / "R1", b"\xff\x00", HEAD, RING)
    (logs.runs / "R1/err").write_bytes(b"trouble\n")
    logs.print("a")
    assert capsysbinary.readouterr() == (b"\xff\x00", b"trouble\n")
    logs.print("a", err=True)
    assert capsysbinary.readouterr() == (b"trouble\n", b"")
    logs.print("a", out=True)
    assert capsysbinary.readouterr() == (b"\xff\x00", b"")


def test_what_was_dropped_is_said_where_it_is_missing(
    logs: Logs, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    """Between the head and the ring, with how much."""
    write_run(logs.runs / "R1", b"0123456789abcdefghij", HEAD, RING)
    logs.print("a")
    assert capsysbinary.readouterr().out == b"01234\n[ramherd: 8 B dropped here]\ndefghij"


def test_what_was_not_kept_is_said_once(
    logs: Logs, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    """The disk was full from the start: five times a second is too often."""
    write_run(logs.runs / "R1", b"", HEAD, RING, lost=99)
    options = argparse.Namespace(**DEFAULTS)
    (printer,) = make_printers(
        logs.store, [LoggedJob("id-a", "a", "", "")], options, is_tagged=False
    )
    printer.print_new()
    printer.print_new()
    assert capsysbinary.readouterr().out.count(b"not kept") == 1


def test_nobody_follows_a_job_whose_ramherd_died(
    logs: Logs, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    """It never ends by itself: what there is is printed, and that is all."""
    write_run(logs.runs / "R1", b"last\n", HEAD, RING)
    logs.print("a", follow=True)
    assert capsysbinary.readouterr().out == b"last\n"


@pytest.mark.parametrize("follow", [False, True])
def test_lines_of_several_jobs_have_tags(
    logs: Logs, follow: bool, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    """The name and a tab before each; a last line without its end gets one."""
    write_run(logs.runs / "R1", b"1\n\n2", 50, RING)
    write_run(logs.runs / "R2", b"3\n", 50, RING)
    logs.print("a", "b", follow=follow)
    assert capsysbinary.readouterr().out == b"a\t1\na\t\na\t2\nb\t3\n"


@pytest.mark.parametrize(
    ("lines", "printed"), [(0, b""), (1, b"c"), (2, b"b\nc"), (3, b"a\nb\nc"), (9, b"a\nb\nc")]
)
def test_the_last_lines(
    logs: Logs, lines: int, printed: bytes, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    """A last line without its end is one."""
    write_run(logs.runs / "R1", b"a\nb\nc", 50, RING)
    logs.print("a", lines=lines)
    assert capsysbinary.readouterr().out == printed


@pytest.mark.parametrize("piece", [1, 2, 5])
def test_lines_are_skipped_in_pieces_of_any_size(piece: int) -> None:
    """Wherever they are cut."""
    data, skip = b"one\n\ntwo\nthree", LineSkip(2)
    parts = [skip.feed(data[at : at + piece]) for at in range(0, len(data), piece)]
    assert b"".join(parts) == b"two\nthree"
