"""What a server said at its last start, on disk: the answer to `initialize`, and its lists. With it
an agent that only lists tools starts no server.

An entry counts as long as the program's files are the same, and for a day. Results that the server
marks as private, or as stale at once, are not kept.
"""

import json
import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ramherd.gateway.protocol.jsonrpc import LISTS
from ramherd.system.files import open_private, write_json

FOLDER = "mcp/catalogue"
MOST_AGE_S = 86_400.0


class Catalogue:
    """The entry of one key. `stamp` identifies the program's files."""

    def __init__(self, folder: Path, key: str, stamp: str) -> None:
        self._path = folder / f"{key}.json"
        self._stamp = stamp
        self._entry = self._read()

    @property
    def opening(self) -> dict[str, Any] | None:
        """The result of `initialize` or `server/discover`."""
        return self._entry.get("opening")

    @property
    def asks(self) -> bool:
        return bool(self._entry.get("asks"))

    @property
    def is_legacy_only(self) -> bool:
        return bool(self._entry.get("legacy_only"))

    def find_list(self, method: str, params: dict[str, Any]) -> dict[str, Any] | None:
        """Only whole lists are kept, so a cursor is of another list."""
        if method not in LISTS or params.get("cursor") is not None:
            return None
        found: dict[str, Any] | None = self._entry.get("lists", {}).get(method)
        return found

    def store_list(self, method: str, params: dict[str, Any], result: Any) -> None:
        if method not in LISTS or params.get("cursor") is not None:
            return
        if isinstance(result, dict) and "nextCursor" not in result and is_public(result):
            lists = {**self._entry.get("lists", {}), method: result}
            self._store(lists=lists)

    def drop_lists(self) -> None:
        if self._entry.get("lists"):
            self._store(lists={})

    def drop(self) -> None:
        self._entry = {}
        self._path.unlink(missing_ok=True)

    def store_opening(self, result: dict[str, Any]) -> None:
        if is_public(result):
            self._store(opening=result, legacy_only=False)

    def store_asks(self) -> None:
        if not self.asks:
            self._store(asks=True)

    def store_legacy_only(self) -> None:
        self._store(legacy_only=True)

    def _store(self, **changes: Any) -> None:
        """A full disk costs the cache, and nothing else."""
        entry = {**self._entry, **changes, "stamp": self._stamp}
        if {**entry, "at_s": 0} == {**self._entry, "at_s": 0}:
            return
        self._entry = {**entry, "at_s": time.time()}
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_json(str(self._path), self._entry)
        except OSError:
            pass

    def _read(self) -> dict[str, Any]:
        try:
            fd = open_private(str(self._path), os.O_RDONLY)
            with open(fd, encoding="utf-8") as file:
                entry = json.load(file)
            is_old = not 0 <= time.time() - entry["at_s"] < MOST_AGE_S
            return {} if is_old or entry["stamp"] != self._stamp else entry
        except (OSError, ValueError, KeyError, TypeError):
            return {}


def is_public(result: dict[str, Any]) -> bool:
    """Servers of the older era say nothing about that; their lists are those of the process."""
    return result.get("cacheScope", "public") == "public" and result.get("ttlMs") != 0


def stamp_files(words: Iterable[str]) -> str:
    """Size and time of each file that a command names: another version is another program."""
    stamps = []
    for word in words:
        try:
            found = os.stat(word)
        except (OSError, ValueError):
            continue
        stamps.append(f"{word}:{found.st_size}:{found.st_mtime_ns}")
    return "|".join(stamps)
