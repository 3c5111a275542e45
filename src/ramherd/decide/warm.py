"""When a warm process has served long enough, and which job it serves next."""

from collections.abc import Hashable
from dataclasses import dataclass
from enum import StrEnum

from ramherd.core.memory import Admit
from ramherd.core.model import Reason, Why
from ramherd.core.policies import ReusePolicy


@dataclass(frozen=True, slots=True)
class Worn:
    """A warm process after a job, or between two."""

    jobs: int
    most_jobs: int
    used_bytes: int
    age_s: float
    idle_s: float = 0.0
    # Processes beside the agent's own: they belong to the job that is over.
    company: int = 0


@dataclass(frozen=True, slots=True)
class WarmDemand:
    """What others wait for. `job` is the first in line, and `key` what it could share; `held`: runs
    or another application wait for memory, so no process is kept; `short`: starts do, so one is
    kept for the first in line only. `needed`: some job may come yet. `full`: no more may run than
    do.
    """

    job: str | None = None
    key: Hashable = None
    held: bool = False
    short: bool = False
    needed: bool = True
    full: bool = False

    def is_memory(self, key: Hashable) -> bool:
        return self.held or (self.short and self.key != key)

    def is_served_by(self, key: Hashable) -> bool:
        return self.job is not None and not self.held and self.key == key


class RenewalState(StrEnum):
    """The new session that a process is asked for after a job."""

    NOT_ASKED = "not_asked"
    ASKED = "asked"
    # It answered with the session of the job before, or not in time.
    FAILED = "failed"
    DONE = "done"


def choose_reuse(
    demand: WarmDemand, key: Hashable, grant_bytes: int, *, jobs: int, most_jobs: int
) -> Admit | None:  # fmt: skip
    """The start of the first in line in a process that is free and has served so many jobs, if
    the two agree: then no memory changes hands.
    """
    if demand.job is None or not demand.is_served_by(key):
        return None
    return Admit(demand.job, grant_bytes, explain_reuse(jobs + 1, most_jobs))


def explain_reuse(jobs: int, most_jobs: int) -> Reason:
    """The start of a job in a process that has served others: it is the so-many-th."""
    return Reason(Why.WARM, jobs=jobs, most_jobs=most_jobs)


def why_retired_after_job(
    worn: Worn, renewal: RenewalState, *, failed: bool, kernel_kills: int
) -> Reason | None:
    """What makes the process of a job that has just ended useless for another. Kernel kills of its
    tools would count for the next job as well.
    """
    causes = (
        ("failure", failed),
        ("kernel_kill", kernel_kills > 0),
        ("same_session", renewal is RenewalState.FAILED),
    )
    cause = next((name for name, applies in causes if applies), None)
    return retired(worn, cause) if cause is not None else None


def why_retired(worn: Worn, policy: ReusePolicy, *, wanted: bool, needed: bool) -> Reason | None:
    """None: it serves another job. `wanted`: a run waits for memory. `needed`: another job
    may come.
    """
    causes = (
        ("job_limit", worn.jobs >= worn.most_jobs),
        ("left_processes", worn.company > 0),
        ("memory_wanted", wanted),
        ("not_needed", not needed),
        ("size", worn.used_bytes > policy.most_bytes),
        ("age", worn.age_s > policy.most_age_s),
        ("idle", worn.idle_s > policy.most_idle_s),
    )
    cause = next((name for name, applies in causes if applies), None)
    return retired(worn, cause) if cause is not None else None


def retired(worn: Worn, cause: str) -> Reason:
    return Reason(Why.RETIRED, cause=cause, jobs=worn.jobs, used_bytes=worn.used_bytes)
