"""The loop when memory is short: which runs are held, which make room, and what is reported."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import pytest

from ramherd.core.model import JobState, Reason, Why
from ramherd.core.units import GIB, MIB
from support.fakes import FakeLink
from support.herds import Ran, Run, jobs_of

# Both want to grow to 700 MiB in a budget of 1 GiB: one at a time fits.
ONE_OF_TWO: dict[str, Any] = {
    "budget_cap_bytes": GIB, "grows": lambda _n: (100.0 * MIB, 700 * MIB), "lasts_s": 10.0,
}  # fmt: skip


def resumed_of(spawned: dict[str, Any]) -> Any:
    return spawned["env"][-1]["RAMHERD_RESUMED"]


def test_the_oldest_run_is_never_put_back(run_herd: Run) -> None:
    """However tight it gets, the first job is done by its first run; one other goes, once."""
    ran = run_herd(jobs_of(2), **ONE_OF_TWO)

    assert ran.states == {JobState.DONE: 2}
    assert [ran.herd.counters.jobs[f"id-j{n}"].runs for n in (1, 2)] == [1, 2]
    assert (ran.herd.counters.preempted, ran.herd.counters.level_changes) == (1, 0)


def test_who_had_to_make_room_comes_back_with_what_it_had(run_herd: Run) -> None:
    """It asked for 10 MiB and was held at more: with less it would only be stopped again."""
    ran = run_herd(jobs_of(2), **ONE_OF_TWO)

    held = ran.event("run_held", "id-j2").reason.numbers["grant_bytes"]
    back = ran.herd.queue["id-j2"]
    assert (back.need_bytes, back.stops) == (held, 1)
    starts = [event.reason for event in ran.show.full if event.kind == "run_started"]
    assert [start.numbers["need_bytes"] for start in starts] == [32 * MIB, 32 * MIB, held]


def test_a_hold_is_said_when_it_lasts(run_herd: Run) -> None:
    """Both grow some 15 times, held for a moment each time: only the two that had to wait for
    longer than a tick are told, and who goes on is told that.
    """
    ran = run_herd(jobs_of(2), **ONE_OF_TWO)

    assert len(ran.herd.counters.holds) > 10
    assert ran.names("run_held") == ["j2", "j1"]
    assert ran.names("run_granted") == ["j1"]
    assert ran.herd.counters.jobs["id-j1"].held_s == pytest.approx(1.0, abs=0.3)


def test_a_job_is_held_while_its_run_is(run_herd: Run) -> None:
    """And running again when it goes on; who makes room is queued, and nobody stays held."""
    seen: dict[str, list[JobState]] = {"id-j1": [], "id-j2": []}
    herds: list[Ran] = []

    def look(_now_s: float) -> None:
        for job_, states in seen.items():
            state = herds[0].herd.queue[job_].state
            if states[-1:] != [state]:
                states.append(state)

    run_herd(jobs_of(2), **ONE_OF_TWO, begin=herds.append, meanwhile=look)

    running, held, queued = JobState.RUNNING, JobState.HELD, JobState.QUEUED
    assert seen["id-j1"] == [running, held, running, JobState.DONE]
    assert seen["id-j2"] == [running, held, queued, running]


def test_who_can_resume_is_told_so(run_herd: Run) -> None:
    """The run after the one that made room goes on; what it did is not done again."""
    resumes = run_herd(jobs_of(2, resume_argv=("true", "--on")), **ONE_OF_TWO)

    first, *_, last = cast("FakeLink", resumes.herd.executor.keeper).spawned
    assert (first["argv"], resumed_of(first)) == (("true",), None)
    assert (last["argv"], resumed_of(last)) == (("true", "--on"), "1")
    assert (resumes.herd.counters.preempted, resumes.herd.counters.redone_s) == (1, 0.0)


def test_who_cannot_resume_does_its_work_again(run_herd: Run) -> None:
    """All that the stopped run did counts as lost, and the next one is told that there was one."""
    again = run_herd(jobs_of(2), **ONE_OF_TWO)

    last = cast("FakeLink", again.herd.executor.keeper).spawned[-1]
    assert (last["argv"], resumed_of(last)) == (("true",), "1")
    assert again.herd.counters.redone_s == pytest.approx(8.0, abs=1.0)


def test_a_ramp_begins_with_few(run_herd: Run) -> None:
    """One at first, one more when that went well for as long as agents take to settle."""
    ran = run_herd(jobs_of(4), ramp=1, lasts_s=5.0, young_s=3.0)

    ramp = ran.herd.memory.ramp
    assert ran.states == {JobState.DONE: 4}
    assert ran.event("start_waits", "id-j2").reason == Reason(Why.RAMP, running=1, limit=1)
    assert ramp is not None
    assert (ramp.allowed, ramp.clean, ramp.trouble) == (3, 2, None)


def test_a_ramp_says_what_went_wrong(run_herd: Run) -> None:
    """A run that had to wait for memory is the first trouble."""
    ran = run_herd(jobs_of(2), ramp=2, **ONE_OF_TWO)

    ramp = ran.herd.memory.ramp
    assert ramp is not None
    assert ramp.trouble is not None
    assert (ramp.trouble.why, ramp.clean) == (Why.AT_GRANT, 0)


def test_a_level_is_said_and_counted(run_herd: Run) -> None:
    """No pen could be made for a second: starts have failed, which is over a minute later."""
    ran = run_herd(jobs_of(2), refuse_until_s=1.0, lasts_s=90.0)

    kinds = [kind for kind, _name in ran.show.events if kind.startswith("level_")]
    assert kinds[0] != "level_calm"
    assert kinds[-1] == "level_calm"
    assert ran.herd.counters.level_changes == len(kinds)


def test_a_ledger_that_cannot_be_used_is_said_once(run_herd: Run, tmp_path: Path) -> None:
    """The last lease holds meanwhile: what runs goes on, and what waits starts."""
    with closing(sqlite3.connect(tmp_path / "ledger.db", isolation_level=None)) as other:

        def lock(now_s: float) -> None:
            if now_s >= 1.0 and not other.in_transaction:
                other.execute("BEGIN IMMEDIATE")
            if now_s >= 3.0 and other.in_transaction:
                other.execute("ROLLBACK")

        ran = run_herd(jobs_of(3), max_parallel=1, meanwhile=lock)

    assert ran.states == {JobState.DONE: 3}
    assert ran.count("ledger_waits") == 1
    assert ran.count("starts_paused") == 0
    assert ran.herd.counters.wall_s == pytest.approx(6.0, abs=0.5)
