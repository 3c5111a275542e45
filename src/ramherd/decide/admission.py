"""Which jobs start now. Strictly in order: the first that does not fit holds back the rest,
so that a large job is not overtaken for ever by small ones.
"""

from dataclasses import dataclass

from ramherd.decide.budget import (
    budget_bytes,
    largest_budget_bytes,
    promised_bytes,
    reserved_bytes,
)
from ramherd.model import (
    Action,
    JobState,
    JobStatus,
    Policy,
    Reason,
    Settle,
    Snapshot,
    Start,
    Wait,
    Why,
)


@dataclass
class Room:
    """What is left while one round of admissions goes on."""

    budget_bytes: int
    free_bytes: int
    available_bytes: int
    slots: float
    running: int
    starting: int

    def take(self, need_bytes: int) -> None:
        self.free_bytes -= need_bytes
        self.available_bytes -= need_bytes
        self.slots -= 1
        self.running += 1
        self.starting += 1


def admit(snapshot: Snapshot, policy: Policy) -> list[Action]:
    """Starts in order while they fit, then one Wait that says why the next does not."""
    room = measure_room(snapshot, policy)
    actions: list[Action] = []
    for status in snapshot.queue:
        if status.not_before_s > snapshot.at_s:
            continue
        if (too_big := is_too_big(status, snapshot, policy)) is not None:
            actions.append(Settle(status.job.id, JobState.FAILED, too_big))
            continue
        if (obstacle := find_obstacle(status, room, policy)) is not None:
            actions.append(turn_away(status, obstacle, policy))
            break
        need = status.need_bytes
        actions.append(
            Start(status.job.id, Reason(Why.FITS, need_bytes=need, have_bytes=room.free_bytes))
        )
        room.take(need)
    return actions


def measure_room(snapshot: Snapshot, policy: Policy) -> Room:
    budget = budget_bytes(snapshot.machine, snapshot.fleet_used_bytes, policy)
    slots = float("inf") if policy.max_parallel is None else policy.max_parallel
    return Room(
        budget_bytes=budget,
        free_bytes=budget - reserved_bytes(snapshot),
        available_bytes=snapshot.machine.free_bytes - promised_bytes(snapshot),
        slots=slots - len(snapshot.runs),
        running=len(snapshot.runs),
        starting=sum(not run.started for run in snapshot.runs),
    )


def is_too_big(status: JobStatus, snapshot: Snapshot, policy: Policy) -> Reason | None:
    """A job that needs more than the whole budget would wait for ever."""
    need, most = status.need_bytes, largest_budget_bytes(snapshot.machine, policy)
    return Reason(Why.TOO_BIG, need_bytes=need, budget_bytes=most) if need > most else None


def find_obstacle(status: JobStatus, room: Room, policy: Policy) -> Reason | None:
    need = status.need_bytes
    if room.slots < 1:
        return Reason(Why.MAX_PARALLEL, running=room.running, limit=policy.max_parallel or 0)
    if room.starting >= policy.max_starting:
        return Reason(Why.STARTING, starting=room.starting, limit=policy.max_starting)
    if need > room.free_bytes:
        return Reason(
            Why.NO_ROOM_BUDGET,
            need_bytes=need, have_bytes=max(room.free_bytes, 0), budget_bytes=room.budget_bytes,
        )  # fmt: skip
    if need > room.available_bytes:
        return Reason(Why.NO_ROOM_MACHINE, need_bytes=need, have_bytes=max(room.available_bytes, 0))
    return None


def turn_away(status: JobStatus, obstacle: Reason, policy: Policy) -> Action:
    """With `--no-wait` nobody waits for memory; for `--max-parallel` everybody does."""
    if policy.no_wait and obstacle.why in (Why.NO_ROOM_BUDGET, Why.NO_ROOM_MACHINE):
        return Settle(status.job.id, JobState.FAILED, Reason(Why.NO_WAIT, **obstacle.numbers))
    return Wait(status.job.id, obstacle)
