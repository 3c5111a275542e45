"""Which moments of the memory history are kept: each second of the last minutes, and longer steps
for longer ago.

Of each step the fullest moment stays. It is a moment that really was, so the runs in it add up; and
a burst that lasted for a second is still seen after a week.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ramherd.core.memory_moment import MemoryMoment


class HistoryStep(NamedTuple):
    """One moment for every `step_s`, kept for `keep_s`."""

    step_s: int
    keep_s: int


# 7,656 moments. With 50 runs each has 800 bytes: 6 MB for a week.
STEPS = (
    HistoryStep(1, 600),
    HistoryStep(10, 6 * 3600),
    HistoryStep(60, 2 * 86_400),
    HistoryStep(300, 7 * 86_400),
)


def start_of_step(at_s: int, step_s: int) -> int:
    return at_s - at_s % step_s


def is_fuller(one: MemoryMoment, other: MemoryMoment) -> bool:
    """The later moment of two that are equal."""
    return fullness(one) >= fullness(other)


def fullness(moment: MemoryMoment) -> tuple[int, int]:
    return moment.used_bytes, -moment.available_bytes


def choose_step(since_s: int, until_s: int, now_s: int, most: int) -> HistoryStep:
    """The finest step that reaches back to `since_s` with at most that many moments; otherwise the
    coarsest.
    """
    for step in STEPS:
        if now_s - since_s <= step.keep_s and until_s - since_s <= most * step.step_s:
            return step
    return STEPS[-1]


def thin_out(moments: Sequence[MemoryMoment], most: int) -> list[MemoryMoment]:
    """At most that many: the fullest of each of as many stretches of equal length."""
    if len(moments) <= most:
        return list(moments)
    first_s, last_s = moments[0].at_s, moments[-1].at_s
    stretch_s = -(-(last_s - first_s + 1) // most)
    return list(fullest_of_each(moments, first_s, stretch_s))


def fullest_of_each(
    moments: Iterable[MemoryMoment], first_s: int, stretch_s: int
) -> Iterable[MemoryMoment]:
    kept: dict[int, MemoryMoment] = {}
    for moment in moments:
        place = (moment.at_s - first_s) // stretch_s
        if place not in kept or is_fuller(moment, kept[place]):
            kept[place] = moment
    return kept.values()
