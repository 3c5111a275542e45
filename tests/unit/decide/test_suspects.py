"""Which job makes the keeper die: with single values, and with whole herds and many deaths."""

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ramherd.core.model import JobState, JobStatus, Reason, RunEnd, Suspicion, Why
from ramherd.core.policies import Policy
from ramherd.decide.job_state import after_run
from ramherd.decide.suspects import (
    Trial,
    after_death,
    after_other_death,
    after_survival,
    choose_trial,
    is_survivor,
    is_suspect,
)
from support.make import job, policy, status
from support.reached import Reached

RULES = Policy()
# Sums of times are not exact.
BIT_S = 1e-6


def suspected(name: str, *values: float, state: JobState = JobState.QUEUED) -> JobStatus:
    return status(job(name), state, suspicion=Suspicion(*values))  # type: ignore[arg-type]


def death(beside: int = 0, lived_s: float = 2.0, why: Why = Why.KEEPER_LOST) -> Reason:
    return Reason(why, beside=beside, lived_s=lived_s)


@pytest.mark.parametrize("why", [Why.KEEPER_LOST, Why.SUPERVISOR_LOST])
@pytest.mark.parametrize("times", [0, 1])
def test_a_death_costs_neither_a_retry_nor_time(why: Why, times: int) -> None:
    """The job is queued at once, keeps its place, and its next run resumes."""
    before = status(job(retries=0), JobState.HELD, lost=7, failures=1, queued_s=3.0)
    before = replace(before, suspicion=Suspicion(times, lived_s=5.0))
    reason = death(why=why)

    found = after_run(before, RunEnd.LOST, reason, at_s=100.0, policy=policy())

    assert found == replace(
        before, state=JobState.QUEUED, reason=reason, interrupted=True,
        suspicion=Suspicion(times + 1, lived_s=5.0),
    )  # fmt: skip


@pytest.mark.parametrize("why", [Why.KEEPER_LOST, Why.SUPERVISOR_LOST])
def test_a_death_that_says_nothing_about_jobs_counts_for_nobody(why: Why) -> None:
    """A reboot, or a keeper that did not answer."""
    before = suspected("a", 9, 2, state=JobState.RUNNING)

    found = after_death(before, Reason(why), RULES)

    assert found == replace(
        before, state=JobState.QUEUED, reason=Reason(why), interrupted=True
    )  # fmt: skip


def test_the_third_death_makes_a_suspect() -> None:
    """With the greatest age of its runs, and no death alone: it was not on trial."""
    found = after_death(suspected("a", 2, 0, 1.0), death(lived_s=4.0), RULES)

    assert (found.state, found.suspicion) == (JobState.QUEUED, Suspicion(3, 0, 4.0))
    assert found.reason == Reason(Why.SUSPECTED, deaths=3)
    assert (is_suspect(Suspicion(2), RULES), is_suspect(Suspicion(3), RULES)) == (False, True)


@pytest.mark.parametrize(("beside", "alone"), [(0, 2), (1, 1)])
def test_only_deaths_with_nothing_beside_a_suspect_count_as_alone(beside: int, alone: int) -> None:
    """The other job may have been the cause."""
    found = after_death(suspected("a", 4, 1, 3.0), death(beside), RULES)

    assert found.suspicion == Suspicion(5, alone, 3.0)
    assert found.state is JobState.QUEUED


def test_the_fourth_death_alone_is_the_end() -> None:
    """The reason has both numbers."""
    found = after_death(suspected("a", 6, 3), death(), RULES)

    assert found.state is JobState.FAILED
    assert found.reason == Reason(Why.ENDS_KEEPER, deaths=7, alone=4)


def test_a_death_without_a_suspect_undoes_its_deaths_alone() -> None:
    """Something else kills keepers too. The job stays a suspect."""
    assert after_other_death(suspected("a", 5, 2, 3.0)) == suspected("a", 5, 0, 3.0)


def test_a_survivor_is_cleared_and_its_age_is_remembered() -> None:
    """A job that is suspected again is tried for as long as its longest run."""
    assert after_survival(suspected("a", 5, 2, 3.0)) == suspected("a", 0, 0, 3.0)


@pytest.mark.parametrize(("ran_s", "survives"), [(11.9, False), (12.0, True)])
def test_a_survivor_has_lived_twice_as_long_and_two_seconds(
    ran_s: float, *, survives: bool
) -> None:
    """A start under load takes a while, and runs differ in length."""
    assert is_survivor(Suspicion(1, 0, 5.0), ran_s, RULES) is survives


def test_a_job_that_saw_no_death_is_no_survivor() -> None:
    """There is nothing to clear."""
    assert not is_survivor(Suspicion(0, 0, 5.0), 1e9, RULES)


@pytest.mark.parametrize("end", list(RunEnd))
def test_a_run_that_ends_by_itself_clears_its_job(end: RunEnd) -> None:
    """A stopped run proves nothing: it might have killed the keeper a moment later."""
    before = replace(suspected("a", 3, 1, 5.0, state=JobState.RUNNING), lost=0)

    found = after_run(before, end, Reason(Why.EXITED, code=1), at_s=1.0, policy=policy())

    stopped = (RunEnd.PREEMPTED, RunEnd.RECYCLED, RunEnd.LOST, RunEnd.CANCELLED)
    assert found.suspicion == (before.suspicion if end in stopped else Suspicion())


def test_without_suspects_there_is_no_trial() -> None:
    """Two deaths are not enough."""
    assert choose_trial([suspected("a", 2), suspected("b")], 0.0, RULES) is None


@pytest.mark.parametrize(
    ("deaths", "tried"),
    [
        ([3], "a"),
        ([3, 3], "a"),
        ([3, 3, 3], "a"),
        ([3, 3, 3, 3], "ab"),
        ([3, 4, 3, 4], "b"),
        ([3, 4, 4, 4, 4, 2], "bc"),
        ([0, 0, 5], "c"),
    ],
)
def test_half_of_those_with_most_deaths_are_tried(deaths: Sequence[int], tried: str) -> None:
    """In queue order, and the reason has the numbers."""
    names = "abcdef"[: len(deaths)]
    statuses = [suspected(name, number) for name, number in zip(names, deaths, strict=True)]

    trial = choose_trial(statuses, 0.0, RULES)

    suspects = sum(number >= 3 for number in deaths)
    assert trial == Trial(
        tuple(f"id-{name}" for name in tried),
        Reason(Why.SUSPECTS_FIRST, deaths=max(deaths), suspects=suspects, tried=len(tried)),
    )


@pytest.mark.parametrize(("lived_s", "wait_s"), [(0.2, 5.0), (2.0, 10.0), (1e6, 1800.0)])
def test_the_keeper_has_to_live_without_a_suspect_between_two_trials(
    lived_s: float, wait_s: float
) -> None:
    """Five times as long as the suspect lived, within bounds; nothing starts meanwhile."""
    statuses = [suspected("a", 4, 1, lived_s), suspected("b", 3)]

    waits = choose_trial(statuses, wait_s - 0.1, RULES)
    goes = choose_trial(statuses, wait_s, RULES)

    assert waits == Trial((), Reason(Why.KEEPER_ALONE, name="a", wait_s=wait_s))
    assert goes is not None
    assert goes.jobs == ("id-a",)


def test_a_suspect_on_trial_goes_on() -> None:
    """The wait was before its start."""
    trial = choose_trial([suspected("a", 4, 1, state=JobState.RUNNING)], 0.0, RULES)

    assert trial is not None
    assert trial.jobs == ("id-a",)


def test_several_suspects_are_tried_without_a_wait() -> None:
    """They are not alone, so their deaths prove nothing."""
    trial = choose_trial([suspected(name, 4, 1) for name in "abcd"], 0.0, RULES)

    assert trial is not None
    assert trial.jobs == ("id-a", "id-b")


class Herd:
    """Jobs on a machine with room for some of them, a keeper that guilty jobs kill at a certain
    age, and kills of the keeper from outside.
    """

    def __init__(
        self, lasts_s: Sequence[float], room: int, kills_at_s: dict[int, float],
        next_kill: Callable[[float], float] = lambda _now: math.inf,
    ) -> None:  # fmt: skip
        self.lasts_s, self.room, self.kills_at_s = lasts_s, room, kills_at_s
        self.next_kill = next_kill
        self.jobs = {f"id-{at}": status(job(str(at), seq=at)) for at in range(len(lasts_s))}
        self.started: dict[str, float] = {}
        self.now_s = self.died_s = 0.0
        self.kill_s = next_kill(0.0)
        self.deaths = 0

    def run(self, most_deaths: int) -> None:
        while self.deaths <= most_deaths:
            queued = [one for one in self.jobs.values() if one.state is JobState.QUEUED]
            if not queued and not self.started:
                return
            self.advance(self.start(queued))

    def start(self, queued: list[JobStatus]) -> float:
        """The time of the next possible start."""
        live = [self.jobs[name] for name in self.started]
        trial = choose_trial([*live, *queued], self.now_s - self.died_s + BIT_S, RULES)
        may = [one for one in queued if trial is None or one.job.id in trial.jobs]
        for one in may[: self.room - len(self.started)]:
            self.jobs[one.job.id] = replace(one, state=JobState.RUNNING)
            self.started[one.job.id] = self.now_s
        waits = trial is not None and trial.reason.why is Why.KEEPER_ALONE
        return self.died_s + float(trial.reason.numbers["wait_s"]) if waits and trial else math.inf

    def advance(self, wait_s: float) -> None:
        ends = {name: at_s + self.lasts_s[int(name[3:])] for name, at_s in self.started.items()}
        kills = [
            at_s + self.kills_at_s.get(int(name[3:]), math.inf)
            for name, at_s in self.started.items()
        ]
        clears = {
            name: at_s + 2 * self.jobs[name].suspicion.lived_s + 2.0
            for name, at_s in self.started.items()
            if self.jobs[name].suspicion.deaths
        }
        death_s = min([self.kill_s, *kills])
        self.now_s = min([death_s, wait_s, *ends.values(), *clears.values()])
        for name in [name for name, at_s in clears.items() if at_s <= self.now_s]:
            ran_s = self.now_s - self.started[name] + BIT_S
            assert is_survivor(self.jobs[name].suspicion, ran_s, RULES)
            self.jobs[name] = after_survival(self.jobs[name])
        if death_s <= self.now_s:
            self.die()
        for name in [name for name in self.started if ends[name] <= self.now_s]:
            self.jobs[name] = replace(self.jobs[name], state=JobState.DONE)
            del self.started[name]

    def die(self) -> None:
        self.deaths += 1
        self.died_s = self.now_s
        self.kill_s = self.next_kill(self.now_s) if self.kill_s <= self.now_s else self.kill_s
        for name, one in self.jobs.items():
            if name in self.started:
                lost = death(len(self.started) - 1, self.now_s - self.started[name])
                self.jobs[name] = after_run(one, RunEnd.LOST, lost, at_s=0.0, policy=RULES)
            elif one.state is JobState.QUEUED:
                self.jobs[name] = after_other_death(one)
        self.started.clear()

    def names(self, state: JobState) -> set[int]:
        return {int(name[3:]) for name, one in self.jobs.items() if one.state is state}


LASTS = st.lists(st.floats(0.1, 600.0), min_size=1, max_size=40)


@settings(deadline=None)
@given(lasts_s=LASTS, room=st.integers(1, 50), data=st.data())
def test_guilty_jobs_fail_after_a_bounded_number_of_deaths_and_all_others_are_done(
    lasts_s: list[float], room: int, data: st.DataObject, reached: Reached
) -> None:
    """For each: three deaths, the halving of the jobs that ran together, and four deaths alone."""
    guilty = data.draw(st.sets(st.sampled_from(range(len(lasts_s))), max_size=4))
    kills = {at: lasts_s[at] * data.draw(st.floats(0.01, 0.9)) for at in guilty}
    herd = Herd(lasts_s, room, kills)
    halvings = math.ceil(math.log2(min(room, len(lasts_s)))) + 1
    most = len(guilty) * (RULES.suspect_deaths + halvings + RULES.alone_deaths)

    herd.run(most)

    reached(len(guilty) > 1)
    assert herd.names(JobState.FAILED) == guilty
    assert herd.names(JobState.DONE) == set(range(len(lasts_s))) - guilty
    assert herd.deaths <= most


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("gap_s", [0.5, 1.5, 5.0, 20.0])
def test_a_keeper_that_is_killed_from_outside_fails_no_job(gap_s: float, seed: int) -> None:
    """At random times, hundreds of times, and every job is done in the end."""
    chance = random.Random(seed)
    lasts_s = [chance.uniform(0.05, 1.5) for _job in range(30)]
    herd = Herd(lasts_s, 10, {}, lambda now_s: now_s + chance.expovariate(1 / gap_s))

    herd.run(5000)

    assert herd.names(JobState.DONE) == set(range(30))
