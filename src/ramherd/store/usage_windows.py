"""Accounts that an API refuses for now: for the next supervisor, and for lists of jobs."""

import time
from collections.abc import Iterable, Sequence
from typing import Any

from ramherd.decide.usage_limits import (
    Quota,
    UsageWindow,
    explain_window,
    find_closed,
    parse_quota,
)
from ramherd.store.protocol import Store
from ramherd.store.sql import usage_windows as sql


def record_window(store: Store, key: tuple[str, str, str], window: UsageWindow | None) -> None:
    """None: the API serves the account again."""
    if window is None:
        store.write(sql.DROP_WINDOW, key)
        return
    flags = (int(window.is_timed), int(window.is_default), window.refused_probes)
    store.write(sql.SET_WINDOW, (*key, window.window, window.what, window.until_s, *flags))


def read_windows(store: Store) -> list[UsageWindow]:
    return [window_from_row(row) for row in store.read(sql.WINDOWS)]


def window_from_row(row: Sequence[Any]) -> UsageWindow:
    agent, account, model, window, what, until_s, is_timed, is_default, refused_probes = row
    return UsageWindow(
        agent, account, model, window, what, until_s,
        bool(is_timed), bool(is_default), refused_probes,
    )  # fmt: skip


def end_waits(store: Store, quota: Quota) -> bool:
    """The user requests a job to be tried now. Returns whether it waits for its API; if so, the
    next start of its account is a probe.
    """
    now_s = time.time()
    found = [one for one in read_windows(store) if one.concerns(quota) and one.until_s > now_s]
    for window in found:
        store.write(sql.END_WAIT, (now_s, *window.key))
    return bool(found)


def find_wait(windows: Iterable[UsageWindow], quota: str | None) -> dict[str, Any] | None:
    """Why a queued job waits for its API, as JSON."""
    now_s = time.time()
    closed = None if quota is None else find_closed(windows, parse_quota(quota), now_s)
    return None if closed is None else explain_window(closed, now_s).as_json()
