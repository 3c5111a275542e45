"""One decision: everything that is to be done about one snapshot."""

from ramherd.decide.admission import admit
from ramherd.decide.budget import largest_budget_bytes
from ramherd.decide.ends import (
    clear_leftovers,
    finish_ended,
    is_live,
    kill_overdue,
    stop_interrupted,
    stop_over_budget,
    stop_over_limit,
    stop_timed_out,
)
from ramherd.model import Action, JobState, Policy, Reason, Settle, Snapshot, Stop, Warn, Why


def decide(snapshot: Snapshot, policy: Policy) -> list[Action]:
    """Ends before starts: what leaves makes room for what comes."""
    most = largest_budget_bytes(snapshot.machine, policy)
    return [
        *finish_ended(snapshot, policy),
        *first_stop_of_each(
            [
                *stop_interrupted(snapshot),
                *stop_over_limit(snapshot),
                *stop_timed_out(snapshot),
                *stop_over_budget(snapshot, most, policy),
            ]
        ),
        *clear_leftovers(snapshot),
        *warn_of_containers(snapshot),
        *kill_overdue(snapshot, policy),
        *(cancel_queue(snapshot) if snapshot.interrupts else admit(snapshot, policy)),
    ]


def warn_of_containers(snapshot: Snapshot) -> list[Action]:
    """Said once for each run: what an engine starts for it is neither counted nor ended."""
    return [
        Warn(run.run, Reason(Why.CONTAINERS, socket=run.engine))
        for run in snapshot.runs
        if run.engine and not run.warned and is_live(run)
    ]


def first_stop_of_each(stops: list[Action]) -> list[Action]:
    """A run is stopped for one reason only: the first rule that wants it."""
    chosen: dict[str, Action] = {}
    for stop in stops:
        if isinstance(stop, Stop):
            chosen.setdefault(stop.run, stop)
    return list(chosen.values())


def cancel_queue(snapshot: Snapshot) -> list[Action]:
    """After a signal nothing starts any more."""
    reason = Reason(Why.INTERRUPTED, signals=snapshot.interrupts)
    return [Settle(status.job.id, JobState.CANCELLED, reason) for status in snapshot.queue]
