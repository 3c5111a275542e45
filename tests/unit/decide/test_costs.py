"""Which runs end because they reached a cost limit, and which model a job gets."""

from dataclasses import replace

import pytest

from ramherd.core.model import Brief, JobState, Reason, RunEnd, Said, Settle, Stop, Why
from ramherd.decide.costs import (
    MoneyLeft,
    RunCost,
    after_spending,
    choose_model,
    find_costly_herds,
    stop_costly,
)
from ramherd.decide.run_end import cost_reason
from support.make import HERD, status

OVER = Reason(Why.COST, whose="the herd", cost_usd=2.0, limit_usd=2.0)
SAID = Said(result=False, busy=False, cost_usd=1.0, limit_usd=1.0)


def test_a_herd_is_over_when_it_has_cost_its_limit() -> None:
    """A herd without a limit is never over."""
    over = find_costly_herds({"a": 2.0, "b": 1.9, "c": 9.0}, {"a": 2.0, "b": 2.0})

    assert over == {"a": OVER}


def test_all_of_a_herd_that_is_over_ends() -> None:
    """Its runs and queued jobs are cancelled; other herds continue."""
    runs = [RunCost("r1", HERD, None), RunCost("r2", "other", None)]

    assert stop_costly(runs, [status("q")], {HERD: OVER}) == [
        Stop("r1", RunEnd.CANCELLED, OVER),
        Settle("id-q", JobState.CANCELLED, OVER),
    ]
    assert stop_costly(runs, [status("q")], {}) == []


@pytest.mark.parametrize(
    ("said", "stopped"),
    [
        (SAID, True),
        (replace(SAID, cost_usd=0.9), False),
        (replace(SAID, limit_usd=None), False),
        (replace(SAID, result=True), False),
    ],
)
def test_a_run_that_is_too_costly_fails(said: Said, *, stopped: bool) -> None:
    """A run that already has its result is done, whatever it has cost."""
    actions = stop_costly([RunCost("r", HERD, said)], [], {})

    assert [type(action) for action in actions] == [Stop] * stopped


def test_a_smaller_model_is_for_when_memory_is_short() -> None:
    """With the reason, and only if the job has a smaller model."""
    brief = Brief("claude", "do it", model="opus", fallback_model="haiku")

    model, why = choose_model(brief, short=True)
    assert (model, why and why.numbers) == ("haiku", {"model": "haiku", "usual": "opus"})
    assert choose_model(brief, short=False) == ("opus", None)
    assert choose_model(replace(brief, fallback_model=""), short=True) == ("opus", None)
    assert choose_model(replace(brief, fallback_model="opus"), short=True) == ("opus", None)


def test_a_run_ends_with_what_it_has_cost_and_may() -> None:
    """The reason has cost and limit, to a millionth of a dollar, also for a limit of zero."""
    spent = replace(SAID, cost_usd=1.23456789)
    nothing = replace(SAID, cost_usd=0.0, limit_usd=0.0)

    assert stop_costly([RunCost("r", HERD, spent), RunCost("z", HERD, nothing)], [], {}) == [
        Stop("r", RunEnd.FAILED, cost_reason("the job", 1.234568, 1.0)),
        Stop("z", RunEnd.FAILED, cost_reason("the job", 0.0, 0.0)),
    ]


def test_the_reason_for_a_smaller_model_names_both() -> None:
    """A job without a model uses the default model."""
    brief = Brief("claude", "do it", fallback_model="haiku")

    assert choose_model(brief, short=True) == (
        "haiku",
        Reason(Why.STEP_DOWN, model="haiku", usual="the default model"),
    )


QUEUED = replace(status("a"), state=JobState.QUEUED, interrupted=True)


@pytest.mark.parametrize(
    ("cost", "reply", "ends"),
    [(0.5, 0.4, False), (0.5, 0.5, False), (0.5, 0.6, True), (1.0, 0.0, True), (0.9, 0.0, False)],
)
def test_a_job_goes_on_only_with_the_price_of_a_reply(
    cost: float, reply: float, *, ends: bool
) -> None:
    """Otherwise it would be stopped again before any progress."""
    after = after_spending(QUEUED, MoneyLeft("it", cost, 1.0, reply))
    assert (after.state is JobState.FAILED) is ends
    assert (after == QUEUED) is not ends


def test_the_reason_has_what_is_left_and_what_a_reply_costs() -> None:
    """In dollars."""
    after = after_spending(QUEUED, MoneyLeft("the herd", 0.123456789, 0.2, 0.1234567))
    assert after.reason == Reason(
        Why.COST_LEFT, whose="the herd", cost_usd=0.123457, limit_usd=0.2, reply_usd=0.123457
    )


def test_only_a_job_that_goes_on_in_its_session_is_asked_for_money() -> None:
    """A new attempt begins with a small context; a job that has ended stays ended."""
    spent = MoneyLeft("it", 1.0, 1.0)
    for one in (replace(QUEUED, interrupted=False), replace(QUEUED, state=JobState.DONE)):
        assert after_spending(one, spent) == one
    assert after_spending(QUEUED, None) == QUEUED
    assert MoneyLeft("it", 0.75, 1.0).left_usd == 0.25
    assert MoneyLeft("it", 1.0, 1.0).reply_usd == 0.0
