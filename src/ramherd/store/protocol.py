"""The interface of a database for the rest of ramherd: statements in, rows out, one transaction at
a time.

The functions in the modules beside this one (`herds`, `events`, `logs`, `requests`, `listing`, ...)
use it, with their statements in `sql/`: they are the same for every database.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path
    from typing import Any

    Values = Sequence[Any] | Mapping[str, Any]
    Rows = list[tuple[Any, ...]]

# How long a program waits for another program's lock, if it has nothing else to do.
BUSY_S = 3.0


class Store(Protocol):
    """A write begins a transaction, which lasts until `commit` or `rollback`. A failure raises
    `StoreError`, or `StoreUnavailable` if the same call may succeed later (a lock, a full disk).
    """

    # Whether this process writes the store back if its files are deleted, replaced or damaged: a
    # supervisor does. All other processes switch to the files that it wrote.
    may_restore: bool
    # A directory for requests that must get through while the store cannot be written.
    spool: Path

    def read(self, statement: str, values: Values = ()) -> Rows: ...

    def write(self, statement: str, values: Values = ()) -> int:
        """Returns how many rows were changed."""
        ...

    def write_all(self, statement: str, rows: Iterable[Sequence[Any]]) -> None: ...

    def write_returning(self, statement: str, values: Values = ()) -> Rows:
        """The rows of a RETURNING clause."""
        ...

    def begin(self) -> None:
        """Takes the write lock now: rows read after this cannot change before the commit."""
        ...

    def commit(self) -> None: ...
    def rollback(self) -> None: ...

    def synced(self) -> AbstractContextManager[None]:
        """Writes inside are committed together, and survive a power cut as well."""
        ...

    def set_patience(self, for_s: float) -> None:
        """How long to wait for a lock of another process."""
        ...

    def overwrite_deleted(self) -> None:
        """Overwrites deleted data in every byte of the files. Takes seconds for a large store."""
        ...

    def check(self) -> None:
        """Whether the files are still those that others open; if not, they are restored. An error
        explains why they cannot be.
        """
        ...

    def pop_restored(self) -> list[str]:
        """Restorations since the last call, in words."""
        ...

    def open_another(self) -> Store:
        """A second connection, for another thread or transaction."""
        ...

    def close(self) -> None:
        """Uncommitted writes are lost."""
        ...
