"""Why no job may start, and when the next start is tried.

There is one list of causes for the whole supervisor. Most causes are watched by a part that reports
their end. Whether a run can be prepared again shows only by trying: one start at a time, further
and further apart, until one succeeds.
"""

import math
from collections.abc import Sequence
from enum import StrEnum

from ramherd.core.model import Reason, Why
from ramherd.core.record import record
from ramherd.decide.back_off import back_off_s

# A short problem (a directory that is being restored) costs half a second. A disk that stays full
# is tried four times a minute, so jobs start soon after there is room.
FIRST_TRY_S = 0.5
LONGEST_TRY_S = 15.0
# How long to wait for the outcome of a try: a start takes some milliseconds.
OUTCOME_S = 10.0


class Cause(StrEnum):
    """Causes that keep jobs from starting. If there are two causes, starts wait for both to end."""

    # The directory, pen or process of a run cannot be created.
    PREPARATION = "preparation"
    # The store cannot be written.
    STORE = "store"
    # The disk of the state directory is full.
    DISK = "disk"
    # The keeper does not answer, or cannot be started.
    KEEPER = "keeper"
    # The ledger has not answered yet: the leases of other applications are not known.
    LEDGER = "ledger"
    # `ramherd pause`.
    USER = "user"
    # The service is about to end.
    SERVICE_ENDS = "service_ends"


@record
class StartPause:
    """`next_s` is when a start is tried anyway: never, if another part watches the cause."""

    reason: Reason
    failures: int = 0
    next_s: float = math.inf


def after_failed_start(before: StartPause | None, what: str, at_s: float) -> StartPause:
    """`what` could not be prepared, through no fault of the job."""
    failures = before.failures + 1 if before is not None else 1
    delay_s = back_off_s(failures, FIRST_TRY_S, LONGEST_TRY_S)
    return StartPause(Reason(Why.CANNOT_PREPARE, what=what), failures, at_s + delay_s)


def after_try(pause: StartPause, at_s: float) -> StartPause:
    """A start is under way: the next one is tried when its outcome is known or overdue."""
    return StartPause(pause.reason, pause.failures, max(pause.next_s, at_s + OUTCOME_S))


def explain_user_pause(paused_s: float) -> Reason:
    """Epoch seconds; 0 if an earlier version of ramherd did not record the time."""
    return Reason(Why.PAUSED, paused_at=round(paused_s, 3)) if paused_s else Reason(Why.PAUSED)


def explain_job_pause(paused_s: float) -> Reason:
    """The reason of a job that is paused alone."""
    return Reason(Why.JOB_PAUSED, paused_at=round(paused_s, 3))


def explain_start_at(start_at_s: float) -> Reason:
    """Why a job that was submitted for later has not started yet. Epoch seconds."""
    return Reason(Why.START_AT, start_at=round(start_at_s))


def explain_place(first: str) -> Reason:
    """The reason of a queued job behind the job `first`, which does not start yet."""
    return Reason(Why.BEHIND, first=first)


def explain_order(names: Sequence[str]) -> Reason:
    """The reason of a job that waits for the jobs of these names."""
    return Reason(Why.AFTER, jobs=", ".join(names))


def explain_no_service() -> Reason:
    """The reason of a queued job of the service while no service is running."""
    return Reason(Why.NO_SERVICE)


def explain_service_end() -> Reason:
    return Reason(Why.SERVICE_STOPS)


def explain_resumed() -> Reason:
    return Reason(Why.RESUMED)
