"""How fast agents of one kind are started while their API is too busy for them."""

from dataclasses import dataclass, replace

from ramherd.core.model import Reason, Why

FIRST_S = 2.0
MOST_S = 60.0
# Without overload for so many pauses, the next one is half as long.
QUIET_PAUSES = 2.0


@dataclass(frozen=True, slots=True)
class Pace:
    """Starts are `pause_s` apart, the next not before `next_s`."""

    pause_s: float = 0.0
    next_s: float = 0.0
    changed_s: float = float("-inf")


def after_overload(pace: Pace, at_s: float) -> Pace:
    """Twice the pause; what many agents say of the same moment counts once."""
    if at_s - pace.changed_s < pace.pause_s:
        return pace
    pause_s = min(max(2 * pace.pause_s, FIRST_S), MOST_S)
    return Pace(pause_s, at_s + pause_s, at_s)


def after_start(pace: Pace, at_s: float) -> Pace:
    return replace(pace, next_s=at_s + pace.pause_s)


def next_pace(pace: Pace, at_s: float) -> Pace:
    """It recovers step by step, down to no pause at all."""
    if not pace.pause_s or at_s - pace.changed_s < QUIET_PAUSES * pace.pause_s:
        return pace
    pause_s = pace.pause_s / 2 if pace.pause_s > FIRST_S else 0.0
    return Pace(pause_s, min(pace.next_s, at_s + pause_s), at_s)


def explain_pause(what: str, pause_s: float) -> Reason:
    """Why agents of a kind start more slowly: what one of them reported of its API."""
    return Reason(Why.OVERLOAD, what=what, pause_s=pause_s)


def explain_calm(agent: str) -> Reason:
    return Reason(Why.API_CALM, agent=agent)
