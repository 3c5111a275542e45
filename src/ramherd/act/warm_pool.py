"""Warm processes: one serves several jobs, and waits in its pen between two of them."""

import signal
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ramherd.act.pens import Pen

if TYPE_CHECKING:
    from ramherd.act.run import LiveRun

# From the end of its stdin to its exit: claude takes 0.1 s.
LEAVE_S = 5.0


@dataclass
class WarmProcess:
    """A process that serves one job after another. `key` is what was started, where, with which
    environment and limit: only jobs that want the very same share it.
    """

    key: Hashable
    most_jobs: int
    born_s: float
    jobs: int = 1


@dataclass
class IdleProcess:
    """A worker without a job. `last` is its last run, whose name it has with the keeper."""

    last: "LiveRun"
    worker: WarmProcess
    pen: Pen
    since_s: float
    used_bytes: int
    peak_bytes: int
    leaving_s: float | None = None
    exited: bool = False

    def is_gone(self, at_s: float) -> bool:
        """It leaves by itself when its stdin ends; what does not is killed."""
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
        """Those that can be taken."""
        return iter([one for one in self.all.values() if one.leaving_s is None and not one.exited])

    @property
    def used_bytes(self) -> int:
        return sum(idle.used_bytes for idle in self.all.values())

    @property
    def is_busy(self) -> bool:
        return any(one.leaving_s is not None or one.exited for one in self.all.values())

    def put(self, idle: IdleProcess) -> None:
        self.all[idle.last.id] = idle

    def take(self, key: Hashable) -> IdleProcess | None:
        found = next((idle for idle in self if idle.worker.key == key), None)
        return self.all.pop(found.last.id) if found is not None else None

    def take_all(self) -> list[IdleProcess]:
        taken, self.all = list(self.all.values()), {}
        return taken

    def note_exit(self, run: str) -> None:
        if run in self.all:
            self.all[run].exited = True

    def note_loss(self) -> None:
        """The keeper is gone, and with it their stdin."""
        for idle in self.all.values():
            idle.exited = True

    def gone(self, at_s: float) -> list[IdleProcess]:
        """Those that have left since: nothing of them lives."""
        gone = [idle for idle in self.all.values() if idle.is_gone(at_s)]
        for idle in gone:
            del self.all[idle.last.id]
        return gone
