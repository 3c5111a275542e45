"""Records the memory history: one moment a second, written to the store every few seconds."""

from collections.abc import Iterator

from ramherd.core.memory_moment import MemoryMoment, RunMemory
from ramherd.core.service_status import ServiceStatus
from ramherd.decide.history_steps import STEPS, is_fuller, start_of_step
from ramherd.store.memory_history import record_moments
from ramherd.supervisor.event_log import EventLog

# A service without runs lets the disk sleep.
WRITE_EVERY_S, WRITE_IDLE_EVERY_S = 10.0, 60.0
# While the store cannot be written, only the last seconds are kept.
MOST_SECONDS = 60


class HistoryRecorder:
    """Holds the moments that are not written yet, and of each longer step the fullest so far: it is
    written again when it was not the fullest after all.
    """

    def __init__(self) -> None:
        # By step and start of the step.
        self._moments: dict[tuple[int, int], MemoryMoment] = {}
        self._written_s = float("-inf")

    def record(self, status: ServiceStatus, events: EventLog, at_s: float) -> None:
        self.add(moment_of(status))
        every_s = WRITE_EVERY_S if status.runs else WRITE_IDLE_EVERY_S
        if at_s - self._written_s >= every_s and events.writes.is_clear:
            self._written_s = at_s
            events.record(record_moments, list(self.pop_moments(int(status.at_s))))

    def add(self, moment: MemoryMoment) -> None:
        for step_s, _keep_s in STEPS:
            place = (step_s, start_of_step(moment.at_s, step_s))
            before = self._moments.get(place)
            if before is None or is_fuller(moment, before):
                self._moments[place] = moment
        oldest = (STEPS[0].step_s, moment.at_s - MOST_SECONDS)
        self._moments.pop(oldest, None)

    def pop_moments(self, now_s: int) -> Iterator[tuple[int, MemoryMoment]]:
        """Those of steps that go on stay here, too."""
        moments, self._moments = self._moments, {}
        for (step_s, start_s), moment in moments.items():
            if start_of_step(now_s, step_s) == start_s:
                self._moments[step_s, start_s] = moment
            yield step_s, moment


def moment_of(status: ServiceStatus) -> MemoryMoment:
    return MemoryMoment(
        at_s=int(status.at_s),
        total_bytes=status.total_bytes,
        available_bytes=status.available_bytes,
        budget_bytes=status.budget_bytes,
        used_bytes=status.used_bytes,
        granted_bytes=status.granted_bytes,
        level=status.level,
        runs=tuple(
            RunMemory(run.job, run.attempt, run.used_bytes, run.grant_bytes, run.held)
            for run in status.runs
        ),
    )
