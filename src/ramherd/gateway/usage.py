"""When each server was last used, kept across restarts of the gateway."""

import json
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from ramherd.system.files import open_private, write_json

FILE = "mcp/usage.json"
WRITE_EVERY_S = 30.0


def read_usage(state: Path) -> dict[str, dict[str, Any]]:
    """By server: `calls` of all time, `last_used_at_s` (or None) and `known_at_s`."""
    try:
        with open(open_private(str(state / FILE), os.O_RDONLY), encoding="utf-8") as file:
            found = json.load(file)
        return {
            str(name): {
                "calls": int(one["calls"]), "last_used_at_s": one["last_used_at_s"],
                "known_at_s": float(one["known_at_s"]),
            }
            for name, one in found.items()
        }  # fmt: skip
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def write_usage(state: Path, usage: Mapping[str, Mapping[str, Any]]) -> None:
    path = state / FILE
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_json(str(path), dict(usage))


def add_usage(
    before: Mapping[str, Mapping[str, Any]], names: Iterable[str],
    calls: Mapping[str, tuple[int, float]], now_s: float,
) -> dict[str, dict[str, Any]]:  # fmt: skip
    """`calls` are new calls of servers, with the time of the last one. Servers that are gone are
    left out; one that is new is known from now on.
    """
    after = {}
    for name in names:
        known = before.get(name, {"calls": 0, "last_used_at_s": None, "known_at_s": now_s})
        number, last_s = calls.get(name, (0, 0.0))
        used = {"calls": known["calls"] + number, "last_used_at_s": last_s} if number else {}
        after[name] = {**known, **used}
    return after


class UsageRecorder:
    """Counts calls from reading to reading: the gateway forgets servers that have ended."""

    def __init__(self, state: Path) -> None:
        self._state = state
        self._seen: dict[int, int] = {}
        self._new: dict[str, tuple[int, float]] = {}
        self._written_s = float("-inf")

    def record(self, servers: Iterable[tuple[int, str, int, float]]) -> None:
        """Each server process: an id, its name, its calls so far, and when it was last used."""
        seen = {}
        for id_, name, calls, used_s in servers:
            seen[id_] = calls
            number, last_s = self._new.get(name, (0, 0.0))
            more = calls - self._seen.get(id_, 0)
            if more > 0:
                self._new[name] = number + more, max(last_s, used_s)
        self._seen = seen

    def write(self, names: Iterable[str], now_s: float, *, is_last: bool = False) -> None:
        """A disk that is full loses counts, no calls."""
        if now_s - self._written_s < WRITE_EVERY_S and not is_last:
            return
        before = read_usage(self._state)
        after = add_usage(before, names, self._new, now_s)
        with suppress(OSError):
            if after != before:
                write_usage(self._state, after)
            self._new, self._written_s = {}, now_s
