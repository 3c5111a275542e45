"""How fast agents are started while their API is too busy."""

from ramherd.core.model import Reason, Why
from ramherd.decide.start_pace import (
    MOST_S,
    Pace,
    after_overload,
    after_start,
    explain_calm,
    explain_pause,
    explain_slot,
    find_slot,
    next_pace,
)


def test_the_pause_doubles_with_each_overload_up_to_a_minute() -> None:
    """Reports within one pause count once."""
    pace = Pace()
    pauses: list[float] = []
    for _time in range(7):
        at_s = pace.changed_s + pace.pause_s if pauses else 100.0
        pace = after_overload(pace, at_s)
        assert after_overload(pace, at_s + pace.pause_s / 2) is pace
        pauses.append(pace.pause_s)

    assert pauses == [2, 4, 8, 16, 32, 60, MOST_S]


def test_starts_are_a_pause_apart() -> None:
    """A pause after the overload, then after each start."""
    pace = after_overload(Pace(), 100.0)
    assert pace.next_s == 102.0
    assert after_start(pace, 103.0).next_s == 105.0


def test_it_recovers_step_by_step() -> None:
    """Half the pause after two quiet ones, and finally none at all."""
    pace, at_s, pauses = Pace(8.0, 108.0, 100.0), 100.0, []
    while pace.pause_s:
        assert next_pace(pace, at_s + pace.pause_s) is pace
        at_s += 2 * pace.pause_s
        pace = next_pace(pace, at_s)
        pauses.append(pace.pause_s)

    assert pauses == [4, 2, 0]
    assert pace.next_s <= at_s


def test_of_one_account_only_the_first_in_line_is_next() -> None:
    """Even if the pause ended long ago: otherwise the others would all start at the same time."""
    pace = after_overload(Pace(), 100.0)

    assert [find_slot(pace, 0.0, taken, 101.0) for taken in range(3)] == [102.0, 104.0, 106.0]
    assert [find_slot(pace, 0.0, taken, 103.5) for taken in range(2)] == [102.0, 105.5]
    assert find_slot(after_start(pace, 103.5), 0.0, 0, 103.5) == 105.5
    assert find_slot(Pace(), 90.0, 3, 100.0) == 0.0


def test_a_job_does_not_wait_for_the_back_off_of_another() -> None:
    """It starts at most a minute after the end of its own back-off."""
    pace = Pace(60.0, 1000.0, 900.0, 900.0)

    assert find_slot(pace, 905.0, 9, 910.0) == 905.0 + MOST_S
    assert find_slot(pace, 0.0, 9, 910.0) == 1000.0 + 9 * 60.0


def test_starts_are_never_further_apart_than_the_longest_pause() -> None:
    """However often running sessions report an overload."""
    pace, at_s = Pace(), 100.0
    for _ in range(12):
        pace = after_overload(pace, at_s)
        at_s = pace.changed_s + pace.pause_s

    assert pace.next_s == 100.0 + MOST_S
    assert after_overload(after_start(pace, at_s), at_s + 59.0).next_s == at_s + MOST_S


def test_a_shorter_pause_begins_when_it_is_chosen() -> None:
    """A start that was to wait longer starts earlier."""
    assert next_pace(Pace(8.0, 200.0, 100.0, 90.0), 116.0) == Pace(4.0, 120.0, 116.0, 90.0)


def test_a_pause_says_what_the_api_said() -> None:
    """The reason of its end names the agent."""
    assert explain_pause("529", 4.0) == Reason(Why.OVERLOAD, what="529", pause_s=4.0)
    slot = Reason(Why.OVERLOAD_PACE, agent="claude", wait_s=1.3)
    assert (explain_slot("claude", 1.26), explain_slot("claude", -1.0)) == (
        slot,
        Reason(Why.OVERLOAD_PACE, agent="claude", wait_s=0.0),
    )
    assert explain_calm("claude") == Reason(Why.API_CALM, agent="claude")
