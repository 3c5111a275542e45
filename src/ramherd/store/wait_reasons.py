"""Why a job that is queued or waiting does not run now. The stored reason is that of the last
change: `submitted` does not explain an hour in the queue.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

from ramherd.core.reasons import JobState, Reason, Why
from ramherd.decide.job_bases import BLOCKED
from ramherd.decide.start_pause import explain_job_pause, explain_order, explain_place
from ramherd.store.herds import SERVICE
from ramherd.store.sql import listing as sql
from ramherd.store.start_pauses import read_start_pauses, read_start_waits
from ramherd.store.usage_windows import find_wait, read_windows

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from ramherd.decide.usage_limits import UsageWindow
    from ramherd.store.protocol import Store

# Reasons that are no longer true once the next service runs.
PAST = (Why.SERVICE_STOPS, Why.SUPERVISOR_LOST)
# Reasons of one job alone: the jobs behind it wait for their turn.
OF_ONE_JOB = (Why.NO_ROOM_LEASE, Why.STAGGER, Why.STARTING, Why.START_AT, Why.USAGE_LIMIT)


class OpenJob(NamedTuple):
    """The stored columns of a job that does not run."""

    id: str
    herd: str
    state: str
    reason: Mapping[str, Any]
    place: int | None
    quota: str | None
    after: Sequence[str]
    paused_s: float | None
    start_at_s: float | None
    not_before_s: float


class Obstacles(NamedTuple):
    """Obstacles to starts, by supervisor: a herd of a `ramherd run`, or the service."""

    pauses: Mapping[str, Mapping[str, Any]]
    waits: Mapping[str, Mapping[str, Any]]
    windows: Sequence[UsageWindow]


def read_obstacles(store: Store) -> Obstacles:
    return Obstacles(read_start_pauses(store), read_start_waits(store), read_windows(store))


def explain_wait(store: Store, job: OpenJob, known: Obstacles) -> Mapping[str, Any]:
    """The current reason, as JSON."""
    if job.state not in (JobState.QUEUED, JobState.WAITING):
        return job.reason
    if job.state == JobState.WAITING and job.reason.get("why") in BLOCKED:
        return job.reason
    if job.paused_s is not None:
        return explain_job_pause(job.paused_s).as_json()
    return (
        explain_waiting(store, job) if job.state == JobState.WAITING else find_obstacle(job, known)
    )


def find_obstacle(job: OpenJob, known: Obstacles) -> Mapping[str, Any]:
    """The obstacle of a queued job. The start time is the reason of a job that has one."""
    supervisor = job.herd if job.place is None else SERVICE
    is_early = max(job.start_at_s or 0.0, job.not_before_s) > time.time()
    wait, past = known.waits.get(supervisor), job.reason.get("why") in PAST
    return (
        known.pauses.get(supervisor)
        or (job.reason if is_early else None)
        or (find_wait(known.windows, job.quota) if known.windows else None)
        or (explain_turn(job, wait) if wait is not None else None)
        or (Reason(Why.SUBMITTED).as_json() if past else job.reason)
    )


def explain_turn(job: OpenJob, wait: Mapping[str, Any]) -> Mapping[str, Any]:
    """`wait` is the reason of the first job in line, which `job` and `name` identify."""
    reason = {key: value for key, value in wait.items() if key not in ("job", "name")}
    if wait.get("job") in ("", job.id) or wait["why"] not in OF_ONE_JOB:
        return reason
    return explain_place(wait.get("name", "?")).as_json()


def explain_waiting(store: Store, job: OpenJob) -> Mapping[str, Any]:
    """The jobs that it waits for: those not done, or all of them while a worktree is finished."""
    rows = store.read(sql.UNDONE_NAMES, (job.id, job.herd))
    names = [name for (name,) in rows] or job.after
    return explain_order(names).as_json() if names else job.reason
