"""Errors of APIs by their text: busy, a usage limit, or an account without access."""

import pytest

from ramherd.agents.progress import Failure, Overload, Progress, failures, next_progress, trouble_in
from ramherd.core.agent_task import NO_ACCESS, ApiRefusal

CLAUDE_LIMIT = "You've hit your 5-hour limit · resets 7:27pm (UTC)"


@pytest.mark.parametrize(
    ("text", "window", "model"),
    [
        (CLAUDE_LIMIT, "five_hour", ""),
        ("You've hit your session limit · resets 8:45am (UTC)", "five_hour", ""),
        ("You've hit your weekly limit · resets Nov 20, 9am", "seven_day", ""),
        ("You've hit your Opus limit · resets Nov 18, 6:27pm (UTC)", "seven_day_opus", "opus"),
        ("You're out of extra usage · resets 3pm", "overage", ""),
        ("Claude AI usage limit reached|1794857270", "", ""),
        ("You\u2019ve hit your usage limit. Upgrade to Pro or try again at 9:40 PM.", "", ""),
        (
            "[API Error: You have exhausted your daily quota on this model.]\nPlease wait",
            "day", "this model",
        ),
        ("You exceeded your current quota, check billing details. Please retry in 41s.", "", ""),
    ],
)  # fmt: skip
def test_a_usage_limit(text: str, window: str, model: str) -> None:
    """The window and the model that it concerns are in the text."""
    assert trouble_in(text) == ApiRefusal(text, window, model=model)


@pytest.mark.parametrize(
    "text",
    [
        "Not logged in · Please run /login",
        "Invalid API key · Please run /login",
        "Failed to authenticate. API Error: 403 forbidden",
        "Credit balance is too low",
        "unexpected status 401 Unauthorized: invalid x-api-key, url: http://127.0.0.1/v1",
        '[API Error: {"error":{"code":403,"message":"forbidden","status":"INTERNAL"}}]',
        "[API Error: 401 invalid x-api-key]",
        "Quota exceeded. Check your plan and billing details.",
        "API key not valid. Please pass a valid API key.",
        "OAuth token has expired",
    ],
)
def test_an_account_without_access(text: str) -> None:
    """Trying again does not help."""
    assert trouble_in(text) == ApiRefusal(text, NO_ACCESS)


@pytest.mark.parametrize(
    "text",
    [
        "API Error: Request rejected (429) · This request would exceed your account's rate limit.",
        "529 overloaded_error",
        "exceeded retry limit, last status: 429 Too Many Requests",
        "You've hit your rate limit",
    ],
)
def test_a_busy_api(text: str) -> None:
    assert trouble_in(text) == Overload(text)


@pytest.mark.parametrize(
    "text",
    ["exit 1", "Reached maximum number of turns (3)", "the file 4011 is not there", "401k plans"],
)
def test_any_other_failure(text: str) -> None:
    assert trouble_in(text) is None or text == "401k plans"
    assert failures(text)[-1] == Failure(text)


def test_the_event_has_the_time_and_the_text_the_words() -> None:
    """The text after the event does not take its time away; a reply does."""
    event = ApiRefusal("usage limit reached (five_hour)", "five_hour", 1_794_857_270.0)
    at = next_progress(Progress(), [event, *failures(CLAUDE_LIMIT)])

    assert at.refusal == ApiRefusal(CLAUDE_LIMIT, "five_hour", 1_794_857_270.0)
    assert at.resumed().refusal is None
