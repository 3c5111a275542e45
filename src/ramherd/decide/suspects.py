"""Which job makes the keeper die, if any of them does.

A keeper that dies takes every run with it, and the cause is usually not visible: a job that kills
it, a job that crashes it, or something outside. So jobs that ran at several deaths are suspects,
and further deaths narrow them down:

- Suspects run before other jobs: half of those with most deaths, and nothing else starts meanwhile.
  A suspect is cleared when its run ends by itself, or outlives the runs that died.
- The last suspect runs alone. Before it does so again, the keeper has to live without it for a
  while. The job fails only after deaths with it alone, and none without it in between.

No death costs a retry. The rules are the same when the service dies together with the keeper. A
reboot, and the replacement of a keeper that did not answer, count against no job.
"""

from collections.abc import Iterable, Sequence

from ramherd.core.model import JobState, JobStatus, Reason, Suspicion, Why
from ramherd.core.policies import Policy
from ramherd.core.record import record, replace

# The keeper, or the supervisor and the keeper, died during a run.
DEATHS = (Why.KEEPER_LOST, Why.SUPERVISOR_LOST)


@record
class Trial:
    """Only these queued jobs may start now; the others wait for the reason."""

    jobs: tuple[str, ...]
    reason: Reason


def after_death(status: JobStatus, reason: Reason, policy: Policy) -> JobStatus:
    """The next status of a job whose run died with the keeper. The reason has the age of the run
    and the number of other runs `beside` it; without these numbers the death counts against no job.
    """
    status = replace(status, state=JobState.QUEUED, reason=reason, interrupted=True)
    if "beside" not in reason.numbers:
        return status
    before = status.suspicion
    is_alone = is_suspect(before, policy) and not reason.numbers["beside"]
    lived_s = max(before.lived_s, float(reason.numbers["lived_s"]))
    found = Suspicion(before.deaths + 1, before.alone + is_alone, lived_s)
    status = replace(status, suspicion=found)
    if found.alone >= policy.alone_deaths:
        proved = Reason(Why.ENDS_KEEPER, deaths=found.deaths, alone=found.alone)
        return replace(status, state=JobState.FAILED, reason=proved)
    if is_suspect(found, policy):
        return replace(status, reason=Reason(Why.SUSPECTED, deaths=found.deaths))
    return status


def after_other_death(status: JobStatus) -> JobStatus:
    """The keeper died while this job did not run. Its deaths alone no longer prove anything."""
    return replace(status, suspicion=replace(status.suspicion, alone=0))


def after_survival(status: JobStatus) -> JobStatus:
    """The job is cleared. The age that its runs reached is kept: if a death at a greater age makes
    it a suspect again, the next trial takes longer.
    """
    return replace(status, suspicion=Suspicion(lived_s=status.suspicion.lived_s))


def is_suspect(suspicion: Suspicion, policy: Policy) -> bool:
    return suspicion.deaths >= policy.suspect_deaths


def is_survivor(suspicion: Suspicion, ran_s: float, policy: Policy) -> bool:
    """Whether a run has outlived the job's runs that died with the keeper."""
    longest_s = policy.clear_factor * suspicion.lived_s + policy.clear_margin_s
    return suspicion.deaths > 0 and ran_s >= longest_s


def choose_trial(
    statuses: Iterable[JobStatus], quiet_s: float, policy: Policy
) -> Trial | None:  # fmt: skip
    """Which suspects run next; None without suspects. `statuses` are all jobs that may be suspects,
    running or queued, in queue order; `quiet_s` is the time since the last death.
    """
    suspects = [status for status in statuses if is_suspect(status.suspicion, policy)]
    if not suspects:
        return None
    tried = choose_half(suspects)
    deaths = tried[0].suspicion.deaths
    if len(tried) == 1 and (wait := find_wait(tried[0], quiet_s, policy)) is not None:
        return Trial((), wait)
    reason = Reason(Why.SUSPECTS_FIRST, deaths=deaths, suspects=len(suspects), tried=len(tried))
    return Trial(tuple(status.job.id for status in tried), reason)


def choose_half(suspects: Sequence[JobStatus]) -> Sequence[JobStatus]:
    """Half of the suspects with most deaths, at least one. If the keeper dies again, this half has
    one death more than the others: the next half is chosen from it.
    """
    most = max(status.suspicion.deaths for status in suspects)
    prime = [status for status in suspects if status.suspicion.deaths == most]
    return prime[: max(len(prime) // 2, 1)]


def find_wait(suspect: JobStatus, quiet_s: float, policy: Policy) -> Reason | None:
    """Why the trial alone is not repeated yet: the keeper has to live without the job first."""
    suspicion = suspect.suspicion
    wished_s = max(policy.alone_factor * suspicion.lived_s, policy.alone_least_s)
    wait_s = min(wished_s, policy.alone_most_s)
    if not suspicion.alone or suspect.state is not JobState.QUEUED or quiet_s >= wait_s:
        return None
    return Reason(Why.KEEPER_ALONE, name=suspect.job.name, wait_s=wait_s)
