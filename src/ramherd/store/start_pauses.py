"""Why starts are paused, for those who list jobs: one reason for each herd, one for the service."""

import json
from typing import Any

from ramherd.core.model import Reason
from ramherd.store.protocol import Store
from ramherd.store.sql import service as sql

# The flag of a herd has this prefix, then its id.
PREFIX = "starts_paused:"


def set_start_pause(store: Store, herd: str, reason: Reason | None) -> None:
    if reason is None:
        store.write(sql.DROP_FLAG, (PREFIX + herd,))
    else:
        store.write(sql.SET_FLAG, (PREFIX + herd, reason.as_text()))


def read_start_pauses(store: Store) -> dict[str, dict[str, Any]]:
    """The reason by herd, as JSON."""
    rows = store.read(sql.FLAGS_LIKE, (PREFIX + "%",))
    return {name.removeprefix(PREFIX): json.loads(reason) for name, reason in rows}
