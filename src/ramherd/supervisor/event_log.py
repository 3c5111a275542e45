"""Events: each one is recorded in the store and sent to the display.

The service has the same loop as a herd, and adds its own work through `Hooks`.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ramherd.act.run import LiveRun
from ramherd.core.model import Event, Job, JobStatus, Reason, RunEnd, Stopping
from ramherd.show.view import Display
from ramherd.store.events import add_event
from ramherd.store.write_buffer import WriteBuffer


def ignore(*_values: Any) -> None:
    pass


@dataclass
class Hooks:
    """What else is to be done at these moments: nothing for a herd."""

    event: Callable[[Event], None] = ignore
    job_changed: Callable[[JobStatus], None] = ignore
    run_stopping: Callable[[LiveRun, Stopping], None] = ignore
    run_ended: Callable[[LiveRun, RunEnd, float], None] = ignore
    # The store has everything that was recorded so far.
    committed: Callable[[], None] = ignore


@dataclass
class EventLog:
    herd: str
    writes: WriteBuffer
    display: Display
    hooks: Hooks = field(default_factory=Hooks)

    def record(self, write: Callable[..., Any], *values: Any, **named: Any) -> None:
        """`write(store, ...)` with the next commit."""
        self.writes.add(write, *values, **named)

    def emit_run(self, kind: str, reason: Reason, run: LiveRun) -> None:
        self._emit(kind, reason, run.job.name, run.job, run.id)

    def emit_job(self, kind: str, reason: Reason, job: Job) -> None:
        self._emit(kind, reason, job.name, job)

    def emit_herd(self, kind: str, reason: Reason, *, run: str = "") -> None:
        """`run` has ended already."""
        self._emit(kind, reason, "a run" if run else "all runs", run=run)

    def _emit(
        self, kind: str, reason: Reason, name: str, job: Job | None = None, run: str = ""
    ) -> None:  # fmt: skip
        herd, id_ = (job.herd, job.id) if job is not None else (self.herd, "")
        event = Event(kind, reason, time.time(), herd, id_, run)
        self.record(add_event, event)
        self.display.event(event, name)
        self.hooks.event(event)
