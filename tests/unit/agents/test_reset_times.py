"""The time of a reset in the words of each CLI."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from ramherd.agents.reset_times import parse_reset_s

BERLIN = ZoneInfo("Europe/Berlin")
NEW_YORK = ZoneInfo("America/New_York")


def at(year: int, month: int, day: int, hour: int, minute: int = 0) -> datetime:
    return datetime(year, month, day, hour, minute, tzinfo=UTC)


NOW = at(2026, 11, 16, 6, 30)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("You've hit your session limit · resets 8:45am (UTC)", at(2026, 11, 16, 8, 45)),
        ("resets 8am (UTC)", at(2026, 11, 16, 8)),
        ("resets 12am (UTC)", at(2026, 11, 17, 0)),
        ("resets 12:30pm (UTC)", at(2026, 11, 16, 12, 30)),
        ("resets 8:45am (America/New_York)", at(2026, 11, 16, 13, 45)),
        ("resets 8:45am (Nowhere/Atlantis)", at(2026, 11, 16, 7, 45)),
        ("resets 8:45am", at(2026, 11, 16, 7, 45)),
        ("resets 23:10", at(2026, 11, 16, 22, 10)),
        ("weekly limit · resets Nov 20, 9am", at(2026, 11, 20, 8)),
        ("weekly limit · resets Nov 20, 9am (UTC)", at(2026, 11, 20, 9)),
        ("Your limit will reset at 3pm (Europe/Berlin).", at(2026, 11, 16, 14)),
        ("try again at 9:40 PM.", at(2026, 11, 16, 20, 40)),
        ("try again at Nov 20th, 2026 8:45 PM.", at(2026, 11, 20, 19, 45)),
        ("try again in 3 hours 12 minutes.", at(2026, 11, 16, 9, 42)),
        ("try again in 1 day 2 hours, and 30 minutes", at(2026, 11, 17, 9, 0)),
        ("Please retry in 41m0s.", at(2026, 11, 16, 7, 11)),
        ("retry after 90 minutes", at(2026, 11, 16, 8)),
        ("quota will reset after 1h30m.", at(2026, 11, 16, 8)),
        ("Claude AI usage limit reached|1794814200", at(2026, 11, 16, 7, 30)),
        ("resets at 2026-11-16T20:00:00Z", at(2026, 11, 16, 20)),
        ("resets at 2026-11-16 20:00", at(2026, 11, 16, 19)),
    ],
)
def test_texts_of_the_agents(text: str, expected: datetime) -> None:
    """A zone in the text counts; else the machine's, here Berlin's."""
    assert parse_reset_s(text, NOW.timestamp(), BERLIN) == expected.timestamp()


@pytest.mark.parametrize(
    "text",
    ["", "Quota exceeded.", "error 429 at 5", "resets soon", "resets 25:00", "resets Feb 30, 9am",
     "usage limit reached|4000000000", "resets at 1999-01-01T00:00:00Z", "try again in a while"],
)  # fmt: skip
def test_texts_without_a_time(text: str) -> None:
    assert parse_reset_s(text, NOW.timestamp(), BERLIN) is None


def test_midnight() -> None:
    """Ten past midnight is tomorrow's at ten to midnight."""
    now = at(2026, 11, 16, 23, 50)

    assert parse_reset_s("resets 12:10am", now.timestamp(), UTC) == now.timestamp() + 20 * 60


def test_a_time_that_has_just_passed() -> None:
    """A text that is read late is not about tomorrow; an hour later it is."""
    text, then = "resets 8:45am", at(2026, 11, 16, 8, 45).timestamp()

    assert parse_reset_s(text, then + 1, UTC) == then
    assert parse_reset_s(text, then + 3000, UTC) == then
    assert parse_reset_s(text, then + 4000, UTC) == then + 86_400


def test_the_end_of_a_year() -> None:
    """A date without a year is the next one, and in January December's has passed."""
    december, january = at(2026, 12, 30, 12), at(2027, 1, 2, 12)

    assert (
        parse_reset_s("resets Jan 2, 9am", december.timestamp(), UTC)
        == at(2027, 1, 2, 9).timestamp()
    )
    assert parse_reset_s("resets Dec 31, 9am", january.timestamp(), UTC) is None


def test_changes_of_clocks() -> None:
    """9am is eight hours after 1am where an hour is left out, and ten where one comes twice."""
    spring = datetime(2026, 3, 8, 1, 0, tzinfo=NEW_YORK).timestamp()
    autumn = datetime(2026, 11, 1, 0, 0, tzinfo=NEW_YORK).timestamp()

    assert parse_reset_s("resets 9am", spring, NEW_YORK) == spring + 7 * 3600
    assert parse_reset_s("resets 9am", autumn, NEW_YORK) == autumn + 10 * 3600
    # Half past one comes twice: at the second 1:15 it is the second one.
    second = datetime(2026, 11, 1, 1, 15, tzinfo=NEW_YORK, fold=1).timestamp()
    assert parse_reset_s("resets 1:30am", second, NEW_YORK) == second + 15 * 60
