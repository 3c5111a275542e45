"""When the keeper is asked for an answer, when it hangs, and when it is replaced."""

import pytest

from ramherd.core.model import Reason, Why
from ramherd.decide.keeper_health import (
    ASK_AFTER_S,
    HANGS_AFTER_S,
    LONGEST_STEP_S,
    LOST_AFTER_S,
    FailedKeeper,
    KeeperHealth,
    after_failed_keeper,
    after_question,
    explain_hang,
    explain_replacement,
    find_pause,
    next_health,
)
from ramherd.decide.start_pause import FIRST_TRY_S, LONGEST_TRY_S


def silent_for(time_s: float, *, is_asked: bool = True) -> KeeperHealth:
    return KeeperHealth(100.0, time_s, is_asked)


def test_a_message_ends_the_silence() -> None:
    """Any message counts, not only the answer."""
    assert next_health(silent_for(50.0), 101.0, is_heard=True) == KeeperHealth(101.0, 0.0)


def test_silence_adds_up() -> None:
    """The silence of several steps is summed."""
    found = next_health(silent_for(1.5), 100.5, is_heard=False)

    assert found == KeeperHealth(100.5, 2.0, is_asked=True)


def test_a_pause_of_the_supervisor_is_no_silence_of_the_keeper() -> None:
    """Both may have been frozen for an hour: that counts as one step."""
    found = next_health(silent_for(1.0), 3700.0, is_heard=False)

    assert found == KeeperHealth(3700.0, 1.0 + LONGEST_STEP_S, is_asked=True)


@pytest.mark.parametrize(("before_s", "is_due"), [(ASK_AFTER_S - 0.1, False), (ASK_AFTER_S, True)])
def test_a_silent_keeper_is_asked_once(before_s: float, *, is_due: bool) -> None:
    """It is asked after two seconds."""
    health = silent_for(before_s, is_asked=False)

    assert health.is_due is is_due
    assert after_question(health) == silent_for(before_s)
    assert not after_question(health).is_due


@pytest.mark.parametrize(
    ("silent_s", "is_hanging", "is_lost"),
    [
        (HANGS_AFTER_S - 0.1, False, False),
        (HANGS_AFTER_S, True, False),
        (LOST_AFTER_S - 0.1, True, False),
        (LOST_AFTER_S, True, True),
    ],
)
def test_without_an_answer_it_hangs_then_is_lost(
    silent_s: float, *, is_hanging: bool, is_lost: bool
) -> None:
    """A keeper that was not asked does not hang."""
    health, not_asked = silent_for(silent_s), silent_for(silent_s, is_asked=False)

    assert (health.is_hanging, health.is_lost) == (is_hanging, is_lost)
    assert (not_asked.is_hanging, not_asked.is_lost) == (False, False)


def test_a_hang_is_noticed_within_five_seconds() -> None:
    """With half a second between two steps."""
    assert HANGS_AFTER_S + 0.5 < 5.0
    assert explain_hang() == Reason(Why.KEEPER_HANGS, silent_s=4.0, limit_s=60.0)
    assert explain_replacement() == Reason(Why.KEEPER_REPLACED, silent_s=60.0)


def test_a_keeper_that_cannot_be_started_is_tried_less_and_less_often() -> None:
    """After 0.5, 1, 2, 4 and 8 seconds, then every 15 seconds, like any failed start."""
    failed, delays = None, []
    for at_s in (10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0):
        failed = after_failed_keeper(failed, f"error at {at_s}", at_s)
        delays.append(failed.next_s - at_s)

    assert delays == [FIRST_TRY_S, 1.0, 2.0, 4.0, 8.0, LONGEST_TRY_S, LONGEST_TRY_S]
    reason = Reason(Why.KEEPER_FAILS, what="error at 70.0")
    assert failed == FailedKeeper(reason, 7, 70.0 + LONGEST_TRY_S)


def test_nothing_starts_without_a_keeper_that_answers() -> None:
    """A keeper that hangs during its start is reported as hanging: the user can check that."""
    failed, hangs = after_failed_keeper(None, "MemoryError", 0.0), silent_for(HANGS_AFTER_S)

    assert find_pause(KeeperHealth(), None) is None
    assert find_pause(KeeperHealth(), failed) == Reason(Why.KEEPER_FAILS, what="MemoryError")
    assert find_pause(hangs, failed) == find_pause(hangs, None) == explain_hang()
