"""More for those at their grant, the oldest first; less for those that do not use theirs."""

from collections.abc import Mapping

from ramherd.core.memory import History, Penned, Scene, Trim
from ramherd.core.model import Reason, Why
from ramherd.core.policies import GrantPolicy
from ramherd.decide.governor.room import Room, is_at_work, oldest_first


def waiters(scene: Scene) -> list[Penned]:
    """Held at their grant, oldest first."""
    held = [run for run in scene.runs if run.held_since_s is not None and not run.leaving]
    return list(oldest_first(held)) if len(held) > 1 else held


def grow(waiting: list[Penned], history: History, room: Room, policy: GrantPolicy) -> bool:
    """A quantum each while there is room. Less than a quantum goes to the first one only: a
    younger run must not get the little that the oldest waits for. While memory is short the
    others get nothing: tool calls that grow side by side would each stand half grown and block
    the other. Whether a run was refused.
    """
    # Less than this is worth a hold only to a run that has all the rest of the lease.
    least = 1 if len(room.grants) == 1 else policy.slim_bytes
    for run in waiting[:1] if is_short(room.scene, history, policy) else waiting:
        # To go on at all it has to get away from its mark; one that was held late is past it.
        held_at = run.grant_bytes - policy.arm_below_bytes - policy.near_bytes
        wish = policy.quantum_bytes + max(run.used_bytes - held_at, 0)
        free = room.make(wish)
        if free < least or (free < wish and run is not waiting[0]):
            return True
        extra = useful(run, free, room, policy)
        room.grow(run, extra, Reason(Why.GROWTH, used_bytes=run.used_bytes, free_bytes=free))
    return False


def next_grown(
    scene: Scene, history: History, room: Room, policy: GrantPolicy
) -> Mapping[str, float]:
    """When each run last grew, for as long as its burst may last."""
    if not room.raised and not history.grown_s:
        return history.grown_s
    at_s = scene.at_s
    marks = {run: s for run, s in history.grown_s.items() if at_s - s < policy.burst_s}
    return {**marks, **dict.fromkeys(room.raised, at_s)}


def is_short(scene: Scene, history: History, policy: GrantPolicy) -> bool:
    """Whether growth was refused a moment ago."""
    return history.short_s is not None and scene.at_s - history.short_s < policy.short_for_s


def useful(run: Penned, extra_bytes: int, room: Room, policy: GrantPolicy) -> int:
    """No more than its `memory_limit` allows: there the kernel acts."""
    if run.limit_bytes is None:
        return extra_bytes
    most = run.limit_bytes + policy.arm_below_bytes
    return min(extra_bytes, max(most - room.grants[run.run], 1))


def make_cache_room(scene: Scene, room: Room, policy: GrantPolicy) -> list[Trim]:
    """Page cache makes a run faster: it may have what no other run wants, twice as much
    each time. Else it is dropped, so that growth of the run's own shows again.
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
    """Since when each run has been granted more than it uses and the headroom. Page cache is
    left alone for now: it is taken when another run needs it.
    """
    marks: dict[str, float] = {}
    for run in scene.runs:
        idle = run.grant_bytes - run.used_bytes - run.cache_bytes
        if idle > policy.headroom_bytes and is_at_work(run):
            marks[run.run] = history.idle_since_s.get(run.run, scene.at_s)
    return marks


def shrink(scene: Scene, history: History, room: Room, policy: GrantPolicy) -> None:
    """A grant follows usage down after a while; bursts come in rows, so not at once."""
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
    """The budget fell: grants are lowered at once to what is used, promised or not."""
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
