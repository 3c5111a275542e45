"""Situations that the governor has to handle: no run is killed, no job is lost."""

from functools import cache

import pytest

from ramherd.sim.scenarios import SCENARIOS, Played, play

# The least share of an oracle that knows every trace, has one application and no debt.
LEAST_SHARE = {
    "in-step": 1.0,
    "all-leak": 0.4,
    "outside": 0.8,
    "two-applications": 0.8,
    "too-big": 0.55,
    "nine-tenths": 0.9,
    "thousand": 0.93,
    "no-resume": 0.85,
    "equal-durations": 0.93,
    "small-machine": 0.9,
    "large-machine": 0.85,
    "small-commands": 0.93,
    "understated": 0.93,
    "bursts-some": 0.85,
    "bursts-all": 0.95,
    "heavy-tail": 1.05,
    "two-giants": 0.9,
}
FAILED = {"too-big": 1}


@cache
def played(name: str) -> Played:
    """Once in each process: several tests use the same scenario."""
    return play(name)


@pytest.mark.parametrize("name", SCENARIOS)
def test_all_jobs_that_fit_are_done_without_a_kill(name: str) -> None:
    """The time is close to the best possible."""
    result = played(name).result

    assert result.tally.oom_kills == 0
    assert result.lost == 0
    assert result.tally.failed == FAILED.get(name, 0)
    assert result.oracle_share >= LEAST_SHARE[name]
    assert result.redone_share <= 0.10


def test_debt_is_paid_within_ten_seconds() -> None:
    """Half of the memory is taken at once, and returns later."""
    tally = played("outside").result.tally

    assert 0 < tally.debt_s <= 10
    assert tally.preempted > 0


def test_leaking_agents_are_recycled_and_not_only_preempted() -> None:
    """Each is restarted before it has three times its memory at the start."""
    tally = played("all-leak").result.tally

    assert tally.recycled >= 40


def test_two_equal_applications_end_at_about_the_same_time() -> None:
    """Neither starves the other."""
    one, two = (
        max(job.done_s or 0.0 for job in app.jobs.values())
        for app in played("two-applications").apps
    )

    assert abs(one - two) <= 0.35 * max(one, two)


def test_a_job_of_nine_tenths_does_not_wait_for_all_small_ones() -> None:
    """It is the 51st of 301, and done long before the last."""
    (app,) = played("nine-tenths").apps
    big = app.jobs["job-0050"]

    assert big.done_s is not None
    assert big.done_s < 0.75 * played("nine-tenths").result.tally.makespan_s


def test_a_large_machine_is_filled_within_a_minute() -> None:
    """Starts are spread, but the more runs there are, the more may start."""
    picture = play("large-machine", picture=True).result.tally.picture or []

    assert len(picture[60]) > 800
