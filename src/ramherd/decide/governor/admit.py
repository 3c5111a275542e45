"""Which jobs start: as many as memory holds by statistics, not by peaks.

Bursts are short and rarely coincide: if each run had room for its peak, half of the memory would
never be used. A run that needs more than expected is held and, at worst, preempted and resumed.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice

from ramherd.core.memory import Admit, Candidate, Estimate, History, Level, Mode, Scene
from ramherd.core.model import JobState, Reason, Settle, Wait, Why
from ramherd.core.policies import GrantPolicy
from ramherd.decide.governor.growth import find_growing, is_short
from ramherd.decide.governor.levels import is_pressed
from ramherd.decide.governor.room import Room

# How many jobs are checked behind a first job that does not fit.
LOOK_BEHIND = 20


class Crowd:
    """The expected memory of all runs, including those just admitted."""

    def __init__(self, scene: Scene, policy: GrantPolicy) -> None:
        self.number = len(scene.runs) + scene.ending
        self.starting = scene.starting
        self.expected_bytes = 0.0
        self.variance = 0.0
        # The expected memory of runs that started a moment ago.
        self.fresh_bytes = 0
        # How far the other young runs are above the memory that was expected of them; below it if
        # negative, and None if there are none.
        self.excess_bytes: int | None = None
        for run in scene.runs:
            known, age_s = scene.estimate(run), scene.at_s - run.started_s
            young, fresh = age_s < policy.young_s, age_s < policy.stagger_s
            # A job that returned has its need as its grant, and does not use it yet.
            least = run.grant_bytes if fresh else known.base_bytes if young else 0
            self.expected_bytes += max(run.used_bytes, least)
            self.variance += known.sd_bytes**2
            if fresh:
                self.fresh_bytes += known.base_bytes
            elif young:
                self.excess_bytes = (self.excess_bytes or 0) + run.used_bytes - known.base_bytes

    def with_one(self, base_bytes: int, known: Estimate, z: float) -> float:
        """Expected use and its spread with one more run."""
        spread = z * math.sqrt(self.variance + known.sd_bytes**2)
        return self.expected_bytes + base_bytes + spread

    def add(self, base_bytes: int, known: Estimate) -> None:
        self.number += 1
        self.starting += 1
        self.expected_bytes += base_bytes
        self.variance += known.sd_bytes**2
        self.fresh_bytes += base_bytes


def admit(
    scene: Scene, history: History, room: Room, policy: GrantPolicy, waiting: int
) -> Iterator[Admit | Wait | Settle]:
    """Starts in order, then one Wait with the reason why the next job is not started."""
    line = ease_oldest(in_line(scene, history, policy), scene)
    if not line:
        return
    if (closed := find_closed(scene, history, policy, waiting)) is not None:
        yield Wait(line[0].job, closed)
        return
    crowd = Crowd(scene, policy)
    somebody_waits = False
    for candidate in line:
        if (too_big := find_too_big(candidate, scene)) is not None:
            yield Settle(candidate.job, JobState.FAILED, too_big)
            continue
        obstacle = find_obstacle(candidate, crowd, scene, room, policy)
        if obstacle is None and (rush := find_rush(candidate, crowd, scene, policy)) is not None:
            yield Wait(candidate.job, rush)
            return
        if obstacle is None:
            yield let_in(candidate, crowd, scene, room, policy)
            continue
        if not somebody_waits:
            somebody_waits = True
            yield Wait(candidate.job, obstacle)
        if not may_pass(candidate, scene, policy):
            return


def in_line(scene: Scene, history: History, policy: GrantPolicy) -> Sequence[Candidate]:
    """The queue is sorted by priority, then place. A job that has waited long rises, so that no job
    waits forever.
    """
    at_s, queue = scene.at_s, scene.queue
    if not queue:
        return []
    if queue[0].priority != queue[-1].priority:
        queue = sorted(queue, key=lambda one: (-risen(one, at_s, policy), one.seq))
    ready = (
        one
        for one in queue
        if one.not_before_s <= at_s
        and not (one.stops >= policy.worn_stops and would_leave_again(one, scene, history))
    )
    return list(islice(ready, LOOK_BEHIND + policy.max_starting))


def would_leave_again(candidate: Candidate, scene: Scene, history: History) -> bool:
    """Whether an older run is still there whose bursts repeatedly made others leave."""
    bursting = {job for job, bursts in history.bursts.items() if bursts.times > 1}
    return any(run.job in bursting and run.age < candidate.age for run in scene.runs)


def ease_oldest(line: Sequence[Candidate], scene: Scene) -> Sequence[Candidate]:
    """A stopped job that is older than every run starts with its base alone: room for the rest is
    made when it grows, since the oldest run is never stopped. It has to fit into the lease. Without
    other runs it gets its need at once.
    """
    if not scene.runs:
        return line
    returning = [one for one in line if one.is_returning and not needs_more(one, scene)]
    if not returning:
        return line
    oldest = min(returning, key=lambda one: one.age)
    if any(run.age < oldest.age for run in scene.runs if not run.leaving):
        return line
    eased = replace(oldest, need_bytes=oldest.promised_bytes)
    return [eased if one is oldest else one for one in line]


def risen(candidate: Candidate, at_s: float, policy: GrantPolicy) -> int:
    return candidate.priority + int((at_s - candidate.queued_s) / policy.ageing_s)


def find_closed(scene: Scene, history: History, policy: GrantPolicy, waiting: int) -> Reason | None:
    """Why no job may start now, whichever is next."""
    running = len(scene.runs) + scene.ending
    if (full := find_full(running, scene, policy)) is not None:
        return full
    if waiting or any(run.leaving for run in scene.runs):
        return Reason(Why.SOMEBODY_WAITS, waiting=max(waiting, 1))
    # Between two quanta a run is not held, but it waits for the next one in a moment.
    if is_short(scene, history, policy) and (growing := find_growing(scene, history, policy)):
        return Reason(Why.SOMEBODY_WAITS, waiting=len(growing))
    # One run at a time is always allowed, except under pressure that other programs cause.
    if history.level is not Level.CALM and (running or is_pressed(scene, policy)):
        return Reason(Why.LEVEL, level=history.level.value)
    # Agents mostly wait for their model: as many as there are cores are always allowed.
    if history.cpu_gate and running >= scene.cores:
        return Reason(Why.CPU_PRESSURE, pressure=round(scene.cpu_pressure, 3))
    return None


def find_full(running: int, scene: Scene, policy: GrantPolicy) -> Reason | None:
    if policy.max_parallel is not None and running >= policy.max_parallel:
        return Reason(Why.MAX_PARALLEL, running=running, limit=policy.max_parallel)
    if scene.ramp is not None and running >= scene.ramp:
        return Reason(Why.RAMP, running=running, limit=scene.ramp)
    return None


def find_rush(
    candidate: Candidate, crowd: Crowd, scene: Scene, policy: GrantPolicy
) -> Reason | None:
    """Starts are spread by the number under way, and by the expected memory of fresh runs until the
    young runs have shown that they use no more than expected.
    """
    if crowd.starting >= policy.max_starting:
        return Reason(Why.STARTING, starting=crowd.starting, limit=policy.max_starting)
    if has_shown_its_size(crowd, scene, policy):
        return None
    fresh = crowd.fresh_bytes
    base = scene.estimate(candidate).base_bytes
    if fresh and fresh + base > policy.stagger_share * scene.lease_bytes:
        return Reason(Why.STAGGER, fresh_bytes=fresh, within_s=policy.stagger_s)
    return None


def has_shown_its_size(crowd: Crowd, scene: Scene, policy: GrantPolicy) -> bool:
    """Whether young runs together use no more than expected, and memory is not under pressure."""
    is_pressed = scene.memory_pressure > policy.memory_pressure_marks[1]
    return crowd.excess_bytes is not None and crowd.excess_bytes <= 0 and not is_pressed


def find_too_big(candidate: Candidate, scene: Scene) -> Reason | None:
    if candidate.need_bytes <= scene.largest_bytes:
        return None
    return Reason(Why.TOO_BIG, need_bytes=candidate.need_bytes, budget_bytes=scene.largest_bytes)


def first_grant(candidate: Candidate, scene: Scene, policy: GrantPolicy) -> int:
    """At least a quantum: with a few megabytes the run would be held before it has begun."""
    base = scene.estimate(candidate).base_bytes
    first = max(candidate.need_bytes, base, policy.quantum_bytes)
    return first if candidate.limit_bytes is None else min(first, candidate.limit_bytes)


def find_obstacle(
    candidate: Candidate, crowd: Crowd, scene: Scene, room: Room, policy: GrantPolicy
) -> Reason | None:
    """Why this job does not fit. Without other runs it gets all free memory, as the oldest."""
    base = first_grant(candidate, scene, policy)
    if crowd.number == 0:
        is_short = needs_more(candidate, scene) or room.free_bytes <= 0
        return no_room(base, crowd, scene) if is_short else None
    z = policy.z_resumes if candidate.mode is Mode.RESUMES else policy.z_starts_over
    expected = crowd.with_one(base, scene.estimate(candidate), z)
    if expected > policy.fill_share * scene.lease_bytes or room.make(base) < base:
        return no_room(base, crowd, scene)
    return find_full(crowd.number, scene, policy)


def needs_more(candidate: Candidate, scene: Scene) -> bool:
    """Whether the lease is too small even for this job alone: a job that was stopped at a grant
    needs more than that, unless there is no more.
    """
    need = candidate.need_bytes + candidate.is_returning
    return min(need, scene.largest_bytes) > scene.lease_bytes


def no_room(base: int, crowd: Crowd, scene: Scene) -> Reason:
    return Reason(
        Why.NO_ROOM_LEASE,
        need_bytes=base,
        used_bytes=int(crowd.expected_bytes),
        lease_bytes=scene.lease_bytes,
    )


def let_in(
    candidate: Candidate, crowd: Crowd, scene: Scene, room: Room, policy: GrantPolicy
) -> Admit:
    base = first_grant(candidate, scene, policy)
    grant = room.make(base)
    reason = Reason(Why.FITS, need_bytes=base, have_bytes=room.free_bytes)
    room.free_bytes -= grant
    crowd.add(base, scene.estimate(candidate))
    return Admit(candidate.job, grant, reason)


def may_pass(passed: Candidate, scene: Scene, policy: GrantPolicy) -> bool:
    """Whether smaller jobs behind this one may start first: if it could not start even alone; if it
    is a stopped job that waits until its need fits, or until it is the oldest; or, for a while, if
    it is known to be large.
    """
    if passed.is_returning or passed.need_bytes > scene.lease_bytes:
        return True
    large = passed.need_bytes >= 4 * scene.estimate(passed).base_bytes
    return large and scene.at_s - passed.queued_s < policy.overtake_s
