"""When a warm process is retired, and which job it serves next."""

from collections.abc import Hashable
from dataclasses import dataclass
from enum import StrEnum

from ramherd.core.memory import Admit
from ramherd.core.model import Reason, Why
from ramherd.core.policies import ReusePolicy


@dataclass(frozen=True, slots=True)
class Worn:
    """A warm process after a job, or between two jobs."""

    jobs: int
    most_jobs: int
    used_bytes: int
    age_s: float
    idle_s: float = 0.0
    # Processes besides the agent's own: they belong to the job that has ended.
    company: int = 0


@dataclass(frozen=True, slots=True)
class WarmDemand:
    """The demand for processes and memory. `job` is the first in the queue, and `key` the process
    that it could share. `held`: runs or another application wait for memory, so no process is kept.
    `short`: starts wait for memory, so a process is kept only for the first job. `needed`: another
    job may come. `full`: no further run may start.
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
    # The process answered with the session of the previous job, or not in time.
    FAILED = "failed"
    DONE = "done"


def choose_reuse(
    demand: WarmDemand, key: Hashable, grant_bytes: int, *, jobs: int, most_jobs: int
) -> Admit | None:  # fmt: skip
    """Starts the first job of the queue in a free process that has served `jobs` jobs, if the keys
    match: then no memory changes hands.
    """
    if demand.job is None or not demand.is_served_by(key):
        return None
    return Admit(demand.job, grant_bytes, explain_reuse(jobs + 1, most_jobs))


def explain_reuse(jobs: int, most_jobs: int) -> Reason:
    """The reason of a start in a process that has served other jobs; this one is number `jobs`."""
    return Reason(Why.WARM, jobs=jobs, most_jobs=most_jobs)


def why_retired_after_job(
    worn: Worn, renewal: RenewalState, *, failed: bool, kernel_kills: int
) -> Reason | None:
    """Why the process of a job that has just ended cannot serve another one. Kernel kills of its
    tools would also count for the next job.
    """
    causes = (
        ("failure", failed),
        ("kernel_kill", kernel_kills > 0),
        ("same_session", renewal is RenewalState.FAILED),
    )
    cause = next((name for name, applies in causes if applies), None)
    return retired(worn, cause) if cause is not None else None


def why_retired(worn: Worn, policy: ReusePolicy, *, wanted: bool, needed: bool) -> Reason | None:
    """None: the process serves another job. `wanted`: a run waits for memory. `needed`: another job
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
