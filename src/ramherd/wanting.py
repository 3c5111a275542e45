"""Who would use a warm process, or its memory."""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ramherd.errors import UsageError
from ramherd.grants import Level
from ramherd.model import JobState, JobStatus

if TYPE_CHECKING:
    from ramherd.supervisor import Supervisor


@dataclass(frozen=True, slots=True)
class Want:
    """What others wait for. `job` is the first in line, and `key` what it could share; `held`: runs
    wait for memory, so no process is kept; `short`: starts do, so one is kept for the first in
    line only. `needed`: some job may come yet.
    """

    job: JobStatus | None = None
    key: Hashable = None
    held: bool = False
    short: bool = False
    needed: bool = True

    def is_memory(self, key: Hashable) -> bool:
        return self.held or (self.short and self.key != key)


def want_of(supervisor: "Supervisor", at_s: float) -> Want:
    granting, counts = supervisor.granting, supervisor.roster.counts
    runs = supervisor.executor.runs.values()
    first = first_in_line(supervisor, at_s) if supervisor.may_start else None
    return Want(
        first,
        key_for(supervisor, first) if first is not None else None,
        held=granting.history.level is not Level.CALM or any(run.told_held for run in runs),
        short=granting.is_short,
        needed=supervisor.may_start
        and (supervisor.is_lasting or counts[JobState.QUEUED] + counts[JobState.WAITING] > 0),
    )


def first_in_line(supervisor: "Supervisor", at_s: float) -> JobStatus | None:
    line = supervisor.granting.candidates(at_s)
    first = next((one.job for one in line if one.not_before_s <= at_s), None)
    return supervisor.roster[first] if first is not None else None


def key_for(supervisor: "Supervisor", status: JobStatus) -> Hashable:
    """None: it needs a process of its own. One that goes on in its session does."""
    job, driving = status.job, supervisor.driving
    if driving is None or job.brief is None or status.interrupted:
        return None
    try:
        launch = driving.launch_warm(job, job.brief.model)
    except UsageError:  # its program is gone: that is said when it starts
        return None
    return supervisor.executor.key_of(job, launch) if launch is not None else None
