"""Events: each one is recorded in the store and sent to the display.

A start is shown once the store has recorded it and the keeper was asked to start it: until then it
can be undone. The service uses the same loop as a herd, and adds its own work through `Hooks`.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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
    """Additional work at these moments. A herd has none."""

    event: Callable[[Event], None] = ignore
    job_changed: Callable[[JobStatus], None] = ignore
    run_stopping: Callable[[LiveRun, Stopping], None] = ignore
    run_ended: Callable[[LiveRun, RunEnd, float], None] = ignore
    worktree_finished: Callable[[Job], None] = ignore
    # The store has everything that was recorded so far.
    committed: Callable[[], None] = ignore


@dataclass
class EventLog:
    herd: str
    writes: WriteBuffer
    display: Display
    hooks: Hooks = field(default_factory=Hooks)
    # The events of starts that are not on disk yet.
    _unshown: dict[str, list[tuple[Event, str]]] = field(default_factory=dict)

    def record(self, write: Callable[..., Any], *values: Any, **named: Any) -> None:
        """Calls `write(store, ...)` in the next commit."""
        self.writes.add(write, *values, **named)

    @contextmanager
    def start_of(self, run: str) -> Iterator[None]:
        """Everything recorded and emitted inside is part of the start of this run."""
        self.writes.start = run
        try:
            yield
        finally:
            self.writes.start = ""

    def withdraw(self, run: str) -> None:
        """The start of this run was undone: no part of it is recorded or shown."""
        self.writes.withdraw(run)
        self._unshown.pop(run, None)

    def show_starts(self) -> None:
        """Shows the starts that were recorded."""
        while self._unshown:
            for event, name in self._unshown.pop(next(iter(self._unshown))):
                self._show(event, name)

    def emit_run(self, kind: str, reason: Reason, run: LiveRun) -> None:
        self._emit(kind, reason, run.job.name, run.job, run.id)

    def emit_job(self, kind: str, reason: Reason, job: Job) -> None:
        self._emit(kind, reason, job.name, job)

    def emit_herd(self, kind: str, reason: Reason, *, run: str = "") -> None:
        """`run` has already ended."""
        self._emit(kind, reason, "a run" if run else "all runs", run=run)

    def _emit(
        self, kind: str, reason: Reason, name: str, job: Job | None = None, run: str = ""
    ) -> None:  # fmt: skip
        herd, id_ = (job.herd, job.id) if job is not None else (self.herd, "")
        event = Event(kind, reason, time.time(), herd, id_, run)
        self.record(add_event, event)
        if start := self.writes.start:
            self._unshown.setdefault(start, []).append((event, name))
        else:
            self._show(event, name)

    def _show(self, event: Event, name: str) -> None:
        self.display.event(event, name)
        self.hooks.event(event)
