"""Calm, tight, single: how freely runs are started. Each level has two marks, and no run is ended.

A level begins with its sign, and ends after some seconds without one. A level that returns soon
after its end lasts longer, so that another program that repeatedly takes and releases memory does
not open and close the starts each time.
"""

from dataclasses import replace

from ramherd.core.memory import Candidate, History, Level, Penned, Scene
from ramherd.core.model import Reason, Why
from ramherd.core.policies import GrantPolicy
from ramherd.decide.governor.room import Room

STERNNESS = {Level.CALM: 0, Level.TIGHT: 1, Level.SINGLE: 2}


def next_level(
    scene: Scene, history: History, room: Room, policy: GrantPolicy
) -> tuple[History, Reason]:
    """The history with the next level, and the reason of that level."""
    history = replace(history, debt_since_s=next_debt_since(scene, history, room))
    asked, why = find_level(scene, history, policy)
    at_s, was = scene.at_s, history.level
    if STERNNESS[asked] < STERNNESS[was]:
        if at_s - history.asked_s < lasting_s(history, policy):
            return history, why
        return replace(history, level=asked, asked_s=at_s, left_s=at_s), why
    is_back = history.is_back
    if was is Level.CALM:
        is_back = at_s - history.left_s < policy.level_back_s
    return replace(history, level=asked, asked_s=at_s, is_back=is_back), why


def lasting_s(history: History, policy: GrantPolicy) -> float:
    """How long a level lasts after its last sign."""
    return policy.level_lasts_again_s if history.is_back else policy.level_lasts_s


def find_level(scene: Scene, history: History, policy: GrantPolicy) -> tuple[Level, Reason]:
    """The strictest level that a rule calls for now."""
    if (why := find_single(scene, history, policy)) is not None:
        return Level.SINGLE, why
    if (why := find_tight(scene, history, policy)) is not None:
        return Level.TIGHT, why
    return Level.CALM, Reason(Why.CALM)


def is_on(value: float, marks: tuple[float, float], *, was_on: bool) -> bool:
    """On at the first mark, off below the second."""
    on, off = marks
    return value >= off if was_on else value >= on


def is_pressed(scene: Scene, policy: GrantPolicy) -> bool:
    """Not yet below the lower marks."""
    return (
        scene.memory_pressure >= policy.memory_pressure_marks[1]
        or scene.swap_in_bytes_per_s >= policy.swap_in_marks[1]
    )


def find_single(scene: Scene, history: History, policy: GrantPolicy) -> Reason | None:
    """A budget below two bases, repeatedly failing starts, or an unpaid debt."""
    if (small := find_small_budget(scene, history, policy)) is not None:
        return small
    if scene.failed_starts >= policy.single_failed_starts:
        return Reason(Why.FAILED_STARTS, starts=scene.failed_starts)
    return find_debt(scene, history, policy.single_debt_s)


def find_small_budget(scene: Scene, history: History, policy: GrantPolicy) -> Reason | None:
    """Based on the lease that this application could get: its present lease is small if it has not
    asked for more. The memory of ending runs is free in a moment. The level begins with a waiting
    job; when no job waits any longer, the budget is compared with the running ones.
    """
    was = history.level is Level.SINGLE
    ones: list[Penned | Candidate] = [*scene.queue[:1], *scene.runs[:was]]
    base = scene.estimate(ones[0]).base_bytes if ones else 0
    could = max(scene.budget_bytes, scene.lease_bytes + scene.ending_bytes)
    if could >= policy.single_bases[was] * base:
        return None
    return Reason(Why.SMALL_BUDGET, budget_bytes=could, base_bytes=base)


def find_debt(scene: Scene, history: History, lasting_s: float) -> Reason | None:
    """A debt that has lasted this long; a debt that is paid at once is no sign of trouble."""
    since = history.debt_since_s
    if since is None or scene.at_s - since < lasting_s:
        return None
    granted = sum(run.grant_bytes for run in scene.runs)
    return Reason(Why.DEBT, granted_bytes=granted, lease_bytes=scene.lease_bytes)


def find_tight(scene: Scene, history: History, policy: GrantPolicy) -> Reason | None:
    was = history.level is not Level.CALM
    if (debt := find_debt(scene, history, policy.tight_debt_s)) is not None:
        return debt
    if scene.failed_starts:
        return Reason(Why.FAILED_STARTS, starts=scene.failed_starts)
    if is_on(scene.memory_pressure, policy.memory_pressure_marks, was_on=was):
        return Reason(Why.MEMORY_PRESSURE, pressure=round(scene.memory_pressure, 3))
    if is_on(scene.swap_in_bytes_per_s, policy.swap_in_marks, was_on=was):
        return Reason(Why.SWAP_IN, swap_in_bytes=int(scene.swap_in_bytes_per_s))
    return None


def next_debt_since(scene: Scene, history: History, room: Room) -> float | None:
    """The time since which more is granted than leased, after all idle memory was taken back."""
    if not room.debt_bytes:
        return None
    return scene.at_s if history.debt_since_s is None else history.debt_since_s
