"""`on_done` commands that are due. A row is written in the transaction that ends the job or the
herd, and removed before the command starts: no command starts twice, and the next supervisor starts
commands that a dead one left.
"""

from typing import NamedTuple

from ramherd.store.protocol import Store
from ramherd.store.sql import on_done as sql


class DueCommand(NamedTuple):
    """The command of a job, or of its herd if `job` is empty."""

    herd: str
    job: str


def read_due_jobs(store: Store, herd: str, most: int) -> list[DueCommand]:
    return [DueCommand(*row) for row in store.read(sql.DUE_JOBS, (herd, most))]


def read_due_of_service(store: Store, most: int) -> list[DueCommand]:
    """The commands of the service's herds and their jobs; a herd comes after its jobs."""
    rows = store.read(sql.DUE_JOBS_OF_SERVICE, (most,))
    rows += store.read(sql.DUE_HERDS_OF_SERVICE, (most - len(rows),))
    return [DueCommand(*row) for row in rows]


def is_herd_due(store: Store, herd: str) -> bool:
    return bool(store.read(sql.IS_HERD_DUE, (herd,)))


def drop_due(store: Store, due: DueCommand) -> None:
    store.write(sql.DROP, due)


def read_herd_command(store: Store, herd: str) -> str | None:
    rows = store.read(sql.HERD_COMMAND, (herd,))
    return rows[0][0] if rows else None


def read_first_job(store: Store, herd: str) -> str | None:
    rows = store.read(sql.FIRST_JOB, (herd,))
    return rows[0][0] if rows else None
