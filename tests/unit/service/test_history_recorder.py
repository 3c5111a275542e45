"""What the service records of its memory, second by second."""

from dataclasses import dataclass, field, replace
from typing import Any, cast

from ramherd.core.memory_moment import MemoryMoment, RunMemory
from ramherd.core.service_status import RunStatus, ServiceStatus
from ramherd.service.history_recorder import MOST_SECONDS, HistoryRecorder, moment_of
from ramherd.supervisor.event_log import EventLog

RUN = RunStatus("R", "J", "job", 2, used_bytes=30, peak_bytes=30, procs=1, ran_s=1.0, held=True)
STATUS = ServiceStatus(
    at_s=1200.7, total_bytes=100, available_bytes=60, budget_bytes=80, used_bytes=30,
    granted_bytes=40, runs=(replace(RUN, grant_bytes=40),),
)  # fmt: skip


@dataclass
class FakeWrites:
    is_clear: bool = True


@dataclass
class FakeEvents:
    """The log of a service: it has what was to be written."""

    writes: FakeWrites = field(default_factory=FakeWrites)
    recorded: list[list[tuple[int, MemoryMoment]]] = field(default_factory=list)

    def record(self, _write: Any, moments: list[tuple[int, MemoryMoment]]) -> None:
        self.recorded.append(moments)


def feed(recorder: HistoryRecorder, events: FakeEvents, *used: int, since_s: int = 1200) -> None:
    """One status a second."""
    for at_s, size in enumerate(used, since_s):
        status = replace(STATUS, at_s=float(at_s), used_bytes=size)
        recorder.record(status, cast("EventLog", events), float(at_s))


def test_a_moment_has_the_machine_and_each_run() -> None:
    """Whole seconds are enough."""
    assert moment_of(STATUS) == MemoryMoment(
        1200, 100, 60, 80, 30, 40, "calm", (RunMemory("J", 2, 30, 40, held=True),)
    )


def test_ten_seconds_are_written_together() -> None:
    """Each second, and of the longer steps the fullest so far."""
    recorder, events = HistoryRecorder(), FakeEvents()

    feed(recorder, events, *[5, 1, 9, 1, 1, 1, 1, 1, 1, 1, 1])

    first, second = events.recorded
    assert {step_s for step_s, _moment in first} == {1, 10, 60, 300}
    assert [one.at_s for step_s, one in second if step_s == 1] == list(range(1200, 1211))
    assert [one.used_bytes for step_s, one in second if step_s == 60] == [9]
    assert [one.at_s for step_s, one in second if step_s == 10] == [1202, 1210]


def test_a_step_that_goes_on_is_written_again() -> None:
    """A peak that was written ten seconds ago is still the peak of its minute."""
    recorder, events = HistoryRecorder(), FakeEvents()

    feed(recorder, events, *([9] + [1] * 20))

    assert [one.used_bytes for step_s, one in events.recorded[-1] if step_s == 60] == [9]
    assert [one.used_bytes for step_s, one in events.recorded[-1] if step_s == 10] == [1, 1]


def test_an_idle_service_writes_once_a_minute() -> None:
    """So that a disk can sleep."""
    recorder, events = HistoryRecorder(), FakeEvents()
    for at_s in range(1200, 1321):
        idle = replace(STATUS, at_s=float(at_s), runs=())
        recorder.record(idle, cast("EventLog", events), float(at_s))

    assert len(events.recorded) == 3


def test_a_store_that_cannot_be_written_costs_old_seconds_only() -> None:
    """Memory stays bounded, and the longer steps have their peaks afterwards."""
    recorder, events = HistoryRecorder(), FakeEvents(FakeWrites(is_clear=False))
    feed(recorder, events, *([99] + [1] * 250))
    assert events.recorded == []

    events.writes.is_clear = True
    feed(recorder, events, 1, since_s=1451)

    (written,) = events.recorded
    assert len([step_s for step_s, _moment in written if step_s == 1]) == MOST_SECONDS
    assert [one.used_bytes for step_s, one in written if step_s == 300] == [99]
