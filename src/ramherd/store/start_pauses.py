"""Why nothing starts, and why the first job in line does not, for lists of jobs: one reason for
each herd, one for the service.
"""

import json
from typing import Any

from ramherd.core.model import Reason
from ramherd.store.protocol import Store
from ramherd.store.sql import service as sql

# The flags of a herd have these prefixes, then its id.
PREFIX, WAIT_PREFIX = "starts_paused:", "start_waits:"


def set_start_pause(store: Store, herd: str, reason: Reason | None) -> None:
    if reason is None:
        store.write(sql.DROP_FLAG, (PREFIX + herd,))
    else:
        store.write(sql.SET_FLAG, (PREFIX + herd, reason.as_text()))


def read_start_pauses(store: Store) -> dict[str, dict[str, Any]]:
    """The reason of each herd, as JSON."""
    return read_flags(store, PREFIX)


def set_start_wait(
    store: Store, herd: str, reason: Reason | None, job: str = "", name: str = ""
) -> None:
    """`job` is the first job in line, `name` its name."""
    if reason is None:
        store.write(sql.DROP_FLAG, (WAIT_PREFIX + herd,))
    else:
        wait = json.dumps({**reason.as_json(), "job": job, "name": name})
        store.write(sql.SET_FLAG, (WAIT_PREFIX + herd, wait))


def read_start_waits(store: Store) -> dict[str, dict[str, Any]]:
    """By herd, as JSON: the reason, with `job` and `name` of the first job in line."""
    return read_flags(store, WAIT_PREFIX)


def read_flags(store: Store, prefix: str) -> dict[str, dict[str, Any]]:
    rows = store.read(sql.FLAGS_LIKE, (prefix + "%",))
    return {name.removeprefix(prefix): json.loads(reason) for name, reason in rows}


def forget_starts(store: Store, herd: str) -> None:
    """The herd has ended."""
    set_start_pause(store, herd, None)
    set_start_wait(store, herd, None)
