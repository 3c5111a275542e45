"""Reading the events that a store holds, oldest first."""

import json
import os
from collections.abc import Iterator
from typing import Any, NamedTuple

from ramherd.store import sql
from ramherd.store.sqlite import Store


class StoredEvent(NamedTuple):
    """As CONTRACT has it; `name` is the job's."""

    seq: int
    at_s: float
    kind: str
    herd: str
    job: str
    run: str
    node: str
    reason: dict[str, Any]
    name: str


def read_events(
    store: Store, *, job: str | None = None, herd: str | None = None,
    since_s: float | None = None, after_seq: int = 0,
) -> Iterator[StoredEvent]:  # fmt: skip
    node = os.uname().nodename
    for seq, at_s, kind, of_herd, of_job, run, reason, name in store.read(
        sql.EVENTS, {"job": job, "herd": herd, "since_s": since_s, "after": after_seq}
    ):
        told = json.loads(reason)
        yield StoredEvent(seq, at_s, kind, of_herd, of_job, run, node, told, name or "")
