"""The start gate: whether jobs may start, and if not, why.

Every part that finds out that nothing can start reports its cause here, and reports its end. Live
runs go on; jobs keep their places, their retries and their attempts. The reason stands in the event
`starts_paused`, on the display, and in `ramherd jobs` as the reason of every queued job.
"""

from dataclasses import dataclass, field

from ramherd.core.model import Reason
from ramherd.decide.start_pause import (
    Cause,
    StartPause,
    after_failed_start,
    after_try,
    explain_resumed,
)
from ramherd.store.start_pauses import set_start_pause
from ramherd.supervisor.event_log import EventLog

# These have events of their own.
SILENT = (Cause.USER, Cause.SERVICE_ENDS)


@dataclass
class StartGate:
    events: EventLog
    _pauses: dict[Cause, StartPause] = field(default_factory=dict)
    _stored: Reason | None = None

    @property
    def reason(self) -> Reason | None:
        """The cause that has lasted longest; None while jobs may start."""
        return next((pause.reason for pause in self._pauses.values()), None)

    def set(self, cause: Cause, reason: Reason | None) -> None:
        """Nothing starts for this reason; None: the cause has ended. Repeated calls emit one event
        for each change.
        """
        if reason is None:
            self._open(cause)
        else:
            self._close(cause, StartPause(reason))

    def record_failed_start(self, what: str, at_s: float) -> None:
        """A run could not be prepared, through no fault of its job: tried again later."""
        before = self._pauses.get(Cause.PREPARATION)
        self._close(Cause.PREPARATION, after_failed_start(before, what, at_s))

    def record_start(self) -> None:
        """A run has started, so runs can be prepared."""
        self._open(Cause.PREPARATION)

    def is_open(self, at_s: float) -> bool:
        """Also open for a single try, when that is due."""
        return all(pause.next_s <= at_s for pause in self._pauses.values())

    def begin_start(self, at_s: float) -> bool:
        """Whether this job may start now. While starts fail, one is tried at a time."""
        if not self.is_open(at_s):
            return False
        self._pauses = {cause: after_try(pause, at_s) for cause, pause in self._pauses.items()}
        return True

    def _close(self, cause: Cause, pause: StartPause) -> None:
        is_new = cause not in self._pauses
        self._pauses[cause] = pause
        if is_new and cause not in SILENT:
            self.events.emit_herd("starts_paused", pause.reason)
        self._store()

    def _open(self, cause: Cause) -> None:
        if self._pauses.pop(cause, None) is None:
            return
        if cause not in SILENT and not self._pauses:
            self.events.emit_herd("starts_resumed", explain_resumed())
        self._store()

    def _store(self) -> None:
        """For commands that read from the store why a job has not started."""
        if self.reason != self._stored:
            self._stored = self.reason
            self.events.record(set_start_pause, self.events.herd, self.reason)
