"""A keeper that dies or hangs under the loop, on a machine that is made up."""

import errno
from collections.abc import Callable
from itertools import pairwise
from typing import cast

import pytest

from ramherd.act.keeper_client import KeeperClient
from ramherd.core.model import JobState, Reason, Suspicion, Why
from support.fakes import FakeLink
from support.herds import Ran, Run, jobs_of


class Fate:
    """What becomes of the keeper, each time that the loop has taken a step."""

    def __init__(self) -> None:
        self.ran: Ran | None = None

    def begin(self, ran: Ran) -> None:
        self.ran = ran

    @property
    def link(self) -> FakeLink:
        assert self.ran is not None
        return cast("FakeLink", self.ran.herd.executor.keeper)


class Hang(Fate):
    def __init__(self, from_s: float, until_s: float) -> None:
        super().__init__()
        self.from_s, self.until_s = from_s, until_s
        self.first: FakeLink | None = None

    def at(self, now_s: float) -> None:
        self.first = self.first or self.link
        self.first.is_stopped = self.from_s <= now_s < self.until_s


class Killer(Fate):
    """The keeper dies whenever this job has run for a second."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name
        self.deaths = 0

    def at(self, now_s: float) -> None:
        assert self.ran is not None
        for run in self.ran.herd.executor.runs.values():
            is_old = now_s - run.started_s >= 1.0 and not run.is_ending
            if run.job.name == self.name and is_old and not self.link.is_dead:
                self.link.is_dead = True
                self.deaths += 1


def test_a_job_that_ends_the_keeper_fails_and_all_others_are_done(run_herd: Run) -> None:
    """The same loop as on real processes, in made-up time."""
    killer = Killer("j3")

    ran = run_herd(jobs_of(8), begin=killer.begin, meanwhile=killer.at)

    assert ran.states == {JobState.DONE: 7, JobState.FAILED: 1}
    guilty = ran.herd.queue["id-j3"]
    assert guilty.reason == Reason(Why.ENDS_KEEPER, deaths=killer.deaths, alone=4)
    assert killer.deaths <= 11
    assert all(one.lost == 0 and one.failures == 0 for one in ran.herd.queue)


def test_a_keeper_that_hangs_for_a_while_costs_nothing(run_herd: Run) -> None:
    """Starts are paused, the reason is emitted once, and no run is repeated."""
    hang = Hang(0.5, 20.0)

    ran = run_herd(jobs_of(4), max_parallel=2, begin=hang.begin, meanwhile=hang.at)

    assert ran.states == {JobState.DONE: 4}
    assert [ran.count(kind) for kind in ("run_started", "keeper_lost")] == [4, 0]
    paused = [one.reason.why for one in ran.show.full if one.kind == "starts_paused"]
    assert paused == [Why.KEEPER_HANGS]
    assert ran.count("starts_resumed") == 1


def test_a_keeper_that_does_not_come_back_is_replaced(run_herd: Run) -> None:
    """After a minute; its jobs are resumed, and none of them is suspected."""
    hang = Hang(0.5, float("inf"))

    ran = run_herd(jobs_of(2), lasts_s=100.0, begin=hang.begin, meanwhile=hang.at)

    assert ran.states == {JobState.DONE: 2}
    lost = [one.reason for one in ran.show.full if one.kind == "keeper_lost"]
    assert lost == [Reason(Why.KEEPER_REPLACED, silent_s=60.0)]
    assert [one.attempts for one in ran.herd.queue] == [2, 2]
    assert {one.suspicion for one in ran.herd.queue} == {Suspicion()}
    assert ran.herd.counters.wall_s == pytest.approx(162.0, abs=3.0)


def test_an_interrupt_ends_a_herd_whose_keeper_hangs(run_herd: Run) -> None:
    """Runs are over when their pens are empty."""
    hang = Hang(0.5, float("inf"))

    ran = run_herd(
        jobs_of(3), lasts_s=100.0, interrupt_at_s=(1.0,), begin=hang.begin, meanwhile=hang.at
    )

    assert ran.states == {JobState.CANCELLED: 3}
    assert ran.count("keeper_lost") == 0
    assert ran.herd.counters.wall_s < 6.0


class BrokenStart(Fate):
    """No keeper can be started until then. `dies`: it starts, and ends before its first answer;
    otherwise there is not even a process.
    """

    def __init__(self, until_s: float, *, dies: bool) -> None:
        super().__init__()
        self.until_s, self.dies = until_s, dies
        self.tries_s: list[float] = []

    def begin(self, ran: Ran) -> None:
        super().begin(ran)
        executor = ran.herd.executor
        start = executor._start_keeper
        executor._start_keeper = lambda: self.start(start)
        self.link.is_dead, self.link.has_answered = True, False

    def start(self, start: Callable[[], KeeperClient]) -> KeeperClient:
        assert self.ran is not None
        self.tries_s.append(self.ran.herd.at_s)
        is_broken = self.ran.herd.at_s < self.until_s
        if is_broken and not self.dies:
            raise OSError(errno.ENOMEM, "Cannot allocate memory")
        link = cast("FakeLink", start())
        link.is_dead, link.has_answered = is_broken, not is_broken
        return cast("KeeperClient", link)


@pytest.mark.parametrize("dies", [True, False])
def test_a_keeper_that_cannot_be_started_is_tried_again_and_costs_nothing(
    run_herd: Run, *, dies: bool
) -> None:
    """Further and further apart; one event; no job fails, is suspected or resumed."""
    broken = BrokenStart(60.0, dies=dies)

    ran = run_herd(jobs_of(3), begin=broken.begin)

    assert ran.states == {JobState.DONE: 3}
    gaps_s = [after - before for before, after in pairwise([0.0, *broken.tries_s])]
    assert gaps_s == pytest.approx([0.5, 1, 2, 4, 8, 15, 15, 15], abs=0.6 + dies * 0.5)
    assert [ran.count(kind) for kind in ("starts_paused", "starts_resumed")] == [1, 1]
    assert ran.count("keeper_lost") == 0
    paused = [one.reason for one in ran.show.full if one.kind == "starts_paused"]
    assert paused == [Reason(Why.KEEPER_FAILS, what="MemoryError")]
    assert {(one.failures, one.lost, one.interrupted) for one in ran.herd.queue} == {(0, 0, False)}
    assert {one.suspicion for one in ran.herd.queue} == {Suspicion()}
    assert ran.herd.steps < 400


def test_an_interrupt_ends_a_herd_without_a_keeper(run_herd: Run) -> None:
    """At once: nothing runs."""
    broken = BrokenStart(float("inf"), dies=True)

    ran = run_herd(jobs_of(3), interrupt_at_s=(5.0,), begin=broken.begin)

    assert ran.states == {JobState.CANCELLED: 3}
    assert ran.herd.counters.wall_s == pytest.approx(5.0, abs=0.6)


def test_a_run_that_a_keeper_starts_too_late_is_ended(
    run_herd: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was ended while the keeper did not answer; its pen kept it from nothing."""
    killed: list[int] = []
    monkeypatch.setattr(
        "ramherd.act.executor.signal_processes",
        lambda procs, _number: killed.extend(proc.pid for proc in procs),
    )

    def begin(ran: Ran) -> None:
        link = cast("FakeLink", ran.herd.executor.keeper)
        link.tell("started", "a run that is over", pid=77, start_ticks=1)

    run_herd(jobs_of(1), begin=begin)

    assert killed == [77]


class Sleeper(Killer):
    """The machine slept for 100 s in each run."""

    def at(self, now_s: float) -> None:
        assert self.ran is not None
        for run in self.ran.herd.executor.runs.values():
            if not run.gaps_s and not run.is_ending:
                run.started_s -= 100.0
                run.skip(100.0)
        super().at(now_s - 100.0)


def test_the_time_that_a_machine_slept_shows_nothing_about_a_job(run_herd: Run) -> None:
    """A suspect is neither cleared by it, nor does its next trial wait longer."""
    sleeper = Sleeper("j1")

    ran = run_herd(jobs_of(2), begin=sleeper.begin, meanwhile=sleeper.at)

    assert ran.states == {JobState.DONE: 1, JobState.FAILED: 1}
    ends = [one.reason for one in ran.show.full if one.reason.why is Why.KEEPER_LOST]
    assert max(float(reason.numbers.get("lived_s", 0.0)) for reason in ends) < 10.0
