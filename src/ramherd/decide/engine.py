"""One decision: all actions that follow from one snapshot."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TypeVar

from ramherd.core.model import Action, JobState, Reason, Settle, Snapshot, Stop, Wait, Warn, Why
from ramherd.core.policies import Policy
from ramherd.decide.budget import largest_budget_bytes
from ramherd.decide.run_end import (
    clear_leftovers,
    finish_ended,
    is_live,
    kill_overdue,
    stop_interrupted,
    stop_over_budget,
    stop_over_limit,
    stop_timed_out,
    stop_without_access,
)

T = TypeVar("T")
# The reasons to wait that `--no-wait` refuses. Waiting for a held run is not among them: most holds
# take some milliseconds.
MEMORY = (Why.NO_ROOM_LEASE, Why.LEVEL, Why.NO_LEASE)


def decide(snapshot: Snapshot, policy: Policy) -> list[Action]:
    """Decides how runs end. The governor decides which jobs start and which runs make room."""
    most = largest_budget_bytes(snapshot.machine, policy)
    finished = finish_ended(snapshot, policy)
    over = {finish.run for finish in finished}
    snapshot = replace(snapshot, runs=[run for run in snapshot.runs if run.run not in over])
    return [
        *finished,
        *first_stop_of_each(
            [
                *stop_interrupted(snapshot),
                *stop_over_limit(snapshot),
                *stop_timed_out(snapshot),
                *stop_without_access(snapshot),
                *stop_over_budget(snapshot, most, policy),
            ]
        ),
        *clear_leftovers(snapshot),
        *warn_of_containers(snapshot),
        *kill_overdue(snapshot, policy),
        *(cancel_queue(snapshot) if snapshot.interrupts else []),
    ]


def refuse_waits(orders: Iterable[T], policy: Policy) -> Iterator[T | Settle]:
    """With `--no-wait` no job waits for memory; jobs do wait for `--max-parallel`."""
    for order in orders:
        if policy.no_wait and isinstance(order, Wait) and order.reason.why in MEMORY:
            reason = Reason(Why.NO_WAIT, obstacle=order.reason.why.value, **order.reason.numbers)
            yield Settle(order.job, JobState.FAILED, reason)
        else:
            yield order


def warn_of_containers(snapshot: Snapshot) -> list[Action]:
    """A warning, once for each run: containers that an engine starts for the run are neither
    counted nor ended.
    """
    return [
        Warn(run.run, Reason(Why.CONTAINERS, socket=run.engine))
        for run in snapshot.runs
        if run.engine and not run.warned and is_live(run)
    ]


def first_stop_of_each(stops: list[Action]) -> list[Action]:
    """A run is stopped for one reason only: that of the first rule that applies."""
    chosen: dict[str, Action] = {}
    for stop in stops:
        if isinstance(stop, Stop):
            chosen.setdefault(stop.run, stop)
    return list(chosen.values())


def cancel_queue(snapshot: Snapshot) -> list[Action]:
    """After a signal, no more jobs start."""
    reason = Reason(Why.INTERRUPTED, signals=snapshot.interrupts)
    return [Settle(status.job.id, JobState.CANCELLED, reason) for status in snapshot.queue]
