"""The jobs of a live screen: those that run, the first that wait, and those that ended last.

Each list is bounded, and no statement reads more than the jobs of herds that are open or ended a
short time ago: a screen reads them every second or two.
"""

from typing import Any, NamedTuple

from ramherd.store.listing import Lost, job_json, mark_lost
from ramherd.store.protocol import Store
from ramherd.store.sql import listing as sql
from ramherd.store.wait_reasons import read_obstacles


class NamedEvent(NamedTuple):
    """A stored event, with the name and number of its job. `reason` is JSON."""

    seq: int
    at_s: float
    kind: str
    herd: str
    job: str
    run: str
    reason: str
    name: str
    number: int | None


def list_live_jobs(store: Store, lost: Lost, most: int) -> list[dict[str, Any]]:
    """Jobs that run or are held, in the order in which they were submitted."""
    return list_chosen(store, sql.LIVE_JOBS, lost, most=most)


def list_waiting_jobs(store: Store, lost: Lost, most: int) -> list[dict[str, Any]]:
    """Queued jobs in the order in which they start, then jobs that wait for others."""
    return list_chosen(store, sql.WAITING_JOBS, lost, most=most)


def list_ended_jobs(store: Store, lost: Lost, since_s: float, most: int) -> list[dict[str, Any]]:
    """Failed jobs first, then the others; the newest first."""
    return list_chosen(store, sql.ENDED_JOBS, lost, since_s=since_s, most=most)


def list_chosen(store: Store, statement: str, lost: Lost, **values: Any) -> list[dict[str, Any]]:
    known = read_obstacles(store)
    return [mark_lost(job_json(store, row, known), lost) for row in store.read(statement, values)]


def count_recent_jobs(store: Store, since_s: float) -> dict[str, int]:
    """Jobs by state, of herds that are open or have ended since then."""
    return dict(store.read(sql.RECENT_COUNTS, {"since_s": since_s}))


def read_newest_events(store: Store, after: int, most: int) -> list[NamedEvent]:
    """The newest events after a number, the oldest of them first."""
    rows = store.read(sql.NEWEST_EVENTS, {"after": after, "most": most})
    return [
        NamedEvent(seq, at_s, kind, herd, job, run, reason, name, number)
        for seq, at_s, kind, herd, job, run, _node, reason, name, number in reversed(rows)
    ]
