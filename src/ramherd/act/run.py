"""A live run, from its start until its pen is empty: its phase, and the only ways to change it.

Other modules read it and call the transitions below; they assign no field. `core/run_phase.py` has
the phases and which may follow which.
"""

import time
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ramherd.act.pens import Pen
from ramherd.act.warm_pool import WarmUse
from ramherd.core import run_phase
from ramherd.core.memory import RunGrant
from ramherd.core.model import (
    Exit,
    Job,
    PenReading,
    ProcId,
    Reason,
    Refusal,
    RunView,
    Stopping,
    Why,
)
from ramherd.core.run_phase import Clearing, Ended, Held, Output, Phase, Running, Starting
from ramherd.measure.container_clients import find_client

if TYPE_CHECKING:
    from ramherd.act.warm_pool import IdleProcess, WarmProcess
    from ramherd.agents.run_state import AgentRun

# The number of holds, from the first on, whose length is kept.
KEEP_HOLDS = 1000


@dataclass
class Usage:
    """The measurements of a run. The moments are of its memory: the number of readings, and the
    sums of their values and squares.
    """

    # The least available memory of the machine during the run.
    available_least: int = 0
    reading: PenReading = field(default_factory=PenReading)
    # The socket of the container engine that the run is connected to.
    engine: str = ""
    number: int = 0
    sum: int = 0
    squares: int = 0

    def add_moment(self, available_bytes: int) -> None:
        self.available_least = min(self.available_least, available_bytes)
        used = self.reading.used_bytes
        self.number += 1
        self.sum += used
        self.squares += used * used


@dataclass
class HoldTimes:
    """How long a run was held: in total, and each hold by the clock."""

    total_s: float = 0.0
    each_s: list[float] = field(default_factory=list)


@dataclass
class LiveRun:
    id: str
    job: Job
    attempt: int
    runs_dir: Path
    started_s: float
    # When its job was first started, and the name of its class.
    first_s: float = 0.0
    label: str = ""
    # The run that its pen and TMPDIR were made for: this run, or the first of a warm process.
    home: str = ""
    pen: Pen | None = None
    first: ProcId | None = None
    phase: Phase = field(default_factory=Starting)
    usage: Usage = field(default_factory=Usage)
    grant: RunGrant = field(default_factory=RunGrant)
    holds: HoldTimes = field(default_factory=HoldTimes)
    # How long it was not measured, because the machine slept or its supervisor was stopped.
    gaps_s: float = 0.0
    # The state of its agent, and of its process if that serves other jobs as well.
    agent_run: "AgentRun | None" = None
    warm: WarmUse | None = None
    # The warnings that the user got already.
    warned: set[Why] = field(default_factory=set)
    # How often a run of its job was stopped to make room.
    stops: int = 0

    def __post_init__(self) -> None:
        self.home = self.home or self.id

    # Questions.

    @property
    def dir(self) -> Path:
        return self.runs_dir / self.id

    @property
    def reading(self) -> PenReading:
        return self.usage.reading

    @property
    def exit(self) -> Exit | None:
        return run_phase.exit_of(self.phase)

    @property
    def stop_order(self) -> Stopping | None:
        return run_phase.stop_of(self.phase)

    @property
    def refused(self) -> Refusal | None:
        return run_phase.refusal_of(self.phase)

    @property
    def output_closed(self) -> bool:
        return run_phase.is_output_closed(self.phase)

    @property
    def is_ending(self) -> bool:
        return not run_phase.is_live(self.phase)

    @property
    def held_since_s(self) -> float | None:
        """When it began to wait for more memory, counted from its last grant."""
        return self.phase.since_s if isinstance(self.phase, Held) else None

    @property
    def frozen_s(self) -> float | None:
        return self.phase.frozen_s if isinstance(self.phase, Held) else None

    @property
    def hit_bytes(self) -> int:
        """The grant at which it was held when it was asked to end."""
        stop = self.stop_order
        return stop.hit_bytes if stop is not None else 0

    @property
    def may_have_left(self) -> bool:
        """Whether processes of the run may live that its pen has not found."""
        return self.phase.may_have_left if isinstance(self.phase, Clearing) else True

    @property
    def is_free(self) -> bool:
        """Whether its job is done, and its process can take another job."""
        return self.warm is not None and self.warm.is_ready and not self.is_ending

    @property
    def is_renewing(self) -> bool:
        """Whether its process gets a new session: that takes some milliseconds."""
        is_closed = self.warm is not None and self.warm.is_closed
        renews = self.agent_run is not None and self.agent_run.renewal is not None
        return renews and not is_closed

    def held_s(self, at_s: float) -> float:
        """How long it was held so far."""
        frozen_s = self.frozen_s
        return self.holds.total_s + (at_s - frozen_s if frozen_s is not None else 0.0)

    def uncounted_s(self, at_s: float) -> float:
        """The time since its start that does not count toward its timeout."""
        return self.held_s(at_s) + self.gaps_s

    def view(self, *, kernel_limits: bool, at_s: float) -> RunView:
        agent_run = self.agent_run
        return RunView(
            self.id, self.job, self.attempt, self.started_s, self.usage.reading, self.phase,
            is_read=agent_run is None or agent_run.is_read, kernel_limits=kernel_limits,
            engine=self.usage.engine, warned=Why.CONTAINERS in self.warned,
            uncounted_s=self.uncounted_s(at_s),
            said=agent_run.said if agent_run is not None else None,
            ready=self.warm is not None and self.warm.is_ready,
        )  # fmt: skip

    # Measurements.

    def measure(self) -> None:
        """For peaks between two readings: the memory of the largest process is reported at the end,
        and the kernel's own peak is never below it.
        """
        if self.pen is None:
            return
        reading = self.pen.read()
        largest = self.phase.largest_bytes if isinstance(self.phase, Clearing) else 0
        peak = max(reading.peak_bytes, min(largest, reading.charged_bytes))
        if self.warm is not None and reading.peak_bytes <= self.warm.peak_before:
            peak = max(self.usage.reading.peak_bytes, reading.used_bytes)
        if peak != reading.peak_bytes:
            reading = replace(reading, peak_bytes=peak)
        self.usage.reading = reading

    # Transitions.

    def skip(self, gap_s: float) -> None:
        """The run was not measured for this long."""
        self.gaps_s += gap_s
        self.phase = run_phase.skip(self.phase, gap_s)

    def enter_pen(self, pen: Pen) -> None:
        self.pen = pen

    def reuse(self, idle: "IdleProcess") -> None:
        """Takes over the process of another job, with its pen."""
        last = idle.last
        self.home, self.pen, self.first = last.home, idle.pen, last.first
        self.warm = WarmUse(idle.process, taken_from=last.id, peak_before=idle.peak_bytes)

    def leave_pen(self) -> None:
        """The run could not be prepared: it has no pen, and no process of another job."""
        self.home, self.pen, self.first, self.warm = self.id, None, None, None

    def serve_many(self, process: "WarmProcess") -> None:
        self.warm = WarmUse(process)

    def make_ready(self) -> None:
        """Its process has a new session, and is free for the next job."""
        assert self.warm is not None
        self.warm = replace(self.warm, is_ready=True)

    def close_warm(self) -> None:
        """Its process serves no other job."""
        if self.warm is not None:
            self.warm = replace(self.warm, is_closed=True)

    def drive(self, agent_run: "AgentRun") -> None:
        """Its agent was chosen, with the prompt."""
        self.agent_run = agent_run

    def set_grant(self, grant_bytes: int, mark_bytes: int) -> None:
        self.grant = RunGrant(grant_bytes, mark_bytes, muted_until_s=self.grant.muted_until_s)

    def set_cache_full(self, *, is_full: bool) -> None:
        """Whether page cache has brought it to its grant."""
        if self.grant.cache_full is not is_full:
            self.grant = self.grant._replace(cache_full=is_full)

    def mute_events(self, until_s: float) -> None:
        """Its memory events are ignored until then."""
        self.grant = self.grant._replace(muted_until_s=until_s)

    def warn_once(self, why: Why) -> bool:
        """Returns whether this warning is new."""
        is_new = why not in self.warned
        self.warned.add(why)
        return is_new

    def record_start(self, first: ProcId) -> None:
        self.first = first
        if isinstance(self.phase, Starting):
            self._enter(Running())

    def refuse(self, refusal: Refusal, at_s: float) -> None:
        """The run never began."""
        if not isinstance(self.phase, Ended):
            self.release(at_s)
            self._enter(Ended(stop=self.stop_order, refused=refusal))

    def hold(self, reason: Reason, at_s: float) -> None:
        if self.pen is not None:
            self.pen.freeze()
            self._enter(Held(reason, at_s, at_s, time.monotonic()))

    def wait_again(self, at_s: float) -> None:
        """Its larger grant was not enough: its wait begins again, its hold continues."""
        if isinstance(self.phase, Held):
            self._enter(replace(self.phase, since_s=at_s))

    def release(self, at_s: float) -> None:
        """Lets a held run continue."""
        if not isinstance(self.phase, Held) or self.pen is None:
            return
        self.pen.thaw()
        self.holds.total_s += at_s - self.phase.frozen_s
        if len(self.holds.each_s) < KEEP_HOLDS:
            self.holds.each_s.append(time.monotonic() - self.phase.clock_s)
        self._enter(Running())

    def stop(self, stopping: Stopping) -> None:
        hit_bytes = self.grant.grant_bytes if isinstance(self.phase, Held) else 0
        self.release(stopping.since_s)
        self._enter(replace(stopping, hit_bytes=hit_bytes))

    def record_exit(
        self, exit_: Exit, *, largest_bytes: int = 0, may_have_left: bool = True
    ) -> None:  # fmt: skip
        self.release(exit_.at_s)
        stop = self.stop_order
        killed_s = stop.killed_s if stop is not None else None
        self._enter(Clearing(exit_, stop, largest_bytes, may_have_left, killed_s=killed_s))

    def clear(self, leftovers: int, at_s: float) -> None:
        """The processes that its first process left were asked to end."""
        assert isinstance(self.phase, Clearing)
        self._enter(replace(self.phase, since_s=at_s, leftovers=leftovers))

    def record_kill(self, at_s: float) -> None:
        if isinstance(self.phase, Clearing | Stopping):
            self._enter(replace(self.phase, killed_s=at_s))

    def ask_to_close(self) -> bool:
        """Returns whether to close its output now: no process in its pen can print."""
        if not isinstance(self.phase, Clearing) or self.phase.output is not Output.OPEN:
            return False
        if self.usage.reading.procs:
            return False
        self._enter(replace(self.phase, output=Output.CLOSING))
        return True

    def close_output(self, *, heap_exhausted: bool) -> None:
        if isinstance(self.phase, Clearing):
            phase = replace(self.phase, output=Output.CLOSED, heap_exhausted=heap_exhausted)
            self._enter(phase)

    def end(self, at_s: float) -> None:
        """Its pen is empty or abandoned, or its process is free for the next job."""
        self.release(at_s)
        if not isinstance(self.phase, Ended):
            heap_exhausted = run_phase.is_heap_exhausted(self.phase)
            self._enter(Ended(self.exit, self.stop_order, heap_exhausted=heap_exhausted))

    def _enter(self, phase: Phase) -> None:
        assert type(phase) in run_phase.FOLLOWING[type(self.phase)], (self.id, self.phase, phase)
        self.phase = phase


def record_engine_clients(runs: Iterable[LiveRun], clients: dict[int, str]) -> None:
    """Records which runs are connected to a container engine."""
    for run in runs if clients else ():
        if not run.usage.engine and run.pen is not None:
            run.usage.engine = find_client(run.pen.pids(), clients)
