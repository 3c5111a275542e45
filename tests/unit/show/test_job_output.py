"""What commands print, from files of runs and events, in the order that was asked for."""

import threading
from functools import partial
from pathlib import Path

import pytest

from ramherd.core.model import Event, Reason
from ramherd.core.reasons import Why
from ramherd.show.job_output import ENDED, GIVEN, LIVE, JobOutput, write_all

REASON = Reason(Why.EXITED)


class Herd:
    """Jobs a, b and c, whose runs print to files; what is shown is in `out` and `err`."""

    def __init__(self, runs: Path, order: str, *, is_tagged: bool = False) -> None:
        self.runs, self.warnings = runs, list[str]()
        self.shown = {"out": b"", "err": b""}
        self.has_new = threading.Event()
        self.output = JobOutput(
            runs, {"a": "a", "b": "b", "c": "c"},
            {name: partial(self.receive, name) for name in self.shown},
            order=order, is_tagged=is_tagged, is_terminal=False, warn=self.warnings.append,
        )  # fmt: skip

    def receive(self, name: str, data: bytes) -> None:
        self.shown[name] += data
        if data:
            self.has_new.set()

    def start(self, job: str, attempt: int = 1) -> None:
        (self.runs / f"{job}{attempt}").mkdir()
        self.emit("run_started", job, f"{job}{attempt}")

    def emit(self, kind: str, job: str, run: str = "") -> None:
        self.output.event(Event(kind, REASON, 0.0, "H", job, run))

    def print(self, run: str, data: bytes, stream: str = "out") -> None:
        with (self.runs / run / stream).open("ab") as file:
            file.write(data)

    def await_new(self) -> None:
        assert self.has_new.wait(10)
        self.has_new.clear()


def run_backwards(herd: Herd) -> None:
    for job in "abc":
        herd.start(job)
        herd.print(f"{job}1", f"{job}\n".encode())
    for job in "cba":
        herd.emit("job_done", job)
    herd.output.close()


@pytest.mark.parametrize(("order", "shown"), [(ENDED, b"c\nb\na\n"), (GIVEN, b"a\nb\nc\n")])
def test_jobs_are_shown_in_order(tmp_path: Path, order: str, shown: bytes) -> None:
    """In that of their ends, or in that in which they were given."""
    herd = Herd(tmp_path, order)
    run_backwards(herd)
    assert (herd.shown["out"], herd.warnings) == (shown, [])


def test_live_jobs_take_turns_line_by_line(tmp_path: Path) -> None:
    """The beginning of a line waits for its end."""
    herd = Herd(tmp_path, LIVE, is_tagged=True)
    herd.start("a")
    herd.print("a1", b"half")
    herd.start("b")
    herd.print("b1", b"whole\n")
    herd.await_new()
    assert herd.shown["out"] == b"b\twhole\n"
    herd.print("a1", b" a line\nrest")
    herd.await_new()
    herd.emit("job_failed", "a")
    herd.output.close()
    assert herd.shown["out"] == b"b\twhole\na\thalf a line\na\trest\n"


def test_jobs_that_never_ended_are_shown_at_the_close(tmp_path: Path) -> None:
    """As after Ctrl-C; a job without a run has nothing to show."""
    herd = Herd(tmp_path, GIVEN)
    herd.start("b")
    herd.print("b1", b"so far")
    herd.print("b1", b"trouble\n", "err")
    herd.emit("job_cancelled", "a")
    herd.output.close()
    assert herd.shown == {"out": b"so far", "err": b"trouble\n"}


def test_the_last_run_of_a_job_is_shown(tmp_path: Path) -> None:
    """A run whose files are gone is named."""
    herd = Herd(tmp_path, ENDED)
    herd.start("a")
    herd.print("a1", b"first\n")
    herd.start("a", 2)
    herd.print("a2", b"second\n")
    herd.emit("job_done", "a")
    herd.emit("run_started", "b", "gone")
    herd.emit("job_done", "b")
    herd.output.close()
    assert herd.shown["out"] == b"second\n"
    assert herd.warnings == [f"ramherd: b: its output is gone from {tmp_path / 'gone'}"]


def test_events_of_other_jobs_are_no_matter(tmp_path: Path) -> None:
    """Of agents in the same herd."""
    herd = Herd(tmp_path, ENDED)
    herd.emit("job_done", "agent")
    herd.output.close()
    assert herd.shown == {"out": b"", "err": b""}


def test_a_full_disk_is_named_once() -> None:
    """And what comes after it is not written."""
    warnings: list[str] = []
    with Path("/dev/full").open("wb", buffering=0) as full:
        write = write_all(full.fileno(), warnings.append)
        write(b"x")
        write(b"x")
    assert len(warnings) == 1
    assert "No space left on device" in warnings[0]
