"""Which job makes the keeper die, if any of them does.

A keeper that dies takes every run with it, and mostly nothing shows the cause: a job that kills it,
a job that crashes it, or something outside. So jobs that ran at several deaths are suspects, and
further deaths narrow them down:

- Suspects run before other jobs: half of those that most deaths point to, and nothing else starts
  meanwhile. A suspect is cleared when its run ends by itself, or outlives those that died.
- The last suspect runs alone. Before it does so again, the keeper has to live without it for a
  while. Only deaths with it alone, and none without it in between, make the job fail.

No death costs a retry. The rules are the same when the service dies together with the keeper. A
reboot, and a keeper that was replaced because it did not answer, count for nobody.
"""

from collections.abc import Iterable, Sequence

from ramherd.core.model import JobState, JobStatus, Reason, Suspicion, Why
from ramherd.core.policies import Policy
from ramherd.core.record import record, replace

# The keeper, or the supervisor and the keeper, died under a run.
DEATHS = (Why.KEEPER_LOST, Why.SUPERVISOR_LOST)


@record
class Trial:
    """Of all queued jobs only these may start now; the others wait for the reason."""

    jobs: tuple[str, ...]
    reason: Reason


def after_death(status: JobStatus, reason: Reason, policy: Policy) -> JobStatus:
    """The next status of a job whose run died with the keeper. The reason says how old the run was,
    and how many others were `beside` it; without that the death counts for nobody.
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
    """The keeper died while this job did not run. Its deaths alone prove nothing any more."""
    return replace(status, suspicion=replace(status.suspicion, alone=0))


def after_survival(status: JobStatus) -> JobStatus:
    """Cleared. How long its runs lived is still known: if it is suspected again, by a death at a
    greater age, the next trial takes longer.
    """
    return replace(status, suspicion=Suspicion(lived_s=status.suspicion.lived_s))


def is_suspect(suspicion: Suspicion, policy: Policy) -> bool:
    return suspicion.deaths >= policy.suspect_deaths


def is_survivor(suspicion: Suspicion, ran_s: float, policy: Policy) -> bool:
    """Whether a run has outlived those of the job that died with the keeper."""
    longest_s = policy.clear_factor * suspicion.lived_s + policy.clear_margin_s
    return suspicion.deaths > 0 and ran_s >= longest_s


def choose_trial(
    statuses: Iterable[JobStatus], quiet_s: float, policy: Policy
) -> Trial | None:  # fmt: skip
    """Which suspects run next; None without suspects. `statuses` are those of all jobs that may be
    suspects, running or queued, the first in line first; `quiet_s` is the time since the last
    death.
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
    """Half of those with most deaths, at least one. If the keeper dies again these have one death
    more than the others: the next half is chosen among them.
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
