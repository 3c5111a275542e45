"""The phases of a run: what may follow what, and what each one knows."""

import errno
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from ramherd.act.run import LiveRun
from ramherd.core.model import ProcId, Reason, Refusal, RunEnd, Stopping, Why
from ramherd.core.run_phase import Clearing, Ended, Held, Output, Phase, Running, Starting
from ramherd.core.units import MIB
from support.fakes import FakePen
from support.make import exited, job, stopping

HELD = Reason(Why.AT_GRANT, used_bytes=1, grant_bytes=2)
STOP = stopping(RunEnd.PREEMPTED, since_s=5.0)


def live(phase: Phase | None = None) -> LiveRun:
    pen = FakePen("R", MIB, 1e9)
    pen.begin()
    return LiveRun("R", job("a"), 1, Path("/runs"), 0.0, pen=pen, phase=phase or Running())


def is_frozen(run: LiveRun) -> bool:
    assert isinstance(run.pen, FakePen)
    return run.pen.frozen


def test_a_start_that_is_reported_late_changes_nothing_else() -> None:
    """The run was at its grant, or told to end, before the keeper reported it."""
    phases: list[Phase] = []
    for change in (
        lambda _run: None,
        lambda run: run.hold(HELD, 1.0),
        lambda run: run.stop(STOP),
    ):
        run = live(Starting())
        change(run)
        run.record_start(ProcId(7, 1))
        assert run.first == ProcId(7, 1)
        phases.append(run.phase)

    assert [type(phase) for phase in phases] == [Running, Held, Stopping]


def test_a_held_run_that_is_told_to_end_is_thawed_and_its_grant_remembered() -> None:
    """A frozen process receives no TERM; with less its job would only be stopped again."""
    run = live()
    run.set_grant(100 * MIB, 96 * MIB)
    run.hold(HELD, 2.0)
    run.stop(STOP)

    assert not is_frozen(run)
    assert (run.hit_bytes, run.holds.total_s, run.held_since_s) == (100 * MIB, 3.0, None)


def test_a_held_run_that_exits_is_thawed() -> None:
    """Its first process was killed by somebody: what it left can be ended."""
    run = live()
    run.hold(HELD, 90.0)
    run.record_exit(exited())

    assert not is_frozen(run)
    assert isinstance(run.phase, Clearing)
    assert run.holds.total_s == 9.0


def test_the_order_to_end_is_known_until_the_end() -> None:
    """With the time of the last KILL, across the exit."""
    run = live()
    run.stop(STOP)
    run.record_kill(7.0)
    run.record_exit(exited(), largest_bytes=5, may_have_left=False)
    assert isinstance(run.phase, Clearing)
    assert (run.phase.killed_s, run.phase.largest_bytes, run.may_have_left) == (7.0, 5, False)
    run.end(100.0)

    assert isinstance(run.phase, Ended)
    assert run.stop_order is not None
    assert (run.stop_order.end, run.exit) == (RunEnd.PREEMPTED, exited())


def test_output_is_asked_to_be_closed_once_and_when_nothing_can_print() -> None:
    """Not while processes are left."""
    run = live()
    assert not run.ask_to_close()
    run.measure()
    run.record_exit(exited())
    assert not run.ask_to_close()
    assert isinstance(run.pen, FakePen)
    run.pen.alive = False
    run.measure()

    assert [run.ask_to_close(), run.ask_to_close()] == [True, False]
    run.close_output(heap_exhausted=True)
    assert isinstance(run.phase, Clearing)
    assert (run.phase.output, run.output_closed) == (Output.CLOSED, True)


def test_a_run_that_never_began_is_over_at_once() -> None:
    """Also one that was told to end before: the order is kept."""
    run = live(Starting())
    run.stop(STOP)
    run.refuse(Refusal(errno.ENOENT, "gone"), 6.0)
    run.record_kill(7.0)

    assert (run.refused, run.is_ending) == (Refusal(errno.ENOENT, "gone"), True)
    assert run.stop_order == STOP


WRONG: list[Callable[[LiveRun], None]] = [
    lambda run: run.hold(HELD, 9.0),
    lambda run: run.stop(STOP),
    lambda run: run.record_exit(exited()),
]


@pytest.mark.parametrize("change", WRONG)
def test_nothing_follows_the_end(change: Callable[[LiveRun], None]) -> None:
    """A mistake shows where it is made."""
    with pytest.raises(AssertionError):
        change(live(Ended()))


def test_time_that_nobody_looked_at_a_run_does_not_count() -> None:
    """Its timeout, its hold and the grace of its end are as far as before."""
    held = live(Held(Reason(Why.AT_GRANT), 5.0, 4.0, 0.0))
    held.skip(100.0)
    assert (held.held_since_s, held.frozen_s) == (105.0, 104.0)
    assert (held.held_s(106.0), held.uncounted_s(106.0)) == (2.0, 102.0)

    stopping = live(Stopping(RunEnd.TIMEOUT, Reason(Why.TIMEOUT), 5.0, killed_s=6.0))
    stopping.skip(100.0)
    assert stopping.stop_order is not None
    assert (stopping.stop_order.since_s, stopping.stop_order.killed_s) == (105.0, 106.0)

    clearing = live(Clearing(exited(), STOP, since_s=6.0))
    clearing.skip(100.0)
    assert isinstance(clearing.phase, Clearing)
    assert (clearing.phase.since_s, clearing.phase.killed_s) == (106.0, None)
    assert clearing.stop_order == replace(STOP, since_s=STOP.since_s + 100.0)

    running = live(Running())
    running.skip(100.0)
    assert (running.phase, running.uncounted_s(200.0)) == (Running(), 100.0)
