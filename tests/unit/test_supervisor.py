"""The loop, on a machine that is made up: what it does over time."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ramherd.model import Job, JobState, Why
from ramherd.queue.store import Store
from ramherd.units import GIB, MIB
from unit.fakes import FakeFleet, FakeHerd, FakeShow, fake_machine, make_herd
from unit.make import job, policy


@dataclass
class Ran:
    herd: FakeHerd
    fleet: FakeFleet
    show: FakeShow

    @property
    def states(self) -> Counter[JobState]:
        return +self.herd.roster.counts

    def count(self, kind: str) -> int:
        return sum(one == kind for one, _name in self.show.events)


Run = Callable[..., Ran]


@pytest.fixture
def run_herd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    """Runs these jobs to their end; runs last two seconds."""
    monkeypatch.setattr("ramherd.supervisor.read_machine", fake_machine)
    monkeypatch.setattr("ramherd.supervisor.read_engine_clients", dict)
    with closing(Store(tmp_path / "ramherd.db")) as store:

        def run(
            jobs: list[Job],
            uses: Callable[[int], int] = lambda _n: MIB,
            interrupt_at_s: tuple[float, ...] = (),
            refuse_until_s: float = 0.0,
            **rules: Any,
        ) -> Ran:
            herd, fleet, show = make_herd(store, tmp_path / "runs", jobs, policy(**rules), uses)
            herd.interrupt_at_s, fleet.refuse_until_s = interrupt_at_s, refuse_until_s
            herd.run()
            return Ran(herd, fleet, show)

        yield run


def jobs_of(number: int, **changes: Any) -> list[Job]:
    return [job(f"j{n}", seq=n, **{"memory": 10 * MIB, **changes}) for n in range(1, number + 1)]


def test_a_herd_comes_to_its_end(run_herd: Run) -> None:
    """Every job is done by one run, and nothing is left."""
    ran = run_herd(jobs_of(5))

    assert ran.states == {JobState.DONE: 5}
    assert not any(pen.alive for pen in ran.fleet.pens.values())
    assert ran.herd.tally.wall_s == pytest.approx(2.0, abs=0.5)


def test_no_more_run_at_a_time_than_allowed(run_herd: Run) -> None:
    """Two at a time, two seconds each: five take six seconds."""
    ran = run_herd(jobs_of(5), max_parallel=2)

    assert ran.states == {JobState.DONE: 5}
    assert ran.herd.tally.wall_s == pytest.approx(6.0, abs=0.5)


def test_why_a_start_waits_is_said_once(run_herd: Run) -> None:
    """Not each time that the numbers move."""
    ran = run_herd(jobs_of(3, memory=20 * GIB))

    assert ran.states == {JobState.DONE: 3}
    assert ran.count("start_waits") == 2


def test_an_interrupted_herd_ends_what_runs_and_starts_nothing(run_herd: Run) -> None:
    """Everything is cancelled, whoever waits for whom."""
    jobs = [*jobs_of(3), job("z", seq=9, after=("j1",))]

    ran = run_herd(jobs, interrupt_at_s=(1.0,), max_parallel=1)

    assert ran.states == {JobState.CANCELLED: 4}
    assert len(ran.fleet.pens) == 1
    assert ran.herd.tally.wall_s < 1.5


def test_no_wait_gives_up_at_once(run_herd: Run) -> None:
    """The budget is 28 GiB and nothing runs: the first job fails, the rest is cancelled."""
    ran = run_herd(jobs_of(3, memory=30 * GIB), no_wait=True)

    assert ran.states == {JobState.FAILED: 1, JobState.CANCELLED: 2}
    assert ran.herd.tally.no_room
    assert ran.fleet.pens == {}
    first = next(iter(ran.herd.roster))
    assert first.reason.why is Why.NO_WAIT


# Three of these are 600 MiB, above the mark of 576: two are not. What comes back stays small.
THREE_TOO_MANY = {"budget_cap_bytes": 512 * MIB, "uses": lambda n: 200 * MIB if n < 4 else MIB}


def test_only_as_many_are_put_back_as_it_takes(run_herd: Run) -> None:
    """One goes, the fleet is looked at again, and that was enough."""
    ran = run_herd(jobs_of(3), **THREE_TOO_MANY)

    assert ran.states == {JobState.DONE: 3}
    assert ran.herd.tally.preempted == 1


def test_the_oldest_run_is_never_put_back(run_herd: Run) -> None:
    """However tight it gets, the first job is done by its first run."""
    ran = run_herd(jobs_of(3), **THREE_TOO_MANY)

    first = ran.herd.tally.jobs["id-j1"]
    assert (first.runs, ran.herd.roster["id-j1"].state) == (1, JobState.DONE)


def test_a_machine_without_memory_for_a_moment_fails_nobody(run_herd: Run) -> None:
    """For a second no cgroup can be made: the jobs wait, and are not lost three times in a row."""
    ran = run_herd(jobs_of(2), refuse_until_s=1.0)

    assert ran.states == {JobState.DONE: 2}
