"""Errors of APIs by their text: busy, a usage limit, or an account without access."""

from collections.abc import Mapping
from typing import Any

import pytest

from ramherd.agents import find_agent
from ramherd.agents.progress import (
    Fact,
    Failure,
    NearUsageLimit,
    Overload,
    Progress,
    Retry,
    TurnStarted,
    failures,
    next_progress,
    trouble_in,
)
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
    ["exit 1", "Reached maximum number of turns (3)", "the file 4011 is not there"],
)
def test_any_other_failure(text: str) -> None:
    assert failures(text) == [Failure(text)]


def test_the_event_has_the_time_and_the_text_the_words() -> None:
    """The text after the event does not take its time away; a reply does."""
    event = ApiRefusal("usage limit reached (five_hour)", "five_hour", 1_794_857_270.0)
    at = next_progress(Progress(), [event, *failures(CLAUDE_LIMIT)])

    assert at.refusal == ApiRefusal(CLAUDE_LIMIT, "five_hour", 1_794_857_270.0)
    assert at.resumed().refusal is None


def claude_facts(*events: Mapping[str, Any]) -> list[Fact]:
    reader = find_agent("claude").reader()
    return [fact for event in events for fact in reader.read(event)]


def test_the_limit_event_of_claude() -> None:
    """Rejected closes the window, a warning does not; anything else says nothing."""
    info = {"status": "rejected", "resetsAt": 1_794_857_270, "rateLimitType": "seven_day_opus"}
    warning = {"status": "allowed_warning", "rateLimitType": "five_hour", "utilization": 0.91}
    events = [{"type": "rate_limit_event", "rate_limit_info": one} for one in (info, warning, {})]

    assert claude_facts(*events) == [
        ApiRefusal("usage limit reached (seven_day_opus)", "seven_day_opus", 1_794_857_270, "opus"),
        NearUsageLimit("five_hour", 0.91),
    ]


def test_claude_without_a_key() -> None:
    """It may get a new token after the first 401; the second one counts."""
    retry = {"type": "system", "subtype": "api_retry", "error_status": 401, "error": "auth"}

    assert claude_facts({**retry, "attempt": 1}, {**retry, "attempt": 2}) == [
        Retry("401 auth"),
        ApiRefusal("401 auth", NO_ACCESS),
    ]


def test_an_error_in_a_message_is_no_reply() -> None:
    """claude and qwen put errors of the API into the model's mouth."""
    said = {"role": "assistant", "id": "m1", "content": [{"type": "text", "text": CLAUDE_LIMIT}]}
    other = {**said, "id": "m2", "content": [{"type": "text", "text": "[API Error: 401 no]"}]}
    for message in ({**said, "model": "<synthetic>"}, other):
        facts = claude_facts({"type": "assistant", "message": message})
        assert TurnStarted() not in facts
    assert TurnStarted() in claude_facts({"type": "assistant", "message": said})


def test_codex_tries_again() -> None:
    """Also after a 401: the second time counts. Its limit is in its last words."""
    reader = find_agent("codex").reader()
    text = "Reconnecting... {}/5 (unexpected status 401 Unauthorized: invalid key)"
    first, second = (text.format(number) for number in (1, 2))
    busy = "Reconnecting... 1/5 (unexpected status 529)"
    events = [{"type": "error", "message": message} for message in (first, second, busy)]

    assert [fact for event in events for fact in reader.read(event)] == [
        Retry(first),
        ApiRefusal(second, NO_ACCESS),
        Overload(busy),
    ]
