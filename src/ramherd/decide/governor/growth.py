"""Growth for runs at their grant, and smaller grants for runs that use less."""

import math
from collections.abc import Mapping, Sequence

from ramherd.core.memory import History, Penned, Scene, Trim
from ramherd.core.model import Reason, Why
from ramherd.core.policies import GrantPolicy
from ramherd.decide.governor.room import Room, is_at_work, oldest_first


def waiters(scene: Scene) -> list[Penned]:
    """Runs held at their grant, oldest first."""
    held = [run for run in scene.runs if run.held_since_s is not None and not run.leaving]
    return list(oldest_first(held)) if len(held) > 1 else held


def grow(waiting: Sequence[Penned], history: History, room: Room, policy: GrantPolicy) -> bool:
    """A quantum for each run while there is room, the run that has grown most first: a burst that
    has begun is finished before another one, also when it is not held between two quanta. Tool
    calls that grow side by side would each stop half grown and block the other, so the others grow
    only if the first could take as much again, and not at all while memory is short. Returns
    whether a run was refused.
    """
    if not waiting:
        return False
    growing = find_growing(room.scene, history, policy)
    first, *others = most_grown_first([*waiting, *growing], room.scene)
    if first.held_since_s is not None and not grow_first(first, room, policy):
        return True
    if is_short(room.scene, history, policy):
        return False
    held = [run for run in others if run.held_since_s is not None]
    return not grow_beside(first, held, room, policy)


def grow_beside(first: Penned, others: Sequence[Penned], room: Room, policy: GrantPolicy) -> bool:
    """Returns whether there was room for each of the others."""
    again = grown_bytes(first, room.scene)
    for run in others:
        wish = next_wish(run, policy)
        if (free := room.make(wish)) < wish:
            return False
        if room.make(wish + again) < wish + again:
            return True
        raise_grant(run, free, room, policy)
    return True


def grow_first(run: Penned, room: Room, policy: GrantPolicy) -> bool:
    """The first run takes less than a quantum too: no other run may get the little that it waits
    for. Returns whether it got any.
    """
    # Less than this is worth a hold only for a run that has the whole rest of the lease.
    least = 1 if len(room.grants) == 1 else policy.slim_bytes
    free = room.make(next_wish(run, policy))
    if free < least:
        return False
    raise_grant(run, free, room, policy)
    return True


def raise_grant(run: Penned, free_bytes: int, room: Room, policy: GrantPolicy) -> None:
    extra = useful(run, free_bytes, room, policy)
    room.grow(run, extra, Reason(Why.GROWTH, used_bytes=run.used_bytes, free_bytes=free_bytes))


def next_wish(run: Penned, policy: GrantPolicy) -> int:
    """To continue, a run has to get away from its mark; a run that was held late is past it."""
    held_at = run.grant_bytes - policy.arm_below_bytes - policy.near_bytes
    return policy.quantum_bytes + max(run.used_bytes - held_at, 0)


def most_grown_first(runs: Sequence[Penned], scene: Scene) -> Sequence[Penned]:
    """The oldest first among runs that have grown as much."""
    return sorted(runs, key=lambda run: (-grown_bytes(run, scene), run.age))


def grown_bytes(run: Penned, scene: Scene) -> int:
    """How far the grant of a run is above the memory that was expected of it."""
    return max(run.grant_bytes - scene.estimate(run).base_bytes, 0)


def find_growing(scene: Scene, history: History, policy: GrantPolicy) -> list[Penned]:
    """Runs that got a quantum a moment ago and are not held at the next one yet. A run that got it
    in this very moment has not used it.
    """
    at_s, grown_s = scene.at_s, history.grown_s
    return [
        run
        for run in scene.runs
        if is_at_work(run) and 0 < at_s - grown_s.get(run.run, -math.inf) < policy.growing_s
    ]


def next_grown(
    scene: Scene, history: History, room: Room, policy: GrantPolicy
) -> Mapping[str, float]:
    """The time of each run's last growth, for as long as its burst may last."""
    if not room.raised and not history.grown_s:
        return history.grown_s
    at_s = scene.at_s
    marks = {run: s for run, s in history.grown_s.items() if at_s - s < policy.burst_s}
    return {**marks, **dict.fromkeys(room.raised, at_s)}


def is_short(scene: Scene, history: History, policy: GrantPolicy) -> bool:
    """Whether growth was refused a moment ago."""
    return history.short_s is not None and scene.at_s - history.short_s < policy.short_for_s


def useful(run: Penned, extra_bytes: int, room: Room, policy: GrantPolicy) -> int:
    """No more than `memory_limit` allows: from there on the kernel acts."""
    if run.limit_bytes is None:
        return extra_bytes
    most = run.limit_bytes + policy.arm_below_bytes
    return min(extra_bytes, max(most - room.grants[run.run], 1))


def make_cache_room(scene: Scene, room: Room, policy: GrantPolicy) -> list[Trim]:
    """Page cache makes a run faster: it may use memory that no other run needs, twice as much each
    time. Otherwise it is dropped, so that growth of the run's own memory is visible again.
    """
    trims: list[Trim] = []
    for run in scene.runs:
        if not run.cache_full or not is_at_work(run) or run.run in room.lowered:
            continue
        reason = Reason(Why.CACHE, used_bytes=run.used_bytes, cache_bytes=run.cache_bytes)
        extra = useful(run, max(policy.quantum_bytes, run.cache_bytes), room, policy)
        if extra <= room.free_bytes - policy.quantum_bytes:
            room.grow(run, extra, reason)
        else:
            trims.append(Trim(run.run, reason))
    return trims


def next_idle(scene: Scene, history: History, policy: GrantPolicy) -> dict[str, float]:
    """The time since which each run's grant has exceeded its use plus the headroom. Page cache is
    kept for now: it is taken when another run needs the memory.
    """
    marks: dict[str, float] = {}
    for run in scene.runs:
        idle = run.grant_bytes - run.used_bytes - run.cache_bytes
        if idle > policy.headroom_bytes and is_at_work(run):
            marks[run.run] = history.idle_since_s.get(run.run, scene.at_s)
    return marks


def shrink(scene: Scene, history: History, room: Room, policy: GrantPolicy) -> None:
    """A grant follows usage down after a while, not at once, because bursts come in series."""
    for run in scene.runs:
        since = history.idle_since_s.get(run.run)
        is_young = scene.at_s - run.started_s < policy.young_s
        if since is None or is_young or run.run in room.kept:
            continue
        if (idle_s := scene.at_s - since) >= policy.shrink_after_s:
            keep = run.used_bytes + run.cache_bytes + policy.headroom_bytes
            to = max(keep, run.promised_bytes)
            reason = Reason(Why.IDLE_GRANT, used_bytes=run.used_bytes, idle_s=round(idle_s, 3))
            room.lower(run, to, reason)


def pay_debt(scene: Scene, room: Room, policy: GrantPolicy) -> None:
    """The budget fell: grants are lowered at once to the memory in use, even below `memory`."""
    if not room.debt_bytes:
        return
    reason = Reason(
        Why.DEBT,
        granted_bytes=scene.lease_bytes + room.debt_bytes,
        lease_bytes=scene.lease_bytes,
    )
    for run in scene.runs:
        if is_at_work(run):
            room.lower(run, run.used_bytes + policy.slim_bytes, reason)
