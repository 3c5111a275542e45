"""What the loop says of itself: each event goes to the store and to the screen."""

import time
from collections.abc import Callable
from typing import Any, Protocol

from ramherd.act.run import LiveRun
from ramherd.core.model import Event, JobStatus, Reason
from ramherd.show.view import View
from ramherd.store.events import add_event
from ramherd.store.write_buffer import WriteBuffer
from ramherd.supervisor.view import make_event


class Show(Protocol):
    def event(self, event: Event, name: str) -> None: ...
    def update(self, view: Callable[[], View]) -> None: ...


class Telling:
    herd: str
    journal: WriteBuffer
    show: Show

    def note(self, write: Callable[..., Any], *values: Any, **named: Any) -> None:
        self.journal.add(write, *values, **named)

    def emit(self, kind: str, reason: Reason, run: LiveRun) -> None:
        self.tell(make_event(kind, reason, run.job, run.id), run.job.name)

    def emit_herd(self, kind: str, reason: Reason) -> None:
        self.tell(Event(kind, reason, time.time(), self.herd), "all runs")

    def emit_job(self, kind: str, reason: Reason, status: JobStatus) -> None:
        self.tell(make_event(kind, reason, status.job), status.job.name)

    def tell(self, event: Event, name: str) -> None:
        self.note(add_event, event)
        self.show.event(event, name)
