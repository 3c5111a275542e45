"""One gate for all causes: what it lets through, emits and stores."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from ramherd.core.model import Reason, Why
from ramherd.decide.job_state import first_status
from ramherd.decide.start_pause import OUTCOME_S, Cause
from ramherd.show.view import Display
from ramherd.store.herds import add_herd, end_herd, lose_herd
from ramherd.store.listing import list_jobs
from ramherd.store.sqlite import SqliteStore
from ramherd.store.start_pauses import read_start_pauses
from ramherd.store.write_buffer import WriteBuffer
from ramherd.supervisor.event_log import EventLog
from ramherd.supervisor.start_gate import StartGate
from support.fakes import OWNER, FakeShow
from support.make import HERD, job

STORE = Reason(Why.STORE, what="cannot use the store: disk is full")
PAUSED = Reason(Why.PAUSED)
NO_SPACE = "cannot make a directory in /s/runs: No space left on device"


class Gate(StartGate):
    """With what it emitted."""

    def kinds(self) -> list[tuple[str, Why]]:
        show = self.events.display.event.__self__  # type: ignore[attr-defined]
        return [(event.kind, event.reason.why) for event in show.full]


@pytest.fixture
def gate(tmp_path: Path) -> Iterator[Gate]:
    show = FakeShow()
    with closing(SqliteStore(tmp_path / "ramherd.db")) as store:
        add_herd(store, HERD, OWNER, [first_status(job("a")), first_status(job("b", after=("a",)))])
        yield Gate(EventLog(HERD, WriteBuffer(store), Display(show.event, show.update)))


def test_a_cause_closes_the_gate_until_it_is_over(gate: Gate) -> None:
    """However often it is reported, there is one event for its begin and one for its end."""
    for _step in range(3):
        gate.set(Cause.STORE, STORE)
    assert (gate.is_open(1e9), gate.reason) == (False, STORE)
    for _step in range(3):
        gate.set(Cause.STORE, None)

    assert (gate.is_open(0.0), gate.reason) == (True, None)
    assert gate.kinds() == [("starts_paused", Why.STORE), ("starts_resumed", Why.RESUMED)]


def test_two_causes_are_both_waited_for(gate: Gate) -> None:
    """The one that has lasted longest is shown; starts go on after the last."""
    gate.set(Cause.STORE, STORE)
    gate.set(Cause.DISK, Reason(Why.STORE, what="disk"))
    gate.set(Cause.STORE, None)

    assert not gate.is_open(1e9)
    assert gate.reason == Reason(Why.STORE, what="disk")
    gate.set(Cause.DISK, None)
    assert [kind for kind, _why in gate.kinds()] == ["starts_paused"] * 2 + ["starts_resumed"]


def test_what_a_user_asked_for_has_its_own_event(gate: Gate) -> None:
    """`ramherd pause` has emitted it already."""
    gate.set(Cause.USER, PAUSED)
    assert not gate.is_open(1e9)
    gate.set(Cause.USER, None)

    assert gate.kinds() == []


def test_a_failed_start_is_tried_one_job_at_a_time(gate: Gate) -> None:
    """One event, however often it fails; the first start that succeeds opens the gate."""
    gate.record_failed_start(NO_SPACE, 10.0)
    assert not gate.begin_start(10.4)
    assert gate.begin_start(10.5)
    assert not gate.begin_start(10.5)
    gate.record_failed_start(NO_SPACE, 10.6)
    assert (gate.is_open(11.5), gate.is_open(11.6)) == (False, True)
    assert gate.begin_start(11.6)
    gate.record_start()

    assert (gate.begin_start(11.6), gate.begin_start(11.6)) == (True, True)
    assert [kind for kind, _why in gate.kinds()] == ["starts_paused", "starts_resumed"]


def test_a_try_without_an_outcome_is_repeated(gate: Gate) -> None:
    """Its run was cancelled before the keeper had started it."""
    gate.record_failed_start(NO_SPACE, 0.0)
    assert gate.begin_start(1.0)

    assert not gate.is_open(0.9 + OUTCOME_S)
    assert gate.is_open(1.0 + OUTCOME_S)


def test_the_reason_stands_at_every_queued_job(gate: Gate) -> None:
    """Not at jobs that wait for others; gone when starts go on, and when the herd ends."""
    store = gate.events.writes.store

    def reasons() -> dict[str, str]:
        assert gate.events.writes.commit()
        return {one["name"]: one["reason"]["why"] for one in list_jobs(store, herd=HERD)}

    gate.record_failed_start(NO_SPACE, 0.0)
    assert reasons() == {"a": "cannot_prepare", "b": "after"}
    gate.record_start()
    assert reasons() == {"a": "submitted", "b": "after"}


@pytest.mark.parametrize("how", ["ended", "lost"])
def test_a_herd_that_is_over_is_not_paused(gate: Gate, how: str) -> None:
    """Its reason would stay in the store for ever."""
    store = gate.events.writes.store
    gate.set(Cause.STORE, STORE)
    gate.events.writes.commit()
    assert read_start_pauses(store) == {HERD: STORE.as_json()}
    if how == "ended":
        end_herd(store, HERD, {})
    else:
        lose_herd(store, HERD, Reason(Why.SUPERVISOR_LOST))

    assert read_start_pauses(store) == {}
