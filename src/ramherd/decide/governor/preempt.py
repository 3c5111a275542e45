"""Which run makes room when growth does not fit. Never the oldest, so that it always continues."""

import math
from collections.abc import Mapping, Sequence

from ramherd.core.memory import Bursts, History, Penned, Scene
from ramherd.core.model import JobState, Reason, RunEnd, Settle, Stop, Why
from ramherd.core.policies import GrantPolicy
from ramherd.decide.governor.growth import find_growing
from ramherd.decide.governor.room import Room, oldest_first

# Reasons of stops for the first waiting run.
FOR_WAITER = (Why.PATIENCE_OVER, Why.YOUNGEST_WAITS)


def next_urgent(
    waiting: Sequence[Penned], scene: Scene, history: History, policy: GrantPolicy
) -> Mapping[str, float]:
    """Runs whose patience has run out stay urgent until they have finished growing: otherwise a
    tool call that needs a gigabyte would wait out its patience for each run that makes room.
    """
    if not waiting and not history.urgent_s:
        return history.urgent_s
    at_s = scene.at_s
    marks = {run: s for run, s in history.urgent_s.items() if at_s - s < policy.urgent_for_s}
    # The waiting times of all runs count: three runs that wait for one second have lost as much as
    # one run that waits for three.
    lost_s = sum(waited_s(run, at_s) for run in waiting)
    for run in waiting:
        if run.run in marks or (run is waiting[0] and lost_s >= policy.patience_s):
            marks[run.run] = at_s
    return marks


def waited_s(run: Penned, at_s: float) -> float:
    return 0.0 if run.held_since_s is None else at_s - run.held_since_s


def preempt(
    waiting: Sequence[Penned], scene: Scene, history: History, room: Room, policy: GrantPolicy
) -> list[Stop]:
    """One run at a time: the memory that it frees may be enough."""
    if not waiting and not room.debt_bytes:
        return []
    live = oldest_first(run for run in scene.runs if not run.leaving)
    if len(live) < 2:
        return step_aside(live, scene, room, policy)
    if room.debt_bytes:
        return stop_for_debt(live, scene, room)
    if len(live) < len(scene.runs):
        return []
    return stop_for_waiter(waiting, live, scene, history, room) or stop_held(live, scene, policy)


def stop_for_debt(live: Sequence[Penned], scene: Scene, room: Room) -> list[Stop]:
    """Stops the youngest until the rest is within the lease; runs already leaving count."""
    leaving = sum(room.grants[run.run] for run in scene.runs if run.leaving)
    missing = room.debt_bytes - leaving
    stops: list[Stop] = []
    reason = Reason(
        Why.DEBT,
        granted_bytes=scene.lease_bytes + room.debt_bytes,
        lease_bytes=scene.lease_bytes,
    )
    for run in reversed(live[1:]):
        if missing <= 0:
            break
        missing -= room.grants[run.run]
        stops.append(Stop(run.run, RunEnd.PREEMPTED, reason))
    return stops


def stop_for_waiter(
    waiting: Sequence[Penned],
    live: Sequence[Penned],
    scene: Scene,
    history: History,
    room: Room,
) -> list[Stop]:
    """The oldest waiting run got nothing until its patience ran out: another run is stopped, unless
    a burst still grows, which will free its memory soon. The waiting run has to grow for a while
    before a second one is stopped for it.
    """
    if not waiting or room.raised or waiting[0].run not in history.urgent_s:
        return []
    policy, first = room.policy, waiting[0]
    is_soon = scene.at_s - last_stop_s(history) < policy.settle_s
    if is_soon or find_growing(scene, history, policy):
        return []
    victim = choose_victim(first, live)
    if is_burst_under_way(victim, live, scene, history, policy):
        return []
    return [Stop(victim.run, RunEnd.PREEMPTED, explain_victim(victim, first, scene.at_s))]


def last_stop_s(history: History) -> float:
    """When a run was last stopped for another one."""
    return max((bursts.last_s for bursts in history.bursts.values()), default=-math.inf)


def explain_victim(victim: Penned, first: Penned, at_s: float) -> Reason:
    """The youngest run may itself be the one that waits."""
    if victim is first:
        return Reason(Why.YOUNGEST_WAITS, used_bytes=first.used_bytes)
    return Reason(
        Why.PATIENCE_OVER,
        waiter=first.name or first.job,
        waited_s=round(waited_s(first, at_s), 3),
    )


def is_burst_under_way(
    victim: Penned, live: Sequence[Penned], scene: Scene, history: History, policy: GrantPolicy
) -> bool:
    """Whether a run that has just grown is expected to give back more than the victim would."""
    return any(
        run.held_since_s is None
        and scene.at_s - grown_s < policy.burst_s
        and run.used_bytes - scene.estimate(run).base_bytes > victim.grant_bytes
        for run in live
        if (grown_s := history.grown_s.get(run.run)) is not None
    )


def choose_victim(first: Penned, live: Sequence[Penned]) -> Penned:
    """The largest run that is younger than the waiting run, also held, and can resume: half grown,
    it blocks the waiting run and makes no progress itself. Otherwise the youngest. Only among the
    runs stopped least often, so that no job is stopped again and again.
    """
    held = [
        run for run in live if run.age > first.age and run.held_since_s is not None and run.resumes
    ]
    if held:
        return max(least_stopped(held), key=lambda run: run.grant_bytes)
    return live[-1]


def least_stopped(runs: Sequence[Penned]) -> Sequence[Penned]:
    most = min((run.stops for run in runs), default=0) + 1
    return [run for run in runs if run.stops <= most]


def next_bursts(
    stops: Sequence[Stop],
    waiting: Sequence[Penned],
    scene: Scene,
    history: History,
    policy: GrantPolicy,
) -> Mapping[str, Bursts]:
    """Counts the bursts for which other runs leave, by the job of the first waiting run."""
    if not any(stop.reason.why in FOR_WAITER for stop in stops):
        return history.bursts
    job, at_s = waiting[0].job, scene.at_s
    times, last_s = history.bursts.get(job, Bursts(0, -math.inf))
    is_new = at_s - last_s >= policy.same_burst_s
    live = {run.job for run in scene.runs} | {one.job for one in scene.queue}
    known = {name: bursts for name, bursts in history.bursts.items() if name in live}
    return {**known, job: Bursts(times + is_new, at_s)}


def find_kept(scene: Scene, history: History, policy: GrantPolicy) -> set[str]:
    """Runs that keep their room after a burst, because others had to leave for the last bursts: the
    same jobs would start and be stopped again.
    """
    if not history.bursts:
        return set()
    least = policy.keep_share * scene.lease_bytes
    return {
        run.run
        for run in scene.runs
        if run.grant_bytes >= least
        and (bursts := history.bursts.get(run.job)) is not None
        and (since_s := history.idle_since_s.get(run.run)) is not None
        and scene.at_s - since_s < policy.keep_s * (bursts.times - 1)
    }


def stop_held(live: Sequence[Penned], scene: Scene, policy: GrantPolicy) -> list[Stop]:
    """A run that is held for long may hold a lock that others need."""
    return [
        Stop(
            run.run,
            RunEnd.PREEMPTED,
            Reason(Why.HELD_TOO_LONG, held_s=round(held_s, 3), limit_s=policy.max_hold_s),
        )
        for run in live[1:]
        if (held_s := waited_s(run, scene.at_s)) >= policy.max_hold_s
    ][:1]


def step_aside(live: Sequence[Penned], scene: Scene, room: Room, policy: GrantPolicy) -> list[Stop]:
    """The last run does not fit into the memory that other programs leave: smaller jobs run
    meanwhile. A run that does not fit into the whole budget is too big and fails instead.
    """
    if not live or scene.lease_bytes >= scene.largest_bytes or live[0].run in room.raised:
        return []
    if (held_s := waited_s(live[0], scene.at_s)) < policy.max_hold_s:
        return []
    reason = Reason(Why.HELD_TOO_LONG, held_s=round(held_s, 3), limit_s=policy.max_hold_s)
    return [Stop(live[0].run, RunEnd.PREEMPTED, reason)]


def fail_too_big(scene: Scene, room: Room) -> list[Settle]:
    """A run that is alone, has the whole budget and is still held would wait forever."""
    if len(scene.runs) != 1:
        return []
    run = scene.runs[0]
    whole = scene.lease_bytes >= scene.largest_bytes
    if run.held_since_s is None or run.run in room.raised or not whole or run.leaving:
        return []
    reason = Reason(Why.OUTGREW_BUDGET, budget_bytes=scene.lease_bytes, used_bytes=run.used_bytes)
    return [Settle(run.job, JobState.FAILED, reason)]
