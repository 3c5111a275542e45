"""One round of the governor: from the scene of one application to its actions."""

from collections.abc import Sequence
from dataclasses import replace

from ramherd.core.memory import GrantAction, History, Penned, Scene, SetLevel
from ramherd.core.policies import GrantPolicy
from ramherd.decide.governor.admit import admit
from ramherd.decide.governor.growth import (
    grow,
    make_cache_room,
    next_grown,
    next_idle,
    pay_debt,
    shrink,
    waiters,
)
from ramherd.decide.governor.levels import is_on, next_level
from ramherd.decide.governor.preempt import (
    fail_too_big,
    find_kept,
    next_bursts,
    next_urgent,
    preempt,
)
from ramherd.decide.governor.room import Room


def govern(
    scene: Scene, history: History, policy: GrantPolicy
) -> tuple[History, list[GrantAction]]:
    """Carry out the actions in order: grants that shrink come first, so that the sum of grants is
    within the lease after each action. If an action fails (a run grew past its new grant
    meanwhile), skip the rest and ask again.
    """
    waiting = waiters(scene)
    room = Room(scene, policy)
    history = next_history(scene, history, policy, waiting)
    room.kept = find_kept(scene, history, policy)
    pay_debt(scene, room, policy)
    shrink(scene, history, room, policy)
    if not room.debt_bytes and grow(waiting, history, room, policy):
        history = replace(history, short_s=scene.at_s)
    history = replace(history, grown_s=next_grown(scene, history, room, policy))
    stops = preempt(waiting, scene, history, room, policy)
    was = history.level
    history, why = next_level(scene, history, room, policy)
    actions: list[GrantAction] = []
    if history.level is not was:
        actions.append(SetLevel(history.level, why))
    history = replace(history, bursts=next_bursts(stops, waiting, scene, history, policy))
    starts = [] if stops else list(admit(scene, history, room, policy, len(waiting)))
    # Last of all: memory that a start takes back must not have been given to page cache before.
    trims = [] if room.debt_bytes else make_cache_room(scene, room, policy)
    actions += [*room.lowered.values(), *room.raised.values(), *trims]
    actions += [*stops, *fail_too_big(scene, room), *starts]
    return history, actions


def next_history(
    scene: Scene, history: History, policy: GrantPolicy, waiting: Sequence[Penned]
) -> History:
    """The history before any decision of this round."""
    was = history.cpu_gate
    return replace(
        history,
        idle_since_s=next_idle(scene, history, policy),
        urgent_s=next_urgent(waiting, scene, history, policy),
        cpu_gate=is_on(scene.cpu_pressure, policy.cpu_pressure_marks, was_on=was),
    )
