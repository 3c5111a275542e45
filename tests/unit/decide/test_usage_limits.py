"""Usage limits: which jobs wait, until when, and which job tries again."""

import pytest

from ramherd.core.agent_task import FAIL, FALLBACK, NO_ACCESS, THIS_MODEL, ApiRefusal, Brief
from ramherd.core.model import Reason, Why
from ramherd.core.record import replace
from ramherd.decide.usage_limits import (
    LONGEST_S,
    Quota,
    UsageWindow,
    after_refusal,
    choose_quota,
    end_denial,
    explain_near,
    explain_served,
    explain_window,
    find_closed,
    find_probed,
    parse_quota,
    quota_of,
    render_quota,
    with_probe,
)
from support.make import job

NOW = 1000.0
QUOTA = Quota("claude", "a1", "")
LIMIT = ApiRefusal("5-hour limit", "five_hour", NOW + 300)
UNTIMED = ApiRefusal("usage limit")
CLOSED = UsageWindow("claude", "a1", "", "five_hour", "5-hour limit", NOW + 300)


def refused(before: UsageWindow | None, refusal: ApiRefusal, run: str = "r") -> UsageWindow:
    return after_refusal(before, QUOTA, refusal, NOW, run)


def test_a_window_is_closed_until_its_reset() -> None:
    """For every job of its account, whatever its model, and for no other account."""
    assert refused(None, LIMIT) == CLOSED
    for quota, closed in [
        (QUOTA, CLOSED),
        (Quota("claude", "a1", "opus"), CLOSED),
        (Quota("claude", "b2", ""), None),
        (Quota("codex", "a1", ""), None),
    ]:
        assert find_closed([CLOSED], quota, NOW) == closed
    assert find_closed([CLOSED], QUOTA, NOW + 299.9) == CLOSED
    assert find_closed([CLOSED], QUOTA, NOW + 300) is None


def test_after_the_reset_one_job_asks_first() -> None:
    """While a probe runs, the others wait."""
    assert find_probed([CLOSED], QUOTA, NOW + 299.9) == []
    assert find_probed([CLOSED], QUOTA, NOW + 300) == [CLOSED]
    assert find_probed([CLOSED], Quota("claude", "b2", ""), NOW + 300) == []

    probed = with_probe(CLOSED, "p")
    assert find_probed([probed], QUOTA, NOW + 300) == []
    assert find_closed([probed], QUOTA, NOW + 300) == probed


def test_of_several_windows_the_longest_counts() -> None:
    week = replace(CLOSED, window="seven_day", until_s=NOW + 9000, model="opus", is_default=True)

    assert find_closed([CLOSED, week, CLOSED], QUOTA, NOW) == week


@pytest.mark.parametrize(
    ("model", "refusal_model", "scope"),
    [
        ("", "opus", ("opus", True)),
        ("claude-opus-4-6", "opus", ("opus", False)),
        ("", THIS_MODEL, ("", True)),
        ("Gemini-Pro", THIS_MODEL, ("gemini-pro", False)),
        ("opus", "", ("", False)),
    ],
)
def test_a_limit_may_be_of_one_model(
    model: str, refusal_model: str, scope: tuple[str, bool]
) -> None:  # fmt: skip
    """It applies if its name is part of the name of a job's model. Jobs without a model use that of
    the refused job.
    """
    limit = ApiRefusal("limit", "seven_day_opus", NOW + 9, refusal_model)
    window = after_refusal(None, Quota("claude", "a1", model), limit, NOW, "r")

    assert (window.model, window.is_default) == scope
    assert window.concerns(Quota("claude", "a1", model))
    assert window.concerns(Quota("claude", "a1", "haiku")) == (not refusal_model)
    assert window.concerns(QUOTA) == (not model or not refusal_model)


def test_without_a_time_probes_are_further_and_further_apart() -> None:
    """1, 2, 4 ... 30 minutes, indefinitely."""
    window, delays = refused(None, UNTIMED), []
    for _probe in range(8):
        delays.append(window.until_s - NOW)
        assert not window.is_timed
        window = refused(with_probe(window, "p"), UNTIMED, "p")

    assert delays == [60, 120, 240, 480, 960, 1800, 1800, 1800]
    assert (window.refused_probes, window.probe) == (8, "")


def test_what_a_running_session_adds() -> None:
    """A new time counts; a refusal without a time changes neither the time nor the probe."""
    later = ApiRefusal("weekly limit", "seven_day", NOW + 9000)
    assert refused(CLOSED, later).until_s == NOW + 9000
    kept = refused(with_probe(CLOSED, "p"), UNTIMED)
    assert (kept.until_s, kept.is_timed, kept.probe, kept.refused_probes) == (1300, True, "p", 0)
    again = refused(refused(None, UNTIMED), UNTIMED)
    assert (again.until_s, again.is_timed) == (NOW + 60, False)
    # A time that has passed is not used for another refusal.
    assert refused(replace(CLOSED, until_s=NOW), UNTIMED).until_s == NOW + 60


@pytest.mark.parametrize(
    ("until_s", "expected_s"),
    [
        (NOW + 1, NOW + 1),
        (NOW, NOW),
        (NOW - 60, NOW),
        (NOW - 61, NOW + 60),
        (NOW + LONGEST_S, NOW + LONGEST_S),
        (NOW + LONGEST_S + 1, NOW + 60),
    ],
)
def test_times_that_cannot_be(until_s: float, expected_s: float) -> None:
    """A reset that has just passed is reached. A reset long ago, or years ahead, is ignored."""
    window = refused(None, ApiRefusal("limit", "five_hour", until_s))

    assert window.until_s == expected_s
    assert window.is_timed == (expected_s != NOW + 60)


def test_a_clock_that_is_ahead_of_the_apis() -> None:
    """The reset has passed here but not there: the probe is refused, and the next one waits."""
    for until_s in (NOW - 1, NOW):
        window = refused(with_probe(CLOSED, "p"), replace(LIMIT, until_s=until_s), "p")
        assert (window.until_s, window.is_timed) == (NOW + 120, False)


def test_a_job_goes_on_with_its_fallback_model() -> None:
    """If `on_limit` and `fallback_model` are set, and the limit applies to its own model alone."""
    brief = Brief("claude", "x", "opus", "sonnet", on_limit=FALLBACK, account="a1")
    opus = replace(CLOSED, model="opus")
    own, other = quota_of(brief), quota_of(brief, "sonnet")

    assert other == Quota("claude", "a1", "sonnet")
    assert choose_quota(brief, [opus], NOW) == other
    assert choose_quota(brief, [opus], NOW + 300) == own
    assert choose_quota(brief, [], NOW) == own
    assert choose_quota(brief, [CLOSED], NOW) == own
    assert choose_quota(brief, [opus, replace(opus, model="sonnet")], NOW) == own
    assert choose_quota(replace(brief, on_limit="wait"), [opus], NOW) == own
    assert choose_quota(replace(brief, fallback_model=""), [opus], NOW) == own


def test_a_new_herd_asks_for_an_account_without_access() -> None:
    """The user may have logged in since; a usage limit stays until its reset."""
    denied = replace(CLOSED, window=NO_ACCESS)

    assert end_denial(CLOSED) == CLOSED
    assert find_probed([end_denial(denied)], QUOTA, NOW) == [replace(denied, until_s=0.0)]


def test_a_quota_as_text() -> None:
    """None for jobs that never wait for a limit of their own model."""
    brief = Brief("claude", "x", "opus", account="a1")

    assert parse_quota(render_quota(job("a", brief=brief)) or "") == Quota("claude", "a1", "opus")
    assert parse_quota("claude\ta1\t") == QUOTA
    assert parse_quota("claude\ta1\todd\tmodel x") == Quota("claude", "a1", "odd\tmodel x")
    assert render_quota(job("a")) is None
    for other in (FAIL, FALLBACK):
        assert render_quota(job("a", brief=replace(brief, on_limit=other))) is None


def test_reasons() -> None:
    """With the reset if it is known."""
    numbers = {"agent": "claude", "window": "five-hour window", "what": "5-hour limit"}
    assert explain_window(CLOSED, NOW) == Reason(Why.USAGE_LIMIT, **numbers, until_at=1300)
    assert explain_window(replace(CLOSED, is_timed=False), NOW) == Reason(
        Why.USAGE_LIMIT, **numbers
    )
    assert explain_window(CLOSED, NOW + 300) == Reason(
        Why.USAGE_PROBE, agent="claude", window="five-hour window"
    )
    assert explain_window(replace(CLOSED, window=NO_ACCESS), NOW + 300) == Reason(
        Why.NO_ACCESS, agent="claude", what="5-hour limit"
    )
    assert explain_served(CLOSED) == Reason(Why.USAGE_SERVED, agent="claude")
    near = Reason(Why.NEAR_USAGE_LIMIT, agent="claude", window="weekly limit", used="90 %")
    assert explain_near("claude", "seven_day", 0.9) == near
    assert explain_near("claude", "odd", None).numbers["used"] == "nearly all"
