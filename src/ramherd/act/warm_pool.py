"""Warm processes: each serves several jobs, and waits in its pen between two jobs."""

import signal
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ramherd.act.pens import Pen

if TYPE_CHECKING:
    from ramherd.act.run import LiveRun

# From the end of stdin to the exit: claude takes 0.1 s.
LEAVE_S = 5.0


@dataclass
class WarmProcess:
    """A process that serves one job after another. `key` has the program, its directory,
    environment and limit: only jobs with the same key share the process.
    """

    key: Hashable
    most_jobs: int
    born_s: float
    jobs: int = 1


@dataclass(frozen=True, slots=True)
class WarmUse:
    """A run's use of a process that serves other jobs as well: the previous run of the process, and
    its peak memory until then; whether the process is ready for the next job, and whether its stdin
    was closed, so that it serves no other.
    """

    process: WarmProcess
    taken_from: str = ""
    peak_before: int = 0
    is_ready: bool = False
    is_closed: bool = False


@dataclass
class IdleProcess:
    """A warm process without a job. `last` is its last run, whose id the keeper uses for it."""

    last: "LiveRun"
    process: WarmProcess
    pen: Pen
    since_s: float
    used_bytes: int
    peak_bytes: int
    leaving_s: float | None = None
    exited: bool = False

    def is_gone(self, at_s: float) -> bool:
        """A process exits when its stdin is closed; if it does not, it is killed."""
        reading = self.pen.read()
        self.used_bytes, self.peak_bytes = reading.used_bytes, reading.peak_bytes
        late = self.leaving_s is not None and at_s - self.leaving_s > LEAVE_S
        if reading.procs and (self.exited or late):
            self.pen.signal(signal.SIGCONT)
            self.pen.kill()
        return self.exited and not reading.procs


@dataclass
class WarmPool:
    all: dict[str, IdleProcess] = field(default_factory=dict)

    def __iter__(self) -> Iterator[IdleProcess]:
        """Warm processes that can take a job."""
        return iter([one for one in self.all.values() if one.leaving_s is None and not one.exited])

    @property
    def used_bytes(self) -> int:
        return sum(idle.used_bytes for idle in self.all.values())

    @property
    def is_busy(self) -> bool:
        return any(one.leaving_s is not None or one.exited for one in self.all.values())

    def add(self, idle: IdleProcess) -> None:
        self.all[idle.last.id] = idle

    def pop(self, key: Hashable) -> IdleProcess | None:
        found = next((idle for idle in self if idle.process.key == key), None)
        return self.all.pop(found.last.id) if found is not None else None

    def pop_all(self) -> list[IdleProcess]:
        found, self.all = list(self.all.values()), {}
        return found

    def record_exit(self, run: str) -> None:
        if run in self.all:
            self.all[run].exited = True

    def record_keeper_loss(self) -> None:
        """The keeper is gone, and with it the stdin of every process."""
        for idle in self.all.values():
            idle.exited = True

    def pop_gone(self, at_s: float) -> list[IdleProcess]:
        """Warm processes that have exited and left no process behind."""
        gone = [idle for idle in self.all.values() if idle.is_gone(at_s)]
        for idle in gone:
            del self.all[idle.last.id]
        return gone
