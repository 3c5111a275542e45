"""Herds, their jobs, the runs of the jobs, and the pens that hold the runs.

Writes take effect with the store's next `commit`, so that the writes of one step are one
transaction; only `add_herd` commits by itself.
"""

import json
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ramherd.core.model import (
    Exit,
    Job,
    JobState,
    JobStatus,
    ProcId,
    Reason,
    RunEnd,
    Suspicion,
)
from ramherd.core.run_account import RunAccount
from ramherd.decide.end_commands import is_on_done_due
from ramherd.decide.usage_limits import render_quota
from ramherd.jobs.stored import job_from_text, job_to_text
from ramherd.store.events import trim_events
from ramherd.store.job_numbers import number_jobs, record_last_number
from ramherd.store.owner import Owner, is_alive
from ramherd.store.protocol import Store
from ramherd.store.sql import records as sql
from ramherd.store.start_pauses import forget_starts

# The service's herds have no owner that lives and dies with them: the next service continues them.
SERVICE = "service"
SERVICE_OWNER = Owner(SERVICE, "", ProcId(0, 0))


class EnvironmentFile(NamedTuple):
    """The file with the variables of a herd, if it has any. The first `inherited_bytes` are for all
    runs (None: runs inherit the environment of the service), the rest for single jobs.
    """

    name: str | None = None
    inherited_bytes: int | None = None


NO_ENVIRONMENT = EnvironmentFile()


class StoredPen(NamedTuple):
    """`id` is the run that the pen was made for, `run` the one that lives in it now."""

    id: str
    run: str
    record: dict[str, Any]


def add_herd(
    store: Store, herd: str, owner: Owner, jobs: Iterable[JobStatus],
    *, max_cost_usd: float | None = None, env: EnvironmentFile = NO_ENVIRONMENT,
    settings: Mapping[str, Any] | None = None,
) -> None:  # fmt: skip
    """The herd is on disk before it starts, and survives a power cut."""
    with store.synced():
        insert_herd(
            store, herd, owner, max_cost_usd=max_cost_usd, env=env, settings=settings or {}
        )  # fmt: skip
        insert_jobs(store, herd, jobs)
        trim_events(store)


def insert_herd(
    store: Store, herd: str, owner: Owner,
    *, is_service: bool = False, max_cost_usd: float | None = None,
    env: EnvironmentFile = NO_ENVIRONMENT, settings: Mapping[str, Any] | None = None,
) -> None:  # fmt: skip
    """`max_cost_usd` is the cost limit for all agents of the herd together; `settings` are those of
    its `ramherd run`.
    """
    id_, boot_id, proc = owner
    row = (herd, time.time(), id_, boot_id, proc.pid, proc.start_ticks, int(is_service))
    kept = None if settings is None else json.dumps(settings)
    store.write(sql.ADD_HERD, (*row, max_cost_usd, *env, kept))


def insert_jobs(
    store: Store, herd: str, jobs: Iterable[JobStatus], after: int | None = None
) -> None:
    """All herds of the service share one line: these jobs get the places after `after`."""
    now, last = time.time(), number_jobs(store)
    rows = (job_row(herd, status, now, after) for status in jobs)
    store.write_all(sql.ADD_JOB, ((*row, number) for number, row in enumerate(rows, last + 1)))
    record_last_number(store)


def job_row(herd: str, status: JobStatus, now: float, after: int | None) -> tuple[object, ...]:
    """The row of a job, without its number."""
    job = status.job
    row = (job.id, herd, job.name, job.seq, job_to_text(job), status.state.value)
    place = None if after is None else after + job.seq
    times = (render_quota(job), job.start_at_s)
    return (*row, status.reason.as_text(), now, job.priority, place, *times)


def end_herd(store: Store, herd: str, summary: dict[str, Any]) -> None:
    store.write(sql.END_HERD, (time.time(), json.dumps(summary), herd))
    store.write(sql.ADD_ON_DONE_OF_HERD, (herd,))
    forget_starts(store, herd)


def lose_herd(store: Store, herd: str, reason: Reason) -> list[str]:
    """The supervisor of the herd died: ends its open jobs and runs. Returns the runs."""
    now = time.time()
    runs = store.write_returning(sql.LOSE_RUNS, (now, reason.as_text(), herd))
    store.write(sql.LOSE_JOBS, (reason.as_text(), now, herd))
    store.write(sql.END_HERD, (now, None, herd))
    forget_starts(store, herd)
    return [run for (run,) in runs]


def read_open_herds(store: Store) -> list[tuple[str, Owner]]:
    """Without the herds of the service, which the next service continues."""
    return [
        (herd, Owner(owner, boot_id, ProcId(pid, ticks)))
        for herd, owner, boot_id, pid, ticks in store.read(sql.OPEN_HERDS)
    ]


def read_lost_herds(store: Store, runtime: Path) -> dict[str, Owner]:
    """Herds that have not ended, and whose owner is dead: the next start of any ramherd closes
    them.
    """
    return {herd: owner for herd, owner in read_open_herds(store) if not is_alive(owner, runtime)}


def read_newest_herd(store: Store) -> str | None:
    rows = store.read(sql.NEWEST_HERD)
    return rows[0][0] if rows else None


def read_newest_batch(store: Store) -> str | None:
    """The newest herd that is not a session of `ramherd exec` or `attach`."""
    rows = store.read(sql.NEWEST_BATCH)
    return rows[0][0] if rows else None


def set_job(store: Store, status: JobStatus) -> None:
    """A job that has ended does not change: no late report of an older run affects it."""
    now = time.time()
    delay_s = status.not_before_s - time.monotonic()
    values = {
        "id": status.job.id, "state": status.state.value, "final": status.state.is_final,
        "reason": status.reason.as_text(), "attempts": status.attempts,
        "failures": status.failures, "lost": status.lost, "seen_bytes": status.seen_bytes,
        "interrupted": int(status.interrupted), "overloads": status.overloads,
        "suspicion": suspicion_to_text(status.suspicion),
        "not_before_s": now + delay_s if delay_s > 0 else 0.0, "now": now,
    }  # fmt: skip
    if store.write(sql.SET_JOB, values) and is_on_done_due(status):
        store.write(sql.ADD_ON_DONE_OF_JOB, (status.job.herd, status.job.id))


def set_base(store: Store, job: Job) -> None:
    """The commit that the worktree starts from: the branches that the job waited for are merged."""
    assert job.tree is not None
    store.write(sql.SET_BASE, (job.tree.commit, job.id))


def suspicion_to_text(suspicion: Suspicion) -> str | None:
    if suspicion == Suspicion():
        return None
    return json.dumps([suspicion.deaths, suspicion.alone, round(suspicion.lived_s, 3)])


def suspicion_from_text(text: str | None) -> Suspicion:
    return Suspicion() if text is None else Suspicion(*json.loads(text))


def set_said(store: Store, job: str, said: dict[str, Any]) -> None:
    """The report of a job's agent: session, turns, tokens, cost, result."""
    store.write(sql.SET_SAID, (json.dumps(said), job))


def set_error(store: Store, job: str, error: str | None) -> None:
    """The error that the last run of a command printed."""
    store.write(sql.SET_ERROR, (error, job))


def read_answers(store: Store, herd: str) -> dict[str, str]:
    """The answers of the agents of a herd, by job, as far as there are answers."""
    return {job: answer for job, answer in store.read(sql.ANSWERS, (herd,)) if answer is not None}


def find_job_of_herd(store: Store, herd: str, name: str) -> tuple[str, str] | None:
    """(id, state) of a job by its name in the herd, or by its id anywhere."""
    rows = store.read(sql.FIND_JOB, (herd, name, name)) or store.read(sql.FIND_JOB_BY_ID, (name,))
    return (rows[0][0], rows[0][2]) if rows else None


def find_newest_job(store: Store, name: str) -> tuple[str, str] | None:
    """(id, state) by name, from the newest herd with such a job."""
    rows = store.read(sql.FIND_NEWEST_JOB, (name,))
    return (rows[0][0], rows[0][2]) if rows else None


def read_job_names(store: Store, herd: str, most: int) -> list[str]:
    return [name for (name,) in store.read(sql.JOB_NAMES, (herd, most))]


def read_newest_jobs(store: Store, most: int) -> list[tuple[int, str, str]]:
    """Number, name and state, the newest first."""
    return [(number, name, state) for number, name, state in store.read(sql.NEWEST_JOBS, (most,))]


def read_job_state(store: Store, job: str) -> str | None:
    """None if the job was pruned."""
    rows = store.read(sql.JOB_STATE, (job,))
    return rows[0][0] if rows else None


class StoredJob(NamedTuple):
    """`said` is the report of the job's agent (`jobs.said`)."""

    job: Job
    state: JobState
    said: dict[str, Any]


def read_stored_job(store: Store, job: str) -> StoredJob | None:
    rows = store.read(sql.STORED_JOB, (job,))
    if not rows:
        return None
    ((spec, state, said),) = rows
    return StoredJob(job_from_text(spec), JobState(state), json.loads(said) if said else {})


def read_job_owner(store: Store, job: str) -> Owner | None:
    """The owner of the job's herd, until the herd has ended."""
    rows = store.read(sql.OWNER_OF_JOB, (job,))
    return Owner(rows[0][0], rows[0][1], ProcId(*rows[0][2:])) if rows else None


def is_owned(store: Store, job: str, runtime: Path) -> bool:
    """Whether the job will end by itself. A job whose `ramherd run` was killed will not; a service
    is started again.
    """
    owner = read_job_owner(store, job)
    return owner is not None and (owner.id == SERVICE or is_alive(owner, runtime))


class RunClock(NamedTuple):
    """The start of a run by the monotonic clock of a boot, and the time since then that does not
    count toward its timeout.
    """

    boot_id: str
    started_s: float
    uncounted_s: float = 0.0


def add_run(
    store: Store, run: str, job: str, attempt: int, available_bytes: int,
    *, clock: RunClock | None = None,
) -> None:  # fmt: skip
    times = None if clock is None else json.dumps(clock)
    store.write(sql.ADD_RUN, (run, job, attempt, time.time(), available_bytes, times))


def set_run_clock(store: Store, run: str, clock: RunClock) -> None:
    store.write(sql.SET_RUN_CLOCK, (json.dumps(clock), run))


def end_run(
    store: Store, run: str, end: RunEnd, reason: Reason, exit_: Exit | None,
    *, peak_bytes: int, least_bytes: int | None, after_bytes: int | None,
) -> None:  # fmt: skip
    code, signal = (exit_.code, exit_.signal) if exit_ is not None else (None, None)
    row = (time.time(), end.value, code, signal, reason.as_text(), peak_bytes)
    store.write(sql.END_RUN, (*row, least_bytes, after_bytes, run))


def set_run_account(store: Store, run: str, account: RunAccount) -> None:
    store.write(sql.SET_ACCOUNT, (*account, run))


def add_leftovers(store: Store, run: str, processes: int) -> None:
    store.write(sql.ADD_LEFTOVERS, (processes, run))


def add_residue(store: Store, run: str, residue_bytes: int) -> None:
    for statement in (sql.ADD_RESIDUE, sql.ADD_RESIDUE_OF_HERD):
        store.write(statement, (residue_bytes, run))


def read_newest_run(store: Store, job: str) -> str | None:
    rows = store.read(sql.NEWEST_RUN, (job,))
    return rows[0][0] if rows else None


def has_directory(store: Store, run: str) -> bool:
    return bool(store.read(sql.HAS_DIRECTORY, (run,)))


def add_sample(store: Store, run: str, at_s: float, used_bytes: int) -> None:
    store.write(sql.ADD_SAMPLE, (run, at_s, used_bytes))


def add_pen(store: Store, pen: str, herd: str, run: str, record: dict[str, Any]) -> None:
    store.write(sql.ADD_PEN, (pen, herd, run, json.dumps(record)))


def set_pen(store: Store, pen: str, record: dict[str, Any]) -> None:
    store.write(sql.SET_PEN, (json.dumps(record), pen))


def reassign_pen(store: Store, pen: str, run: str) -> None:
    """A warm process continues as another run."""
    store.write(sql.REASSIGN_PEN, (run, pen))


def drop_pen(store: Store, pen: str) -> None:
    store.write(sql.DROP_PEN, (pen,))


def read_pens(store: Store, herd: str) -> list[StoredPen]:
    rows = store.read(sql.PENS_OF_HERD, (herd,))
    return [StoredPen(pen, run, json.loads(record)) for pen, run, record in rows]
