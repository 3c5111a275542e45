"""Why the first job in line does not start, recorded for lists of jobs."""

from dataclasses import dataclass

from ramherd.core.model import Wait
from ramherd.store.start_pauses import set_start_wait
from ramherd.supervisor.event_log import EventLog

# A new reason is recorded within a second; new numbers as seldom as samples.
CHANGED_S, SAME_S = 1.0, 5.0


@dataclass
class StartWaits:
    events: EventLog
    _stored: Wait | None = None
    _stored_s: float = float("-inf")

    def record(self, wait: Wait | None, name: str, at_s: float) -> None:
        """`name` is the name of the job that waits. None: no job waits, or the start gate is
        closed, which has its own record.
        """
        every_s = SAME_S if is_alike(wait, self._stored) else CHANGED_S
        if wait == self._stored or at_s - self._stored_s < every_s:
            return
        self._stored, self._stored_s = wait, at_s
        herd = self.events.herd
        if wait is None:
            self.events.record(set_start_wait, herd, None)
        else:
            self.events.record(set_start_wait, herd, wait.reason, wait.job, name)


def is_alike(one: Wait | None, other: Wait | None) -> bool:
    """The same job waits for the same thing; the numbers may differ."""
    if one is None or other is None:
        return one is other
    return (one.job, one.reason.why) == (other.job, other.reason.why)
