"""When starts that could not be prepared are tried again."""

import math

from ramherd.core.model import Reason, Why
from ramherd.decide.start_pause import (
    FIRST_TRY_S,
    LONGEST_TRY_S,
    OUTCOME_S,
    StartPause,
    after_failed_start,
    after_try,
    explain_job_pause,
    explain_resumed,
    explain_service_end,
    explain_user_pause,
)

WHAT = "cannot make a directory in /s/runs: No space left on device"


def test_a_pause_is_not_tried_unless_its_end_can_only_be_tried() -> None:
    """The part that watches a cause reports its end."""
    assert StartPause(Reason(Why.STORE, what="x")) == StartPause(
        Reason(Why.STORE, what="x"), 0, math.inf
    )


def test_a_failed_start_is_tried_again_soon_then_less_and_less_often() -> None:
    """After 0.5, 1, 2, 4 and 8 seconds, then every 15 seconds."""
    pause, delays = None, []
    for at_s in (10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0):
        pause = after_failed_start(pause, WHAT, at_s)
        delays.append(pause.next_s - at_s)

    assert delays == [FIRST_TRY_S, 1.0, 2.0, 4.0, 8.0, LONGEST_TRY_S, LONGEST_TRY_S]
    assert pause == StartPause(Reason(Why.CANNOT_PREPARE, what=WHAT), 7, 70.0 + LONGEST_TRY_S)


def test_a_start_that_fails_for_years_is_still_tried() -> None:
    """The delay is bounded before the number overflows."""
    before = StartPause(Reason(Why.CANNOT_PREPARE, what=WHAT), 1 << 20, 0.0)

    assert after_failed_start(before, WHAT, 1.0).next_s == 1.0 + LONGEST_TRY_S


def test_one_start_is_tried_at_a_time() -> None:
    """The next one waits for the outcome, but not forever."""
    pause = after_failed_start(None, WHAT, 10.0)

    assert after_try(pause, 11.0) == StartPause(pause.reason, 1, 11.0 + OUTCOME_S)


def test_a_try_does_not_make_a_watched_cause_end() -> None:
    """The cause is still not tried by itself."""
    pause = StartPause(Reason(Why.STORE, what="x"))

    assert after_try(pause, 11.0) == pause


def test_a_pause_that_was_asked_for_has_its_reason() -> None:
    """`ramherd pause`, a service that is told to end, and the end of every pause."""
    assert explain_user_pause(7.0) == Reason(Why.PAUSED, paused_at=7.0)
    assert explain_user_pause(0.0) == Reason(Why.PAUSED)
    assert explain_job_pause(7.0) == Reason(Why.JOB_PAUSED, paused_at=7.0)
    assert explain_service_end() == Reason(Why.SERVICE_STOPS)
    assert explain_resumed() == Reason(Why.RESUMED)
