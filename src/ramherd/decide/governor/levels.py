"""Calm, tight, single: how freely runs are started. Two marks each, and no run is ended."""

from ramherd.core.memory import History, Level, Scene
from ramherd.core.model import Reason, Why
from ramherd.core.policies import GrantPolicy
from ramherd.decide.governor.room import Room


def next_level(
    scene: Scene, history: History, room: Room, policy: GrantPolicy
) -> tuple[Level, Reason]:
    """The sternest level that something asks for."""
    if (why := find_single(scene, history, policy)) is not None:
        return Level.SINGLE, why
    if (why := find_tight(scene, history, room, policy)) is not None:
        return Level.TIGHT, why
    return Level.CALM, Reason(Why.CALM)


def is_on(value: float, marks: tuple[float, float], *, was_on: bool) -> bool:
    """On at the first mark, off below the second."""
    on, off = marks
    return value >= off if was_on else value >= on


def is_pressed(scene: Scene, policy: GrantPolicy) -> bool:
    """Not yet below the second marks."""
    return (
        scene.memory_pressure >= policy.memory_pressure_marks[1]
        or scene.swap_in_bytes_per_s >= policy.swap_in_marks[1]
    )


def find_single(scene: Scene, history: History, policy: GrantPolicy) -> Reason | None:
    """A budget under two bases, starts that keep failing, or a debt that is not paid."""
    was = history.level is Level.SINGLE
    # With an empty queue the lease is small because no more was asked for.
    base = scene.estimate(scene.queue[0]).base_bytes if scene.queue else 0
    # What runs on their way out hold is back in a moment.
    lease = scene.lease_bytes + scene.ending_bytes
    if lease < policy.single_bases[was] * base:
        return Reason(Why.SMALL_BUDGET, lease_bytes=lease, base_bytes=base)
    if scene.failed_starts >= policy.single_failed_starts:
        return Reason(Why.FAILED_STARTS, starts=scene.failed_starts)
    since = history.debt_since_s
    if since is not None and scene.at_s - since >= policy.single_debt_s:
        granted = sum(run.grant_bytes for run in scene.runs)
        return Reason(Why.DEBT, granted_bytes=granted, lease_bytes=scene.lease_bytes)
    return None


def find_tight(scene: Scene, history: History, room: Room, policy: GrantPolicy) -> Reason | None:
    was = history.level is not Level.CALM
    if room.debt_bytes:
        granted = scene.lease_bytes + room.debt_bytes
        return Reason(Why.DEBT, granted_bytes=granted, lease_bytes=scene.lease_bytes)
    if scene.failed_starts:
        return Reason(Why.FAILED_STARTS, starts=scene.failed_starts)
    if is_on(scene.memory_pressure, policy.memory_pressure_marks, was_on=was):
        return Reason(Why.MEMORY_PRESSURE, pressure=round(scene.memory_pressure, 3))
    if is_on(scene.swap_in_bytes_per_s, policy.swap_in_marks, was_on=was):
        return Reason(Why.SWAP_IN, swap_in_bytes=int(scene.swap_in_bytes_per_s))
    return None


def next_debt_since(scene: Scene, history: History, room: Room) -> float | None:
    if not room.debt_bytes:
        return None
    return scene.at_s if history.debt_since_s is None else history.debt_since_s
