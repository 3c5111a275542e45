"""Actions for the requests of a user, and for the end of the service."""

from ramherd.core.model import JobState, Reason, RunEnd, Settle, Stop, Why
from ramherd.decide.job_requests import (
    choose_settle,
    choose_stop,
    explain_retry,
    stop_for_service,
)
from support.make import status


def asked(verb: str) -> Reason:
    """The reason names the user's command."""
    return Reason(Why.ASKED, by=f"ramherd {verb}")


def test_a_job_that_runs_is_cancelled_or_put_back() -> None:
    """A restarted run is resumed."""
    assert choose_stop("r", cancel=True) == Stop("r", RunEnd.CANCELLED, asked("cancel"))
    assert choose_stop("r", cancel=False) == Stop("r", RunEnd.RECYCLED, asked("recycle"))


def test_a_job_that_does_not_run_can_only_be_cancelled() -> None:
    """A job that has ended cannot be cancelled."""
    cancelled = Settle("id-a", JobState.CANCELLED, asked("cancel"))

    assert choose_settle(status("a"), cancel=True) == cancelled
    assert choose_settle(status("a"), cancel=False) is None
    assert choose_settle(status("a", JobState.DONE), cancel=True) is None


def test_a_retry_names_what_is_allowed_now() -> None:
    """Without allowed tools, the reason is the user's request."""
    allowed = explain_retry(["Bash(npm test)", "edit"])

    assert allowed == Reason(Why.ALLOWED, rules="Bash(npm test), edit")
    assert explain_retry([]) == asked("retry")


def test_what_is_interrupted_can_go_on_later() -> None:
    """The reason of its end shows that."""
    why = Why.INTERRUPTED

    assert choose_stop("r", cancel=True, why=why) == Stop("r", RunEnd.CANCELLED, Reason(why))
    settle = choose_settle(status("a"), cancel=True, why=why)
    assert settle == Settle("id-a", JobState.CANCELLED, Reason(why))


def test_runs_of_a_service_that_ends_are_resumed_by_the_next() -> None:
    """The runs are stopped, not cancelled."""
    stops = stop_for_service(["r1", "r2"])

    assert [(stop.run, stop.end) for stop in stops] == [
        ("r1", RunEnd.RECYCLED), ("r2", RunEnd.RECYCLED),
    ]  # fmt: skip
    assert {stop.reason.why for stop in stops} == {Why.SERVICE_STOPS}
