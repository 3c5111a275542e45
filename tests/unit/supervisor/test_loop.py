"""The loop, on a machine that is made up: what it does over time."""

import socket
import sqlite3
import time
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import pytest

from ramherd.act.environments import Layer
from ramherd.act.executor import layers_of
from ramherd.act.run import LiveRun
from ramherd.core.model import JobState, PenReading, Why
from ramherd.core.units import GIB, MIB
from ramherd.supervisor.loop import Loop
from ramherd.system.environ import merge_layers
from support.fakes import FakeLink, FakePen
from support.herds import Ran, Run, jobs_of
from support.make import exited, job


def test_a_herd_comes_to_its_end(run_herd: Run) -> None:
    """Every job is done by one run, and nothing is left."""
    ran = run_herd(jobs_of(5))

    assert ran.states == {JobState.DONE: 5}
    assert not any(pen.alive for pen in ran.fleet.pens.values())
    assert ran.herd.counters.wall_s == pytest.approx(2.0, abs=0.5)


def test_no_more_run_at_a_time_than_allowed(run_herd: Run) -> None:
    """Two at a time, two seconds each: five take six seconds."""
    ran = run_herd(jobs_of(5), max_parallel=2)

    assert ran.states == {JobState.DONE: 5}
    assert ran.herd.counters.wall_s == pytest.approx(6.0, abs=0.5)


def test_why_a_start_waits_is_said_once(run_herd: Run) -> None:
    """When it has lasted a second: not again for the next in line, nor when the numbers move."""
    ran = run_herd(jobs_of(3, memory=20 * GIB))

    assert ran.states == {JobState.DONE: 3}
    assert [name for kind, name in ran.show.events if kind == "start_waits"] == ["j2"]


def test_only_a_lack_of_memory_is_said(run_herd: Run) -> None:
    """`--max-parallel` is what was asked for, and starts under way are over at once."""
    slots = run_herd(jobs_of(5), max_parallel=1)

    assert slots.states == {JobState.DONE: 5}
    assert slots.count("start_waits") == 0


def test_starts_under_way_are_not_said(run_herd: Run) -> None:
    """Each is over at once."""
    ran = run_herd(jobs_of(5), max_starting=1)

    assert (ran.states, ran.count("start_waits")) == ({JobState.DONE: 5}, 0)


def test_an_interrupted_herd_ends_what_runs_and_starts_nothing(run_herd: Run) -> None:
    """Everything is cancelled, whoever waits for whom."""
    jobs = [*jobs_of(3), job("z", seq=9, after=("j1",))]

    ran = run_herd(jobs, interrupt_at_s=(1.0,), max_parallel=1)

    assert ran.states == {JobState.CANCELLED: 4}
    assert len(ran.fleet.pens) == 1
    assert ran.herd.counters.wall_s < 1.5


def test_no_wait_gives_up_at_once(run_herd: Run) -> None:
    """The budget is 28 GiB and nothing runs: the first job fails, the rest is cancelled."""
    ran = run_herd(jobs_of(3, memory=30 * GIB), no_wait=True)

    assert ran.states == {JobState.FAILED: 1, JobState.CANCELLED: 2}
    assert ran.herd.counters.no_room
    assert ran.fleet.pens == {}
    first = next(iter(ran.herd.queue))
    assert first.reason.why is Why.NO_WAIT
    assert ran.herd.loop.runs.given_up


def test_no_wait_ends_what_runs_already(run_herd: Run) -> None:
    """One fits, the next would wait for its memory: all or nothing."""
    ran = run_herd(jobs_of(3, memory=20 * GIB), no_wait=True)

    assert ran.states == {JobState.FAILED: 1, JobState.CANCELLED: 2}
    assert len(ran.fleet.pens) == 1
    assert ran.herd.loop.runs.given_up


def test_a_machine_without_memory_for_a_moment_fails_nobody(run_herd: Run) -> None:
    """For a second no cgroup can be made: the jobs wait, and are not lost three times in a row."""
    ran = run_herd(jobs_of(2), refuse_until_s=1.0)

    assert ran.states == {JobState.DONE: 2}


def test_who_is_too_big_for_the_whole_budget_fails(run_herd: Run) -> None:
    """It runs alone and passes the mark: nothing would become better by waiting."""
    ran = run_herd(jobs_of(1), uses=lambda _n: 600 * MIB, budget_cap_bytes=512 * MIB)

    (job_,) = ran.herd.queue
    assert (job_.state, job_.reason.why) == (JobState.FAILED, Why.TOO_BIG)
    assert ran.herd.counters.wall_s < 1.5


def test_a_store_that_is_locked_ends_no_run_and_starts_none(run_herd: Run, tmp_path: Path) -> None:
    """What happens meanwhile is written when the lock is gone, and the trouble is said once."""
    with closing(sqlite3.connect(tmp_path / "ramherd.db", isolation_level=None)) as other:

        def at(now_s: float) -> None:
            if 0.9 < now_s < 3.0 and not other.in_transaction:
                other.execute("BEGIN IMMEDIATE")
            if now_s >= 3.0 and other.in_transaction:
                other.execute("ROLLBACK")

        ran = run_herd(jobs_of(3), max_parallel=1, meanwhile=at)
        kinds = [row[0] for row in other.execute("SELECT kind FROM events ORDER BY seq")]

    assert ran.states == {JobState.DONE: 3}
    assert [ran.count(kind) for kind in ("run_started", "job_done", "starts_paused")] == [3, 3, 1]
    # Three runs of two seconds; the second began when the lock was gone.
    assert ran.herd.counters.wall_s == pytest.approx(7.0, abs=0.6)
    assert sorted(kinds) == sorted(kind for kind, _name in ran.show.events)


def test_ctrl_c_ends_a_herd_whose_store_cannot_be_written(run_herd: Run, tmp_path: Path) -> None:
    """A start that the store does not take is undone, and was never shown."""
    with closing(sqlite3.connect(tmp_path / "ramherd.db", isolation_level=None)) as other:

        def at(now_s: float) -> None:
            if now_s > 0.9 and not other.in_transaction:
                other.execute("BEGIN IMMEDIATE")

        ran = run_herd(jobs_of(3), max_parallel=1, meanwhile=at, interrupt_at_s=(4.0,))
        other.execute("ROLLBACK")

    assert ran.states == {JobState.DONE: 1, JobState.CANCELLED: 2}
    assert [ran.count(kind) for kind in ("run_started", "run_stopping", "job_done")] == [1, 0, 1]
    assert ran.herd.counters.wall_s == pytest.approx(4.0, abs=0.6)
    assert [one.attempts for one in ran.herd.queue] == [1, 0, 0]


def test_who_is_not_listened_to_is_heard_again_in_time(run_herd: Run, tmp_path: Path) -> None:
    """Its page cache has been heard of: it may grow meanwhile, so not only at the next tick."""
    herd = run_herd(jobs_of(1)).herd
    live = LiveRun("R", job("a"), 1, tmp_path, 0.0, pen=FakePen("R", MIB, 1.0))
    herd.executor.runs["R"] = live
    live.mute_events(herd.at_s + 0.02)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        cast("FakeLink", herd.executor.keeper).fd, herd.loop.signals.fd = (
            ours.fileno(),
            theirs.fileno(),
        )
        began = time.monotonic()
        Loop.wait(herd.loop, 30.0)

    assert time.monotonic() - began < 10.0
    assert herd.executor.muted_for_s(live.grant.muted_until_s) == float("inf")


def test_a_peak_between_two_looks_is_that_of_the_largest_process(tmp_path: Path) -> None:
    """As the kernel tells it at the end, and no more than was ever charged to the pen."""

    def peak(largest: int, charged: int) -> int:
        live = LiveRun(
            "R", job("a"), 1, tmp_path, 0.0, pen=ChargedPen("R", 5, 1.0, charged=charged)
        )
        live.record_exit(exited(), largest_bytes=largest)
        live.measure()
        return live.reading.peak_bytes

    assert [peak(0, 99), peak(50, 99), peak(100, 99), peak(3, 99)] == [5, 50, 99, 5]
    assert peak(100, 0) == 5


@dataclass
class ChargedPen(FakePen):
    charged: int = 0

    def read(self) -> PenReading:
        return replace(super().read(), charged_bytes=self.charged)


def test_a_mark_of_an_outer_herd_is_not_handed_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A ramherd inside of a resumed run: its own runs have not been there before."""
    monkeypatch.setenv("RAMHERD_RESUMED", "1")
    live = LiveRun("R", job("a"), 1, tmp_path, 0.0)

    inherited: Layer = {"RAMHERD_RESUMED": "1", "A": "inherited"}

    first = merge_layers(layers_of(live, inherited, {"A": "own"}, resumed=False))
    again = merge_layers(layers_of(live, inherited, {}, resumed=True))

    assert b"RAMHERD_RESUMED" not in first
    assert first[b"A"] == b"own"
    assert again[b"RAMHERD_RESUMED"] == b"1"
    assert again[b"A"] == b"inherited"


def test_what_cannot_be_ended_does_not_hold_the_herd_for_ever(run_herd: Run) -> None:
    """A process of root's, or asleep in the kernel: it is given up, and named."""
    herds: list[Ran] = []

    def stick(_now_s: float) -> None:
        for pen in herds[0].fleet.pens.values():
            pen.unkillable = True

    ran = run_herd(
        jobs_of(1, timeout_s=1.0), begin=herds.append, meanwhile=stick, grace_s=2.0, give_up_s=5.0
    )

    (job_,) = ran.herd.queue
    assert (job_.state, job_.reason.why) == (JobState.FAILED, Why.TIMEOUT)
    assert ran.herd.counters.wall_s == pytest.approx(8.0, abs=0.6)
    assert ran.count("run_warning") == 1


def test_a_machine_that_sleeps_times_nobody_out(run_herd: Run) -> None:
    """Runs of two seconds with three to go, and a minute between two steps."""
    herds: list[Ran] = []

    def sleep(now_s: float) -> None:
        if 1.0 < now_s < 10.0:
            herds[0].herd.at_s += 60.0

    ran = run_herd(
        jobs_of(2, timeout_s=3.0), begin=herds.append, meanwhile=sleep, lasts_s=63.0
    )  # fmt: skip

    assert ran.states == {JobState.DONE: 2}
