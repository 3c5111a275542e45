"""When it is reported why the first job in line does not start: once for each reason that lasts."""

from typing import NamedTuple

from ramherd.core.reasons import Why

# A head that starts within this has not waited for anything worth a line.
LASTING_S = 1.0

# The herd of the first in line, and what it waits for.
Cause = tuple[str, Why]


class WaitReports(NamedTuple):
    """The cause that was seen last, since when and until when, and the one that was reported."""

    cause: Cause | None = None
    since_s: float = 0.0
    seen_s: float = 0.0
    reported: Cause | None = None


def next_reports(
    reports: WaitReports, cause: Cause, at_s: float, lasting_s: float = LASTING_S
) -> tuple[WaitReports, bool]:
    """Whether this wait is to be reported now: its cause is a new one, and has lasted. A cause that
    was not seen for so long meanwhile begins again.
    """
    goes_on = cause == reports.cause and at_s - reports.seen_s <= lasting_s
    since_s = reports.since_s if goes_on else at_s
    seen = reports._replace(cause=cause, since_s=since_s, seen_s=at_s)
    if cause == reports.reported or at_s - since_s < lasting_s:
        return seen, False
    return seen._replace(reported=cause), True
