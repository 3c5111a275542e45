"""Actions for the requests of a user, and for the end of the service."""

from collections.abc import Iterable, Sequence

from ramherd.core.model import JobState, JobStatus, Reason, RunEnd, Settle, Stop, Why
from ramherd.core.units import format_size

CANCEL, RECYCLE, RETRY = "ramherd cancel", "ramherd recycle", "ramherd retry"


def choose_stop(run: str, *, cancel: bool, why: Why = Why.ASKED) -> Stop:
    """For a running job: it is cancelled, or returned to the queue. A job that is cancelled because
    the user interrupted `ramherd run` can resume later.
    """
    end = RunEnd.CANCELLED if cancel else RunEnd.RECYCLED
    return Stop(run, end, explain_request(why, CANCEL if cancel else RECYCLE))


def choose_settle(status: JobStatus, *, cancel: bool, why: Why = Why.ASKED) -> Settle | None:
    """For a job that is not running."""
    if not cancel or status.state.is_final:
        return None
    return Settle(status.job.id, JobState.CANCELLED, explain_request(why, CANCEL))


def explain_retry(allow: Sequence[str]) -> Reason:
    """The reason of a job that the user queued again, with the tools that are now allowed."""
    if allow:
        return Reason(Why.ALLOWED, rules=", ".join(allow))
    return explain_request(Why.ASKED, RETRY)


def explain_request(why: Why, by: str) -> Reason:
    """The reason, with the command that requested the change."""
    return Reason(why, by=by) if why is Why.ASKED else Reason(why)


def explain_edit(priority: int | None, memory_bytes: int | None) -> Reason:
    """The reason of a queued job that the user has edited."""
    changes = [
        "" if priority is None else f"priority {priority}",
        "" if memory_bytes is None else f"memory {format_size(memory_bytes)}",
    ]
    return Reason(Why.EDITED, changes=", ".join(filter(None, changes)))


def stop_for_service(runs: Iterable[str]) -> list[Stop]:
    """The service ends: the next service resumes the jobs of these runs."""
    return [Stop(run, RunEnd.RECYCLED, Reason(Why.SERVICE_STOPS)) for run in runs]
