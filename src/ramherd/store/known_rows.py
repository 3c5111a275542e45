"""The state in a supervisor's memory, for a store that was restored: unreadable rows are added
again, and jobs get the state that the supervisor has.
"""

import json
import time
from collections.abc import Iterable
from typing import Any, NamedTuple

from ramherd.core.model import JobStatus
from ramherd.store.herds import NO_ENVIRONMENT, StoredPen, job_row, set_job
from ramherd.store.job_numbers import number_jobs
from ramherd.store.owner import Owner
from ramherd.store.protocol import Store
from ramherd.store.sql import records as sql


class KnownRun(NamedTuple):
    run: str
    job: str
    attempt: int
    started_s: float


def add_known_jobs(
    store: Store, owner: Owner, statuses: Iterable[JobStatus], *, is_service: bool
) -> None:
    """`seq` of a job of the service is its place in the line."""
    now, after = time.time(), 0 if is_service else None
    for status in statuses:
        herd = status.job.herd
        row = (herd, now, owner.id, owner.boot_id, *owner.proc, int(is_service))
        store.write(or_ignore(sql.ADD_HERD), (*row, None, *NO_ENVIRONMENT, "{}"))
        store.write(or_ignore(sql.ADD_JOB), (*job_row(herd, status, now, after), None))
        set_job(store, status)
    number_jobs(store)


def add_known_runs(store: Store, runs: Iterable[KnownRun]) -> None:
    for run in runs:
        store.write(or_ignore(sql.ADD_RUN), (*run, None, None))


def add_known_pens(store: Store, herd: str, pens: Iterable[StoredPen]) -> None:
    for pen in pens:
        row: tuple[Any, ...] = (pen.id, herd, pen.run, json.dumps(pen.record))
        store.write(or_ignore(sql.ADD_PEN), row)


def or_ignore(insert: str) -> str:
    """The same statement for a row that may exist already."""
    return insert.replace("INSERT INTO", "INSERT OR IGNORE INTO", 1)
