"""The store of this user: the one place that knows which database it is in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ramherd.store.sqlite import SqliteStore

if TYPE_CHECKING:
    from pathlib import Path

    from ramherd.store.protocol import Store


def open_store(state: Path) -> Store:
    """The one in a state directory; made, or brought up to date, if need be."""
    return SqliteStore(state / "ramherd.db")
