"""The events: each is added once, and read oldest first."""

import json
import os
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from ramherd.core.model import Event
from ramherd.store.job_numbers import find_numbered_job
from ramherd.store.protocol import Store
from ramherd.store.sql import listing, records

# One of our lines is some 200 bytes: 20 MB for the events, 5 MB for the samples.
KEEP_EVENTS = 100_000
KEEP_SAMPLES = 100_000


class StoredEvent(NamedTuple):
    """An event as the API and `ramherd events --json` show it; `name` is that of the job."""

    seq: int
    at_s: float
    kind: str
    herd: str
    job: str
    run: str
    node: str
    reason: dict[str, Any]
    name: str


def add_event(store: Store, event: Event) -> int:
    """Returns the number of the event."""
    row = (event.at_s, event.kind, event.herd, event.job, event.run, event.reason.as_text())
    ((seq,),) = store.write_returning(records.ADD_EVENT, row)
    return int(seq)


def trim_events(store: Store) -> None:
    """Removes the oldest events and samples."""
    store.write(records.TRIM_EVENTS, (KEEP_EVENTS,))
    store.write(records.TRIM_SAMPLES, (KEEP_SAMPLES,))


def read_events(
    store: Store, *, job: str | None = None, herd: str | None = None,
    since_s: float | None = None, after_seq: int = 0, machine_since_s: float | None = None,
) -> Iterator[StoredEvent]:  # fmt: skip
    """`machine_since_s` adds events of no herd to those of a herd: processes that were reaped."""
    node = os.uname().nodename
    values = {
        "job": job, "herd": herd, "since_s": since_s, "after": after_seq,
        "machine_since_s": machine_since_s,
    }  # fmt: skip
    for seq, at_s, kind, of_herd, of_job, run, reason, name in store.read(records.EVENTS, values):
        numbers = json.loads(reason)
        yield StoredEvent(seq, at_s, kind, of_herd, of_job, run, node, numbers, name or "")


def read_event_page(
    store: Store, seq: int, *, herd: str | None = None, job: str | None = None, most: int = 500
) -> list[dict[str, Any]]:
    """The events after a number, as the API sends them. `job` is the job's id or number."""
    job = job and (find_numbered_job(store, job) or job)
    values = {"after": seq, "herd": herd, "job": job, "most": most}
    return [event_json(row) for row in store.read(listing.EVENTS_AFTER, values)]


def event_json(row: Sequence[Any]) -> dict[str, Any]:
    seq, at_s, kind, herd, job, run, node, reason = row
    return {
        "v": 1, "seq": seq, "at_s": at_s, "kind": kind, "herd": herd, "job": job, "run": run,
        "node": node, "reason": json.loads(reason),
    }  # fmt: skip


def read_event_range(store: Store) -> tuple[int, int]:
    """The oldest and the newest number in the store: events with lower numbers are gone."""
    ((first, last),) = store.read(listing.EVENT_ENDS)
    return first, last
