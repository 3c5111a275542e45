"""What a database gives the rest of ramherd: statements in, rows out, one transaction at a time.

What is asked of it are the functions in the modules beside this one (`herds`, `events`, `logs`,
`requests`, `listing`, ...), with their statements in `sql/`: they are the same for every database.
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

# How long a program waits for a lock of another one, if it has nothing else to look after.
BUSY_S = 3.0


class Store(Protocol):
    """A write begins a transaction, which lasts until `commit` or `rollback`. What fails is a
    `StoreError`; where the same may work later (a lock, a full disk), a `StoreUnavailable`.
    """

    # Whether this process writes the store back if its files are deleted, replaced or damaged: a
    # supervisor does. All others follow to what it wrote.
    may_restore: bool
    # A directory for requests that have to get through while the store cannot be written.
    spool: Path

    def read(self, statement: str, values: Values = ()) -> Rows: ...

    def write(self, statement: str, values: Values = ()) -> int:
        """How many rows were changed."""
        ...

    def write_all(self, statement: str, rows: Iterable[Sequence[Any]]) -> None: ...

    def write_returning(self, statement: str, values: Values = ()) -> Rows:
        """The rows of a RETURNING clause."""
        ...

    def begin(self) -> None:
        """Takes the write lock now: what is read next cannot change before the commit."""
        ...

    def commit(self) -> None: ...
    def rollback(self) -> None: ...

    def synced(self) -> AbstractContextManager[None]:
        """What is written inside is committed whole, and survives a power cut as well."""
        ...

    def set_patience(self, for_s: float) -> None:
        """How long to wait for a lock of another process."""
        ...

    def overwrite_deleted(self) -> None:
        """What was deleted is in no byte of its files any more. Takes seconds for a large one."""
        ...

    def check(self) -> None:
        """Whether its files are still what others open; if not, they are restored. An error says
        why they cannot be.
        """
        ...

    def pop_restored(self) -> list[str]:
        """What was restored since the last call, in words."""
        ...

    def open_another(self) -> Store:
        """A second connection, for another thread or transaction."""
        ...

    def close(self) -> None:
        """What was not committed is lost."""
        ...
