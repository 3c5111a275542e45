"""The store of this user: the only module that chooses its database."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from ramherd.config.paths import find_dir_problem
from ramherd.core.errors import StoreDamaged, StoreError, StoreUnavailable
from ramherd.core.units import format_size
from ramherd.store.sqlite import (
    SqliteStore,
    connect_to_nothing,
    connect_to_read,
    explained,
    find_file,
    read_unseen_bytes,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ramherd.store.protocol import Store


NAME = "ramherd.db"


def open_store_for_runs(state: Path) -> Store:
    """For a supervisor: sets a damaged store aside and keeps all readable rows; if the store is
    damaged later, the supervisor writes it back.
    """
    path = state / NAME
    found = find_file(str(path))
    try:
        store = SqliteStore(path)
    except StoreDamaged:
        from ramherd.store.restore import restore_damaged  # noqa: PLC0415 - hopefully never

        with explained(path):
            print(f"ramherd: {restore_damaged(path, found)}", file=sys.stderr, flush=True)
        store = SqliteStore(path)
    store.may_restore = True
    return store


def open_store(state: Path) -> Store:
    """The store of a state directory; created or migrated if necessary."""
    return SqliteStore(state / NAME)


def open_store_to_read(state: Path, warn: Callable[[str], None]) -> Store:
    """For commands that only read: nothing is created. A store on a read-only disk, or of another
    user, can be read as well; `warn` gets a line if its newest changes are not visible.
    """
    path = state / NAME
    try:
        path.lstat()
        is_ours = find_dir_problem(state) is None
    except (FileNotFoundError, NotADirectoryError):
        return SqliteStore(path, connect_to_nothing)
    except OSError as error:
        raise StoreError(f"cannot read the store {path}: {error.strerror}") from None
    if is_ours and os.access(state, os.W_OK | os.X_OK) and os.access(path, os.W_OK):
        try:
            return SqliteStore(path)
        except StoreUnavailable as error:
            if "disk is full" not in str(error):
                raise
    if unseen := read_unseen_bytes(path):
        size = format_size(unseen)
        warn(f"{state} cannot be written to: the last {size} of changes are not shown")
    return SqliteStore(path, connect_to_read)
