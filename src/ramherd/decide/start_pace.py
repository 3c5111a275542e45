"""How fast agents of one account are started while their API is too busy for them."""

from dataclasses import dataclass, replace

from ramherd.core.model import Reason, Why

FIRST_S = 2.0
# The longest time that a start waits because other jobs were refused.
MOST_S = 60.0
# The pause is halved after this many pauses without an overload.
QUIET_PAUSES = 2.0


@dataclass(frozen=True, slots=True)
class Pace:
    """Starts are `pause_s` apart, and the next is not before `next_s`. `started_s` is the time of
    the last start, or of the first start that had to wait.
    """

    pause_s: float = 0.0
    next_s: float = 0.0
    changed_s: float = float("-inf")
    started_s: float = float("-inf")


def after_overload(pace: Pace, at_s: float) -> Pace:
    """Doubles the pause; reports of many agents at the same time count once. Starts are never
    further apart than the longest pause, however many overloads running sessions report.
    """
    if at_s - pace.changed_s < pace.pause_s:
        return pace
    pause_s = min(max(2 * pace.pause_s, FIRST_S), MOST_S)
    started_s = max(pace.started_s, at_s) if not pace.pause_s else pace.started_s
    return Pace(pause_s, min(at_s + pause_s, started_s + MOST_S), at_s, started_s)


def after_start(pace: Pace, at_s: float) -> Pace:
    return replace(pace, next_s=at_s + pace.pause_s, started_s=at_s)


def next_pace(pace: Pace, at_s: float) -> Pace:
    """The pause is halved step by step, down to no pause at all."""
    if not pace.pause_s or at_s - pace.changed_s < QUIET_PAUSES * pace.pause_s:
        return pace
    pause_s = pace.pause_s / 2 if pace.pause_s > FIRST_S else 0.0
    return Pace(pause_s, min(pace.next_s, at_s + pause_s), at_s, pace.started_s)


def find_slot(pace: Pace, back_off_end_s: float, taken: int, at_s: float) -> float:
    """When a job may start that has `taken` jobs of its account before it: they do not all start at
    the same time, even if the pause ended long ago. A job that was itself refused, and whose own
    back-off has ended, does not wait for the back-off of other jobs.
    """
    slot_s = max(pace.next_s, at_s) + taken * pace.pause_s if taken else pace.next_s
    if not pace.pause_s:
        return 0.0
    return min(slot_s, back_off_end_s + MOST_S) if back_off_end_s else slot_s


def explain_pause(what: str, pause_s: float) -> Reason:
    """Why agents of an account start more slowly: the API error that one of them reported."""
    return Reason(Why.OVERLOAD, what=what, pause_s=pause_s)


def explain_slot(agent: str, wait_s: float) -> Reason:
    """Why the next job of an account is not started yet."""
    return Reason(Why.OVERLOAD_PACE, agent=agent, wait_s=round(max(wait_s, 0.0), 1))


def explain_calm(agent: str) -> Reason:
    return Reason(Why.API_CALM, agent=agent)
