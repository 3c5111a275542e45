"""A live run: what is known of it between its start and the moment its pen is empty."""

import time
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ramherd.act.pens import Pen
from ramherd.act.warm_pool import WarmProcess
from ramherd.core.model import Exit, Job, PenReading, ProcId, RunView, Stopping
from ramherd.measure.container_clients import find_client

if TYPE_CHECKING:
    from ramherd.agents.run_state import AgentRun

# How long single holds took is kept of the first so many.
KEEP_HOLDS = 1000


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
    runs_dir: Path
    started_s: float
    # The run that its pen and TMPDIR were made for: this one, or the first of a warm process.
    home: str = ""
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
    # Whether it may have left processes behind: not if the keeper knows better.
    left: bool = True
    leftovers: int = 0
    largest_bytes: int = 0
    moments: Moments = field(default_factory=Moments)
    engine: str = ""
    warned: bool = False
    available_least: int = 0
    # When its job was first started, and what it is known as to the governor.
    first_s: float = 0.0
    label: str = ""
    first: ProcId | None = None
    grant_bytes: int = 0
    mark_bytes: int = 0
    cache_full: bool = False
    muted_until_s: float = 0.0
    # Since when it waits for more, anew each time it was served; and since when it stands still.
    held_since_s: float | None = None
    frozen_s: float | None = None
    held_s: float = 0.0
    # Each hold by the clock: a step of the loop is too coarse for most of them.
    holds: list[float] = field(default_factory=list)
    _froze_s: float = 0.0
    # It was said that it waits, or that it leaks.
    told_held: bool = False
    told_leak: bool = False
    # The grant at which it stood when it was told to make room.
    hit_bytes: int = 0
    # What is known of its agent, if it has one.
    agent_run: "AgentRun | None" = None
    # The process is to serve other jobs as well: which run it comes from, and what it has held
    # until then; whether it was told that nothing more comes; whether it is ready for the next,
    # or was given to it.
    worker: WarmProcess | None = None
    taken_from: str = ""
    peak_before: int = 0
    hung_up: bool = False
    ready: bool = False
    passed_on: bool = False

    def __post_init__(self) -> None:
        self.home = self.home or self.id

    @property
    def dir(self) -> Path:
        return self.runs_dir / self.id

    @property
    def is_ending(self) -> bool:
        over = self.exit is not None or self.refused is not None or self.passed_on
        return over or self.stop is not None

    @property
    def is_free(self) -> bool:
        """Its job is done, and its process can have another."""
        return self.ready and not self.is_ending

    @property
    def is_renewing(self) -> bool:
        """Its process gets a new session: that takes some milliseconds."""
        return (
            self.agent_run is not None and self.agent_run.renewal is not None and not self.hung_up
        )

    def measure(self) -> None:
        """Peaks between two looks: the largest single process is known at the end, and the
        kernel's own peak is never below it.
        """
        if self.pen is not None:
            reading = self.pen.read()
            peak = max(reading.peak_bytes, min(self.largest_bytes, reading.charged_bytes))
            if reading.peak_bytes <= self.peak_before:  # of an earlier job of the same process
                peak = max(self.reading.peak_bytes, reading.used_bytes)
            self.reading = replace(reading, peak_bytes=peak)

    def freeze(self, at_s: float) -> None:
        if self.pen is not None:
            self.pen.freeze()
            self.held_since_s = self.frozen_s = at_s
            self._froze_s = time.monotonic()

    def thaw(self, at_s: float) -> None:
        if self.pen is None or self.frozen_s is None:
            return
        self.pen.thaw()
        self.held_s += at_s - self.frozen_s
        if len(self.holds) < KEEP_HOLDS:
            self.holds.append(time.monotonic() - self._froze_s)
        self.held_since_s = self.frozen_s = None

    def stood_s(self, at_s: float) -> float:
        """How long it was held, until now."""
        return self.held_s + (at_s - self.frozen_s if self.frozen_s is not None else 0.0)

    def view(self, *, kernel_limits: bool, at_s: float) -> RunView:
        """What an agent printed counts as written when it was read as well."""
        heard = self.agent_run is None or self.agent_run.is_read
        return RunView(
            self.id, self.job, self.attempt, self.started_s, self.reading,
            exit=self.exit, stop=self.stop, refused=self.refused, clearing_s=self.clearing_s,
            killed_s=self.killed_s, output_closed=self.output_closed and heard,
            heap_exhausted=self.heap_exhausted, kernel_limits=kernel_limits, started=self.started,
            engine=self.engine, warned=self.warned, held_s=self.stood_s(at_s),
            said=self.agent_run.said if self.agent_run is not None else None, ready=self.ready,
        )  # fmt: skip


def note_engines(runs: Iterable[LiveRun], clients: dict[int, str]) -> None:
    """Which of them talk to a container engine."""
    for run in runs if clients else ():
        if not run.engine and run.pen is not None:
            run.engine = find_client(run.pen.pids(), clients)
