"""What follows from the requests of a user, and from the end of the service."""

from collections.abc import Iterable, Sequence

from ramherd.core.model import JobState, JobStatus, Reason, RunEnd, Settle, Stop, Why
from ramherd.core.units import format_size

CANCEL, RECYCLE, RETRY = "ramherd cancel", "ramherd recycle", "ramherd retry"


def choose_stop(run: str, *, cancel: bool, why: Why = Why.ASKED) -> Stop:
    """For a job that runs: it is cancelled, or put back in the queue. One that is cancelled
    because its user interrupted `ramherd run` can go on later.
    """
    end = RunEnd.CANCELLED if cancel else RunEnd.RECYCLED
    return Stop(run, end, explain_request(why, CANCEL if cancel else RECYCLE))


def choose_settle(status: JobStatus, *, cancel: bool, why: Why = Why.ASKED) -> Settle | None:
    """For a job that does not run."""
    if not cancel or status.state.is_final:
        return None
    return Settle(status.job.id, JobState.CANCELLED, explain_request(why, CANCEL))


def explain_retry(allow: Sequence[str]) -> Reason:
    """Of a job that its user queues again, with tools allowed that were denied before."""
    if allow:
        return Reason(Why.ALLOWED, rules=", ".join(allow))
    return explain_request(Why.ASKED, RETRY)


def explain_request(why: Why, by: str) -> Reason:
    """With the command that asked for it."""
    return Reason(why, by=by) if why is Why.ASKED else Reason(why)


def explain_edit(priority: int | None, memory_bytes: int | None) -> Reason:
    """Of a job that its user has changed in the queue."""
    changes = [
        "" if priority is None else f"priority {priority}",
        "" if memory_bytes is None else f"memory {format_size(memory_bytes)}",
    ]
    return Reason(Why.EDITED, changes=", ".join(filter(None, changes)))


def stop_for_service(runs: Iterable[str]) -> list[Stop]:
    """The service ends: the next one goes on with the jobs of these runs."""
    return [Stop(run, RunEnd.RECYCLED, Reason(Why.SERVICE_STOPS)) for run in runs]
