"""When to report why the first job in the queue does not start: once for each reason that lasts."""

from typing import NamedTuple

from ramherd.core.reasons import Why

# A shorter wait of the first job in the queue is not reported.
LASTING_S = 1.0

# The herd of the first job in the queue, and what the job waits for.
Cause = tuple[str, Why]


class WaitReports(NamedTuple):
    """The last cause with its first and last time, and the cause that was last reported."""

    cause: Cause | None = None
    since_s: float = 0.0
    seen_s: float = 0.0
    reported: Cause | None = None


def next_reports(
    reports: WaitReports, cause: Cause, at_s: float, lasting_s: float = LASTING_S
) -> tuple[WaitReports, bool]:
    """Whether to report this wait now: its cause is new and has lasted. A cause that was not seen
    for `lasting_s` begins again.
    """
    goes_on = cause == reports.cause and at_s - reports.seen_s <= lasting_s
    since_s = reports.since_s if goes_on else at_s
    seen = reports._replace(cause=cause, since_s=since_s, seen_s=at_s)
    if cause == reports.reported or at_s - since_s < lasting_s:
        return seen, False
    return seen._replace(reported=cause), True
