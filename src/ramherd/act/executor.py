"""Carrying out what was decided: runs in pens, through the keeper.

It knows each live run and what the keeper said of it; it decides nothing.
"""

import json
import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ramherd.act.link import KeeperLink
from ramherd.act.pens import Fleet, Pen
from ramherd.act.pens.pids import limit_pids
from ramherd.act.sweeper import Sweeper, Swept
from ramherd.measure.output import read_tail
from ramherd.model import (
    Exit,
    Job,
    PenReading,
    Policy,
    ProcId,
    Reason,
    RunEnd,
    RunView,
    Stopping,
    Why,
)

V8_EXIT_CODE = 134
V8_MESSAGE = b"heap out of memory"
TAIL_BYTES = 1 << 16


@dataclass
class Moments:
    """How many looks there were at a run, and what they add up to."""

    number: int = 0
    sum: int = 0
    squares: int = 0

    def add(self, value: int) -> None:
        self.number += 1
        self.sum += value
        self.squares += value * value


@dataclass
class LiveRun:
    """A run from its start until its pen is empty."""

    id: str
    job: Job
    attempt: int
    dir: Path
    started_s: float
    pen: Pen | None = None
    started: bool = False
    reading: PenReading = field(default_factory=PenReading)
    exit: Exit | None = None
    refused: tuple[int, str] | None = None
    stop: Stopping | None = None
    clearing_s: float | None = None
    killed_s: float | None = None
    close_asked: bool = False
    output_closed: bool = False
    heap_exhausted: bool = False
    leftovers: int = 0
    largest_bytes: int = 0
    need_bytes: int = 0
    moments: Moments = field(default_factory=Moments)
    engine: str = ""
    warned: bool = False
    available_least: int = 0

    @property
    def is_ending(self) -> bool:
        return self.exit is not None or self.stop is not None or self.refused is not None

    def measure(self) -> None:
        """Peaks between two looks: the largest single process is known at the end, and the
        kernel's own peak is never below it.
        """
        if self.pen is not None:
            reading = self.pen.read()
            floor = min(self.largest_bytes, reading.charged_bytes)
            self.reading = replace(reading, peak_bytes=max(reading.peak_bytes, floor))

    def view(self, *, kernel_limits: bool) -> RunView:
        return RunView(
            self.id, self.job, self.attempt, self.started_s, self.reading,
            exit=self.exit, stop=self.stop, refused=self.refused, clearing_s=self.clearing_s,
            killed_s=self.killed_s, output_closed=self.output_closed,
            heap_exhausted=self.heap_exhausted, kernel_limits=kernel_limits, started=self.started,
            engine=self.engine, need_bytes=self.need_bytes,
            warned=self.warned,
        )  # fmt: skip


class Executor:
    def __init__(
        self,
        fleet: Fleet,
        start_keeper: Callable[[], KeeperLink],
        runs_dir: Path,
        policy: Policy | None = None,
    ) -> None:
        self.fleet = fleet
        self.runs: dict[str, LiveRun] = {}
        self.started: list[LiveRun] = []
        self._start_keeper = start_keeper
        self._runs_dir = runs_dir
        self._policy = policy or Policy()
        self._sweeper = Sweeper()
        self.link = self._new_keeper()

    def _new_keeper(self) -> KeeperLink:
        link = self._start_keeper()
        link.ask("fleet", dirs=self.fleet.dirs())
        self.fleet.note_keeper(link.proc_id)
        return link

    def start(self, run_id: str, job: Job, attempt: int, at_s: float, *, resumed: bool) -> LiveRun:
        run = LiveRun(run_id, job, attempt, self._runs_dir / run_id, at_s)
        self.runs[run_id] = run
        try:
            run.dir.mkdir(mode=0o700, parents=True)
            stdin = write_stdin(run)
            run.pen = self.fleet.add(run_id, job.memory_limit_bytes)
            limit_pids(run.pen, self._policy.pids_limit)
        except OSError as error:
            run.refused = (error.errno or 0, f"cannot prepare {error.filename}: {error.strerror}")
            return run
        self.link.ask(
            "spawn", run=run_id, argv=job.argv, cwd=job.cwd, dir=str(run.dir), stdin=stdin,
            env=environment(run, resumed=resumed), **run.pen.spawn_part(),
            log=(self._policy.log_head_bytes, self._policy.log_ring_bytes),
        )  # fmt: skip
        return run

    def hear(self, at_s: float) -> bool:
        """Take in what the keeper said; False when it is gone."""
        messages = self.link.hear()
        for message in messages or ():
            run = self.runs.get(message["run"])
            if run is not None:
                self._take(run, message, at_s)
        return messages is not None

    def _take(self, run: LiveRun, message: dict[str, Any], at_s: float) -> None:
        match message["did"]:
            case "started":
                run.started = True
                if run.pen is not None:
                    run.pen.note_start(ProcId(message["pid"], message["start_ticks"]))
                self.started.append(run)
                if run.stop is not None:  # it was told before it was there
                    self.ask_to_end(run)
            case "refused":
                run.refused = (message["errno"], message["what"])
            case "exited":
                run.exit = Exit(message["code"], message["signal"], at_s)
                run.largest_bytes = message["largest_bytes"]
                if message["closed"]:
                    self._note_closed(run)
            case "closed":
                self._note_closed(run)

    def _note_closed(self, run: LiveRun) -> None:
        run.heap_exhausted = is_heap_exhausted(run)
        run.close_asked = run.output_closed = True

    def replace_keeper(self, at_s: float) -> None:
        """The keeper died, and with it the pipes of its runs: they cannot go on."""
        self.link.kill()
        for run in self.runs.values():
            run.exit = run.exit or read_exit(run.dir, at_s)
            if run.exit is None and run.refused is None:
                reason = Reason(Why.KEEPER_LOST)
                run.stop = run.stop or Stopping(RunEnd.LOST, reason, at_s)
                run.exit = Exit(None, signal.SIGKILL, at_s)
            run.output_closed = True
            self.kill(run, at_s)
        self.link = self._new_keeper()

    def stop(self, run: LiveRun, stopping: Stopping) -> None:
        run.stop = stopping
        self.ask_to_end(run)

    def clear(self, run: LiveRun, at_s: float) -> None:
        run.clearing_s = at_s
        run.leftovers = self.ask_to_end(run)

    def ask_to_end(self, run: LiveRun) -> int:
        """TERM, and CONT for who has stopped itself and would not hear it."""
        if run.pen is None:
            return 0
        reached = run.pen.signal(signal.SIGTERM)
        run.pen.signal(signal.SIGCONT)
        return reached

    def kill(self, run: LiveRun, at_s: float) -> None:
        run.killed_s = at_s
        if run.pen is not None:
            run.pen.kill()

    def close_output(self) -> None:
        """Once nothing lives in a pen that could print, its output is complete."""
        for run in self.runs.values():
            if run.exit is not None and run.reading.procs == 0 and not run.close_asked:
                run.close_asked = True
                self.link.ask("close", run=run.id)

    def finish(self, run: LiveRun) -> None:
        del self.runs[run.id]
        if run.pen is not None:
            self._sweeper.sweep(run.id, run.pen, run.dir / "tmp")

    def sweep(self) -> list[Swept]:
        return self._sweeper.advance()

    @property
    def is_busy(self) -> bool:
        """Something is on its way out: look again soon."""
        return self._sweeper.is_busy or any(run.is_ending for run in self.runs.values())

    def shut_down(self, wait_s: float = 10.0) -> list[Swept]:
        """Whatever happened before, nothing is left: pens first, then the keeper, the fleet."""
        deadline = time.monotonic() + wait_s
        for run in list(self.runs.values()):
            while run.pen is not None and run.pen.read().procs and time.monotonic() < deadline:
                run.pen.kill()
                time.sleep(0.01)
            self.finish(run)
        swept = self._sweeper.finish()
        self.link.close()
        return swept


def environment(run: LiveRun, *, resumed: bool) -> dict[str, str]:
    inherited = {name: text for name, text in os.environ.items() if name != "RAMHERD_RESUMED"}
    return {
        **inherited,
        **run.job.env,
        "RAMHERD_RUN": run.id,
        "RAMHERD_JOB": run.job.id,
        "RAMHERD_HERD": run.job.herd,
        "RAMHERD_ATTEMPT": str(run.attempt),
        "TMPDIR": str(run.dir / "tmp"),
        **({"RAMHERD_RESUMED": "1"} if resumed else {}),
    }


def write_stdin(run: LiveRun) -> str:
    """A file, not a pipe: of any size, and nobody has to feed it."""
    if run.job.stdin is None:
        return ""
    path = run.dir / "in"
    path.touch(mode=0o600)
    path.write_text(run.job.stdin, encoding="utf-8", newline="")
    return str(path)


def read_exit(run_dir: Path, at_s: float) -> Exit | None:
    """The exit status that the keeper wrote before it died."""
    try:
        status = json.loads((run_dir / "status").read_bytes())
    except FileNotFoundError:
        return None
    return Exit(status["code"], status["signal"], at_s)


def is_heap_exhausted(run: LiveRun) -> bool:
    """V8 aborts with its own message: its heap was full, the machine need not have been."""
    aborted = run.exit is not None and (
        run.exit.signal == signal.SIGABRT or run.exit.code == V8_EXIT_CODE
    )
    return aborted and V8_MESSAGE in read_tail(run.dir, "err", TAIL_BYTES)
