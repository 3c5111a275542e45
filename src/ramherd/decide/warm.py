"""When a warm process has served long enough."""

from dataclasses import dataclass

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


def why_retired(worn: Worn, policy: ReusePolicy, *, wanted: bool, needed: bool) -> Reason | None:
    """None: it serves another job. `wanted`: somebody waits for memory. `needed`: another job
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
