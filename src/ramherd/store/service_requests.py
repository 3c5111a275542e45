"""Requests of other processes to the service, through the store: new herds, and wishes about jobs.

Only the service changes jobs that have not ended, so a wish is written beside the job and stays
until it is fulfilled, even if a process dies meanwhile. While another program has the store locked,
a cancellation is a file instead. Jobs that have ended belong to no process, so a retry changes them
here.
"""

import json
import os
import shlex
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from enum import StrEnum
from pathlib import Path

from ramherd.core.errors import StoreUnavailable, UsageError
from ramherd.core.model import Event, Job, JobState, Reason, Why
from ramherd.decide.job_requests import explain_edit, explain_retry
from ramherd.decide.job_state import first_status
from ramherd.decide.start_pause import explain_job_pause, explain_resumed
from ramherd.decide.usage_limits import quota_of
from ramherd.jobs.stored import job_from_text
from ramherd.store.events import add_event, trim_events
from ramherd.store.herds import SERVICE_OWNER, insert_herd, insert_jobs
from ramherd.store.inputs import (
    environment_path,
    new_environment,
    read_inherited,
    writing_inputs,
)
from ramherd.store.interrupted_herds import (
    StoredHerd,
    continue_herd,
    move_to_service,
    read_stored_herd,
    set_cost_limit,
)
from ramherd.store.protocol import Store
from ramherd.store.service_herds import read_environment_file
from ramherd.store.sql import service as sql
from ramherd.store.usage_windows import end_waits

PAUSED = "paused"


class Wish(StrEnum):
    CANCEL = "cancel"
    RECYCLE = "recycle"
    # Cancelled by the user's Ctrl-C; the user may continue the job later.
    INTERRUPT = "interrupt"


def submit(
    store: Store, state: Path, herd: str, jobs: Sequence[Job], env: Mapping[str, str] | None,
    *, max_cost_usd: float | None = None, on_done: str | None = None,
) -> None:  # fmt: skip
    """The herd is on disk, complete, before this returns. `env` is the environment of the program
    that submits: a file below `state`, like all data that is kept out of the database.
    """
    with writing_inputs(state, jobs, env) as inputs, store.synced():
        insert_herd(
            store, herd, SERVICE_OWNER, is_service=True, max_cost_usd=max_cost_usd,
            env=inputs.environment, settings=None if on_done is None else {"on_done": on_done},
        )  # fmt: skip
        ((last,),) = store.read(sql.LAST_PLACE)
        insert_jobs(store, herd, map(first_status, inputs.jobs), after=last)
        store.write_all(sql.ADD_NEED, needs_of(jobs))
        add_event(store, Event("herd_submitted", Reason(Why.SUBMITTED), time.time(), herd))
        trim_events(store)


def needs_of(jobs: Sequence[Job]) -> Iterator[tuple[str, str]]:
    ids = {job.name: job.id for job in jobs}
    for job in jobs:
        for name in job.after:
            yield job.id, ids[name]


def wish_for_job(store: Store, job: str, wish: Wish) -> bool:
    """False if the job has already ended, or does not belong to the service."""
    try:
        with store.synced():
            return store.write(sql.WISH_JOB, (wish.value, job)) > 0
    except StoreUnavailable:
        if wish is not Wish.CANCEL or not store.read(sql.IS_OPEN_JOB, (job,)):
            raise
        spool_cancel(store, job)
        return True


def wish_for_herd(store: Store, herd: str, wish: Wish) -> int:
    """Returns the number of jobs."""
    try:
        with store.synced():
            return store.write(sql.WISH_HERD, (wish.value, herd))
    except StoreUnavailable:
        jobs = store.read(sql.OPEN_JOBS, (herd,))
        if wish is Wish.RECYCLE or not jobs:
            raise
        spool_cancel(store, herd)
        return len(jobs)


def spool_cancel(store: Store, job_or_herd: str) -> None:
    store.spool.mkdir(0o700, exist_ok=True)
    (store.spool / job_or_herd).touch(0o600)


def read_spooled(store: Store) -> list[str]:
    """Jobs and herds to cancel, requested while the store could not be written. Empty while the
    directory cannot be read: then neither can the store beside it, whose error is shown.
    """
    try:
        return sorted(os.listdir(store.spool))
    except OSError:
        return []


def read_open_jobs(store: Store, job_or_herd: str) -> list[str]:
    """The job itself, or all jobs of the herd, except ended jobs and jobs of a `ramherd run`."""
    rows = store.read(sql.IS_OPEN_JOB, (job_or_herd,)) or store.read(sql.OPEN_JOBS, (job_or_herd,))
    return [job for (job,) in rows]


def remove_spooled(store: Store, names: Iterable[str]) -> None:
    """A request that cannot be removed is carried out again, which changes nothing."""
    for name in names:
        with suppress(OSError):
            (store.spool / name).unlink(missing_ok=True)


def read_wishes(store: Store, after: int, most: int) -> list[tuple[str, str, int]]:
    """(job, wish, place in the line) of the next wishes after a place."""
    return [(job, wish, place) for job, wish, place in store.read(sql.WISHED, (after, most))]


def retry(
    store: Store, state: Path, job: str, env: Mapping[str, str] | None = None,
    allow: Sequence[str] = (),
) -> list[str]:  # fmt: skip
    """Queues the job again, and with it the jobs that were cancelled because of it; returns their
    ids. Returns nothing if the job has not failed, unless it waits for its API: then the API is
    tried at once. With `allow` the job resumes its session with these tools allowed, even if it is
    done.

    The environment of a herd that has ended is gone. Its runs then inherit `env`, that of the
    program that requests the retry, which must include each variable that the job had of its own.
    """
    herds = store.read(sql.HERD_OF_JOB, (job,))
    if not herds:
        return []
    ((herd,),) = herds
    found = read_stored_herd(store, herd)
    if found is not None and not found.is_service:
        return retry_of_run(store, state, found, job, env, allow=allow)
    with new_environment(state, (), env) as inputs, store.synced():
        is_asked = end_api_wait(store, job)
        again = queue_again(store, job, allow)
        ((is_ended, old),) = store.read(sql.HERD_STANDING, (herd,))
        if again and is_ended:
            store.write(sql.SET_ENV, (*inputs.environment, herd))
        check_variables(store, state, herd, again)
        if again:
            store.write(sql.OPEN_HERD_AGAIN, (herd,))
            record_retry(store, herd, job, allow)
    unused = old if again and is_ended else inputs.environment.name
    if unused is not None:
        environment_path(state, unused).unlink(missing_ok=True)
    return again or ([job] if is_asked else [])


def end_api_wait(store: Store, job: str) -> bool:
    """Whether the job is queued and waited for its API: it is the next to try the API."""
    ((state, spec),) = store.read(sql.STATE_AND_SPEC, (job,))
    brief = job_from_text(spec).brief
    is_ended = brief is not None and end_waits(store, quota_of(brief))
    return is_ended and JobState(state) is JobState.QUEUED


def retry_of_run(
    store: Store, state: Path, found: StoredHerd, job: str, env: Mapping[str, str] | None,
    *, allow: Sequence[str],
) -> list[str]:  # fmt: skip
    """The same for a herd whose `ramherd run` has ended: the service takes the herd over."""
    if not found.is_ended:
        raise UsageError(f"herd {found.id} is not the service's: it belongs to a `ramherd run`")

    def change() -> list[str]:
        again = queue_again(store, job, allow)
        check_variables(store, state, found.id, again)
        record_retry(store, found.id, job, allow)
        return again

    if not store.read(sql.CAN_ALLOW if allow else sql.CAN_RETRY, (job,)):
        return []
    return move_to_service(store, state, found, env, change)


def explain_no_retry(
    name: str, state: str, denied: Sequence[Mapping[str, str]] | None
) -> UsageError:
    """Why the job is not queued again. A done job can continue with a tool that it was denied."""
    rules = [f"--allow {shlex.quote(one['allow'])}" for one in denied or () if one.get("allow")]
    again = " ".join(["ramherd retry", shlex.quote(name), *(rules or ["--allow RULE"])])
    hint = f"to go on with a tool allowed: {again}" if state == JobState.DONE else ""
    if state in (JobState.FAILED, JobState.CANCELLED):
        return UsageError(f"job {name!r} has just been retried by another command")
    return UsageError(f"nothing to retry: job {name!r} is {state}", hint=hint)


def record_retry(store: Store, herd: str, job: str, allow: Sequence[str] = ()) -> None:
    store.write(sql.FORGET_LOG_BYTES, (herd,))
    add_event(store, Event("job_queued", explain_retry(allow), time.time(), herd, job))


def resume_herd(
    store: Store, state: Path, found: StoredHerd, env: Mapping[str, str] | None,
    *, max_cost_usd: float | None = None,
) -> list[str]:  # fmt: skip
    """The service continues an interrupted herd. Returns the jobs that it continues."""

    def change() -> list[str]:
        again = continue_herd(store, found.id)
        check_variables(store, state, found.id, again, f"ramherd run --resume {found.id}")
        store.write(sql.FORGET_LOG_BYTES, (found.id,))
        if max_cost_usd is not None:
            set_cost_limit(store, found.id, max_cost_usd)
        return again

    return move_to_service(store, state, found, env, change)


def check_variables(
    store: Store, state: Path, herd: str, jobs: Sequence[str], command: str = ""
) -> None:  # fmt: skip
    """Checks that each job's own variables are in the file of its herd, or in the environment that
    the herd has now. `command` is what the user typed, if not a retry.
    """
    file = read_environment_file(store, herd)
    for job in jobs:
        ((name, names, known),) = store.read(sql.ENV_NAMES, (job,))
        if names in (None, "[]") or known == file.name:
            continue
        given = read_inherited(state, file)
        missing = [variable for variable in json.loads(names) if variable not in given]
        if not missing:
            continue
        words = " ".join(f"{variable}=..." for variable in missing)
        raise UsageError(
            f"the variables of job {name!r} were removed when its herd ended: {', '.join(missing)}",
            hint=f"{words} {command or f'ramherd retry {name}'}",
        )


def queue_again(store: Store, job: str, allow: Sequence[str] = ()) -> list[str]:
    """Queues the job, and those cancelled because of it. `allow` applies to the job alone."""
    for name, state in store.read(sql.NEEDS_ENDED, (job,)):
        raise UsageError(
            f"the job waits for {name!r}, which is {state}", hint=f"ramherd retry {name}"
        )
    again: list[str] = []
    todo = [job]
    while todo:
        one = todo.pop(0)
        waits = bool(store.read(sql.NEEDS_UNDONE, (one,)))
        state = JobState.WAITING if waits else JobState.QUEUED
        rules = allow if one == job else ()
        values = (state.value, explain_retry(rules).as_text(), time.time())
        if rules:
            changed = store.write(sql.ALLOW_JOB, (*values, json.dumps(rules), one))
        else:
            changed = store.write(sql.RETRY_JOB, (*values, one))
        if changed:
            again.append(one)
            todo += [found for (found,) in store.read(sql.CANCELLED_FOR, (one,))]
    return again


def set_paused(store: Store, *, paused: bool) -> None:
    """The pause also holds for the next service."""
    with store.synced():
        if is_paused(store) != paused:
            why, now_s = Why.PAUSED if paused else Why.RESUMED, time.time()
            add_event(store, Event(why.value, Reason(why), now_s, ""))
            store.write(sql.SET_FLAG, (PAUSED, repr(now_s) if paused else ""))


def pause_job(store: Store, job: str) -> bool:
    """The job does not start before `resume_job`. False if it is not queued in the service."""
    with store.synced():
        now_s = time.time()
        if not store.write(sql.PAUSE_JOB, (now_s, job)):
            return False
        add_job_event(store, Why.PAUSED.value, explain_job_pause(now_s), job)
        return True


def resume_job(store: Store, job: str) -> bool:
    """False if it was not paused."""
    with store.synced():
        if not store.write(sql.RESUME_JOB, (job,)):
            return False
        add_job_event(store, Why.RESUMED.value, explain_resumed(), job)
        return True


def edit_job(
    store: Store, job: str, *, priority: int | None = None, memory_bytes: int | None = None
) -> bool:
    """Changes settings of a job. False if the job is not queued in the service."""
    with store.synced():
        values = {"job": job, "priority": priority, "memory_bytes": memory_bytes}
        if not store.write(sql.EDIT_JOB, values):
            return False
        add_job_event(store, "job_edited", explain_edit(priority, memory_bytes), job)
        return True


def add_job_event(store: Store, kind: str, reason: Reason, job: str) -> None:
    ((herd,),) = store.read(sql.HERD_OF_JOB, (job,))
    add_event(store, Event(kind, reason, time.time(), herd, job))


def is_paused(store: Store) -> bool:
    return read_paused_s(store) is not None


def read_paused_s(store: Store) -> float | None:
    """When the service was paused; 0 if an earlier ramherd paused it, None if it is not paused."""
    rows = store.read(sql.GET_FLAG, (PAUSED,))
    if not rows or not rows[0][0]:
        return None
    return 0.0 if rows[0][0] == "1" else float(rows[0][0])
