"""When a warm process serves another job, and when it is ended."""

import pytest

from ramherd.core.memory import Admit
from ramherd.core.model import Reason, Why
from ramherd.core.policies import ReusePolicy
from ramherd.decide.warm import (
    RenewalState,
    WarmDemand,
    Worn,
    choose_reuse,
    why_retired,
    why_retired_after_job,
)

POLICY = ReusePolicy()
FRESH = Worn(jobs=2, most_jobs=3, used_bytes=7, age_s=1.0)


def cause(
    worn: Worn, *, wanted: bool = False, needed: bool = True, policy: ReusePolicy = POLICY
) -> object:
    found = why_retired(worn, policy, wanted=wanted, needed=needed)
    return None if found is None else found.numbers["cause"]


def worn(**changes: object) -> Worn:
    values = {name: getattr(FRESH, name) for name in Worn.__slots__}
    return Worn(**{**values, **changes})


def test_a_process_serves_until_one_of_its_limits() -> None:
    """At its number of jobs; above its size, its age and its idle time."""
    assert why_retired(FRESH, POLICY, wanted=False, needed=True) is None
    assert cause(worn(jobs=3)) == "job_limit"
    assert cause(worn(company=1)) == "left_processes"
    for name, value, what in (
        ("used_bytes", POLICY.most_bytes, "size"),
        ("age_s", POLICY.most_age_s, "age"),
        ("idle_s", POLICY.most_idle_s, "idle"),
    ):
        assert cause(worn(**{name: value})) is None
        assert cause(worn(**{name: value + 1})) == what


def test_a_process_goes_for_memory_and_when_no_job_may_come() -> None:
    """Even if it could serve more jobs."""
    assert cause(FRESH, wanted=True) == "memory_wanted"
    assert cause(FRESH, needed=False) == "not_needed"
    assert cause(worn(jobs=3), wanted=True) == "job_limit"


def test_its_end_has_the_numbers() -> None:
    """The number of jobs that it served, and its memory."""
    assert why_retired(FRESH, POLICY, wanted=True, needed=True) == Reason(
        Why.RETIRED, cause="memory_wanted", jobs=2, used_bytes=7
    )


@pytest.mark.parametrize(
    ("failed", "kills", "renewal", "cause"),
    [
        (False, 0, RenewalState.DONE, None),
        (False, 0, RenewalState.ASKED, None),
        (True, 1, RenewalState.FAILED, "failure"),
        (False, 1, RenewalState.FAILED, "kernel_kill"),
        (False, 0, RenewalState.FAILED, "same_session"),
    ],
)
def test_after_a_job_that_went_wrong_it_serves_no_other(
    failed: bool, kills: int, renewal: RenewalState, cause: str | None
) -> None:
    """The first cause is named."""
    found = why_retired_after_job(FRESH, renewal, failed=failed, kernel_kills=kills)

    expected = Reason(Why.RETIRED, cause=cause, jobs=2, used_bytes=7) if cause else None
    assert found == expected


def test_the_first_in_line_starts_in_a_process_of_its_kind() -> None:
    """The process keeps its grant; while runs are held no job starts."""

    def reuse(demand: WarmDemand) -> Admit | None:
        return choose_reuse(demand, "key", 50, jobs=2, most_jobs=9)

    assert reuse(WarmDemand("j", "key")) == Admit("j", 50, Reason(Why.WARM, jobs=3, most_jobs=9))
    assert reuse(WarmDemand("j", "other")) is None
    assert reuse(WarmDemand("j", "key", held=True)) is None
    assert reuse(WarmDemand(None, "key")) is None


def test_memory_is_wanted_of_a_process_that_the_first_in_line_cannot_use() -> None:
    """While runs are held, every process has to give its memory back."""
    assert not WarmDemand("j", "key").is_memory("other")
    assert WarmDemand("j", "key", short=True).is_memory("other")
    assert not WarmDemand("j", "key", short=True).is_memory("key")
    assert WarmDemand("j", "key", held=True).is_memory("key")


def test_a_process_serves_the_first_in_line_only() -> None:
    """If there is one of its kind, and no run is held."""
    assert WarmDemand("j", "key").is_served_by("key")
    assert not WarmDemand("j", "key").is_served_by("other")
    assert not WarmDemand(None, "key").is_served_by("key")
    assert not WarmDemand("j", "key", held=True).is_served_by("key")
