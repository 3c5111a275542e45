"""Herds whose `ramherd run` was interrupted or has ended, and the process that continues them:
another `ramherd run`, or the service.

A herd has one owner at a time. A process that continues one claims it first, in the transaction
that changes its jobs: of two processes only one succeeds.
"""

import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ramherd.core.errors import UsageError
from ramherd.core.model import Event, Job, JobStatus, ProcId
from ramherd.core.record import replace
from ramherd.decide.resumption import continue_jobs
from ramherd.jobs.stored import job_from_text
from ramherd.store.events import add_event
from ramherd.store.herds import SERVICE_OWNER, EnvironmentFile
from ramherd.store.inputs import environment_path, input_path, new_environment, read_variables
from ramherd.store.owner import Owner, is_alive
from ramherd.store.protocol import Store
from ramherd.store.service_queue import status_from_row
from ramherd.store.sql import interrupted as sql
from ramherd.store.sql import service as service_sql
from ramherd.system.environ import decode_bytes, parse_words, read_all

WORDS = ("argv", "resume_argv", "args")


class StoredHerd(NamedTuple):
    """`settings` are the flags of its `ramherd run`; None for a session of `ramherd exec`."""

    id: str
    owner: Owner
    is_service: bool
    is_ended: bool
    max_cost_usd: float | None
    settings: dict[str, Any] | None
    env: EnvironmentFile


def read_stored_herd(store: Store, herd: str) -> StoredHerd | None:
    rows = store.read(sql.STORED_HERD, (herd,))
    if not rows:
        return None
    owner, boot_id, pid, ticks, service, ended, cost, settings, *env = rows[0]
    return StoredHerd(
        herd, Owner(owner, boot_id, ProcId(pid, ticks)), bool(service), bool(ended), cost,
        None if settings is None else json.loads(settings), EnvironmentFile(*env),
    )  # fmt: skip


def find_interrupted_herd(store: Store) -> str | None:
    """The newest herd that can be continued."""
    rows = store.read(sql.NEWEST_INTERRUPTED)
    return rows[0][0] if rows else None


def read_statuses(store: Store, herd: str) -> list[JobStatus]:
    """All jobs of a herd, in the order of their file."""
    return [status_from_row(row) for row in store.read(sql.STATUSES, (herd,))]


def check_free(store: Store, herd: str, runtime: Path) -> StoredHerd:
    """The herd, if no process works on it. Dead owners were cleared before."""
    found = read_stored_herd(store, herd)
    if found is None:
        raise UsageError(f"no herd {herd!r}", hint="ramherd jobs --all")
    if found.is_ended:
        if found.settings is None and not found.is_service:
            raise UsageError(f"herd {herd} was a session of ramherd exec: it cannot be resumed")
        return found
    if found.is_service:
        raise UsageError(
            f"herd {herd} belongs to the service, which continues it", hint="ramherd up"
        )
    if is_alive(found.owner, runtime):
        raise UsageError(
            f"herd {herd} is still run by another ramherd run (pid {found.owner.proc.pid})",
            hint=f"ramherd events -f --herd {herd}",
        )
    raise UsageError(
        f"the processes of herd {herd} are still there: its ramherd process died",
        hint="ramherd prune",
    )


def claim_herd(store: Store, herd: str, owner: Owner) -> None:
    """Call it in a transaction. The jobs of a herd of the service have places in its line."""
    is_service = owner == SERVICE_OWNER
    values = (owner.id, owner.boot_id, *owner.proc, int(is_service), herd)
    if not store.write(sql.CLAIM_HERD, values):
        raise UsageError(
            f"another ramherd process already continues herd {herd}", hint="ramherd jobs"
        )
    store.write(sql.COUNT_LOST_RUNS, (herd,))
    statuses = read_statuses(store, herd)
    ids = {status.job.name: status.job.id for status in statuses}
    needs = [(one.job.id, ids[name]) for one in statuses for name in one.job.after if name in ids]
    store.write_all(sql.ADD_NEED, needs)
    store.write(sql.LEAVE_LINE, (herd,))
    if is_service:
        ((last,),) = store.read(service_sql.LAST_PLACE)
        store.write(sql.JOIN_LINE, (last, herd))


def continue_herd(store: Store, herd: str) -> list[str]:
    """After the claim: queues the jobs that the interruption ended, and returns their ids."""
    now = time.time()
    changed = continue_jobs(read_statuses(store, herd), read_unfinished_names(store, herd))
    for status in changed:
        row = (status.state.value, status.reason.as_text(), now, status.job.id)
        store.write(sql.CONTINUE_JOB, row)
        kind = f"job_{status.state.value}"
        add_event(store, Event(kind, status.reason, now, herd, status.job.id))
    return [status.job.id for status in changed]


def read_unfinished_jobs(store: Store, herd: str) -> list[Job]:
    """Jobs of the herd that have ended, and whose worktree is not finished."""
    rows = store.read(service_sql.UNFINISHED_JOBS_OF_HERD, (herd,))
    return [job_from_text(spec) for (spec,) in rows]


def read_unfinished_names(store: Store, herd: str) -> set[str]:
    return {job.name for job in read_unfinished_jobs(store, herd)}


def has_interrupted_jobs(store: Store, herd: str) -> bool:
    return bool(continue_jobs(read_statuses(store, herd)))


def read_uncounted_runs(store: Store, herd: str) -> dict[str, tuple[str, int]]:
    """(run, attempt) of jobs whose agent was lost before its last report was recorded."""
    return {job: (run, at) for job, run, at in store.read(sql.UNCOUNTED_RUNS, (herd,))}


def set_cost_limit(store: Store, herd: str, max_cost_usd: float) -> None:
    store.write(sql.SET_COST_LIMIT, (max_cost_usd, herd))


def move_to_service(
    store: Store, state: Path, found: StoredHerd, env: Mapping[str, str] | None,
    change: Callable[[], list[str]],
) -> list[str]:  # fmt: skip
    """Claims a herd for the service, with an environment for its runs, and calls `change`, which
    returns the jobs that it queued. Jobs keep their own variables.
    """
    jobs = [restore_variables(state, one.job, found.env) for one in read_statuses(store, found.id)]
    with new_environment(state, jobs, env) as inputs, store.synced():
        claim_herd(store, found.id, SERVICE_OWNER)
        store.write(service_sql.SET_ENV, (*inputs.environment, found.id))
        for job in inputs.jobs:
            if job.env:
                ((spec,),) = store.read(sql.SPEC, (job.id,))
                text = json.dumps({**json.loads(spec), "env_at": job.env_at})
                store.write(service_sql.SET_SPEC, (text, job.id))
        changed = change()
    if found.env.name is not None:
        environment_path(state, found.env.name).unlink(missing_ok=True)
    return changed


def restore_variables(state: Path, job: Job, file: EnvironmentFile) -> Job:
    """The job with its own variables, if their file still exists."""
    if job.env_at is None or job.env_at[0] != file.name:
        return job
    try:
        return replace(job, env=read_variables(state, *job.env_at))
    except OSError:
        return job


def restore_inputs(state: Path, job: Job, file: EnvironmentFile) -> Job:
    """The job as it was before it was stored, with its variables and large inputs."""
    job = restore_variables(state, job, file)
    if not job.large:
        return job
    try:
        found = {name: read_input(state, job.id, name) for name in job.large}
    except OSError as error:
        raise UsageError(
            f"job {job.name!r} cannot continue: its input {error.filename} was removed",
            hint="run it again from its job file",
        ) from None
    of_brief = {name: value for name, value in found.items() if name in ("prompt", "args")}
    brief = replace(job.brief, **of_brief) if job.brief is not None else None
    of_job = {name: value for name, value in found.items() if name not in of_brief}
    return replace(job, **of_job, brief=brief, large=())


def read_input(state: Path, job: str, field: str) -> Any:
    data = read_all(str(input_path(state, job, field)))
    return tuple(map(decode_bytes, parse_words(data))) if field in WORDS else decode_bytes(data)
