"""Classifies the text of an API error: a busy API, a usage limit, or an account without access.

The texts are from the CLIs and their APIs; each was seen in a run of the CLI against the model of
the tests, or is in the source of the CLI.
"""

import re

from ramherd.core.agent_task import THIS_MODEL

LOAD = re.compile(
    r"\b(429|503|529)\b|overload|rate.?limit|too many requests|resource.?exhausted|quota"
    r"|at capacity",
    re.IGNORECASE,
)
# "You've hit your session limit", "You have exhausted your daily quota on this model", "You've hit
# your usage limit", "You're out of extra usage", "Claude AI usage limit reached|1760000000".
LIMIT = re.compile(
    r"(hit|reached) your (?!rate)[\w -]{0,40}limit|usage.?limit|out of extra usage"
    r"|\b(session|weekly|daily|monthly|opus|sonnet) limit|exhausted your [\w -]{0,40}quota"
    r"|quota.{0,20}(exceed|exhaust)|exceeded your [\w -]{0,40}quota|exhausted your capacity",
    re.IGNORECASE,
)
# "Invalid API key · Please run /login", "Credit balance is too low", "unexpected status 401
# Unauthorized", "Failed to authenticate. API Error: 403", `"code":403`.
DENIAL = re.compile(
    r"credit balance|insufficient.?(quota|funds|credit)|billing details|payment required"
    r"|please run /login|not logged in|invalid (x-)?(api|authentication)"
    r"|(api|access|x-api).?key.{0,20}(not valid|invalid|incorrect|expired)"
    r"|incorrect api key|failed to authenticate|authentication.?(error|failed)|permission.?denied"
    r"|\bunauthorized\b|(token|credentials).{0,20}(expired|revoked)"
    r"|(status|error|code)\W{1,4}40[123]\b|^40[123]\b",
    re.IGNORECASE,
)
LATER = re.compile(r"\b(resets?|retry (in|after)|try again (in|at))\b", re.IGNORECASE)
WINDOWS = (
    (re.compile(r"\bopus\b", re.IGNORECASE), "seven_day_opus", "opus"),
    (re.compile(r"\bsonnet\b", re.IGNORECASE), "seven_day_sonnet", "sonnet"),
    (re.compile(r"\bweekly\b|\b7.day\b", re.IGNORECASE), "seven_day", ""),
    (re.compile(r"\bsession limit\b|\b5.hour\b", re.IGNORECASE), "five_hour", ""),
    (re.compile(r"\bdaily\b|per.?day", re.IGNORECASE), "day", ""),
    (re.compile(r"\bmonthly\b", re.IGNORECASE), "month", ""),
    (re.compile(r"extra usage", re.IGNORECASE), "overage", ""),
)
# The model that a limit of this name concerns; other limits concern the whole account.
MODELS = {"seven_day_opus": "opus", "seven_day_sonnet": "sonnet"}


def is_overload(text: str) -> bool:
    return LOAD.search(text) is not None


def is_usage_limit(text: str) -> bool:
    return LIMIT.search(text) is not None


def is_denial(text: str) -> bool:
    """Whether a retry cannot help. A quota that resets is a limit, even if its text also mentions
    billing.
    """
    return DENIAL.search(text) is not None and LATER.search(text) is None


def find_window(text: str) -> tuple[str, str]:
    """The window that a text names, and the model that it concerns; "" if it names none."""
    this = THIS_MODEL if THIS_MODEL in text else ""
    for pattern, window, model in WINDOWS:
        if pattern.search(text):
            return window, model or this
    return "", this
