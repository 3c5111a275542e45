"""Which runs end because they reached a cost limit, and which model a job gets."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ramherd.core.model import (
    Brief,
    JobState,
    JobStatus,
    Reason,
    RunEnd,
    Said,
    Settle,
    Stop,
    Why,
)
from ramherd.core.record import replace
from ramherd.decide.run_end import cost_reason


class RunCost(NamedTuple):
    """A live run. `said` is the report of its agent, if it has one."""

    run: str
    herd: str
    said: Said | None


class MoneyLeft(NamedTuple):
    """The cost and the limit of a job or its herd. One more reply of its agent costs `reply_usd`,
    which is 0 if no price is known.
    """

    whose: str
    cost_usd: float
    limit_usd: float
    reply_usd: float = 0.0

    @property
    def left_usd(self) -> float:
        return self.limit_usd - self.cost_usd

    @property
    def is_spent(self) -> bool:
        return self.left_usd <= 0 or self.left_usd < self.reply_usd


def after_spending(status: JobStatus, money: MoneyLeft | None) -> JobStatus:
    """A job that was to resume its session ends if there is no money for one more reply."""
    if money is None or not money.is_spent:
        return status
    if status.state is not JobState.QUEUED or not status.interrupted:
        return status
    return replace(status, state=JobState.FAILED, reason=explain_left(money))


def explain_left(money: MoneyLeft) -> Reason:
    return Reason(
        Why.COST_LEFT, whose=money.whose, cost_usd=round(money.cost_usd, 6),
        limit_usd=money.limit_usd, reply_usd=round(money.reply_usd, 6),
    )  # fmt: skip


def find_costly_herds(
    costs_usd: Mapping[str, float], limits_usd: Mapping[str, float]
) -> dict[str, Reason]:
    """The herds that have reached their cost limit."""
    return {
        herd: cost_reason("the herd", cost, limits_usd[herd])
        for herd, cost in costs_usd.items()
        if herd in limits_usd and cost >= limits_usd[herd]
    }


def stop_costly(
    runs: Iterable[RunCost], queue: Iterable[JobStatus], over: Mapping[str, Reason]
) -> list[Stop | Settle]:
    """A run over its cost limit ends, and so do all jobs of a herd that is `over` its limit. A run
    whose agent has reported its result is done, whatever it has cost.
    """
    live = [run for run in runs if run.said is None or not run.said.through]
    return [
        *(Stop(run.run, RunEnd.CANCELLED, over[run.herd]) for run in live if run.herd in over),
        *(
            Settle(status.job.id, JobState.CANCELLED, over[status.job.herd])
            for status in queue
            if status.job.herd in over
        ),
        *(
            Stop(
                run.run,
                RunEnd.FAILED,
                cost_reason("the job", said.cost_usd, said.limit_usd or 0.0),
            )
            for run in live
            if run.herd not in over
            if (said := run.said) is not None and said.is_too_costly and not said.result
        ),
    ]


def choose_model(brief: Brief, *, short: bool) -> tuple[str, Reason | None]:
    """While memory is short, the job's smaller model, with the reason."""
    if not short or not brief.fallback_model or brief.fallback_model == brief.model:
        return brief.model, None
    usual = brief.model or "the default model"
    return brief.fallback_model, Reason(Why.STEP_DOWN, model=brief.fallback_model, usual=usual)


def explain_fallback(brief: Brief, model: str) -> Reason:
    """Why a job uses another model while its own model is at a usage limit."""
    return Reason(Why.LIMIT_FALLBACK, model=model, usual=brief.model or "the default model")
