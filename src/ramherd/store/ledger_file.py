"""The file of the ledger: how it is opened, one transaction at a time, and what happens to a file
that is broken or was moved away.

Which rows there are is for `ledger.py` and `subagent_slots.py` to know. The hook loads this module
for each subagent, so it does without dataclasses and pathlib (16 ms together).
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import stat
import time
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, TypeVar

from ramherd.core.errors import StoreError
from ramherd.store.sql import ledger as sql
from ramherd.system.ids import new_id

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

T = TypeVar("T")

# SQLite waits 1, 2, 5, 10 ms and more between its tries; a transaction here takes 0.3 ms.
RETRY_S = 0.0005
BUSY_S = 5.0


class LedgerFile:
    """`patience_s` is how long a transaction waits for those of others."""

    def __init__(self, path: str, warn: Callable[[str], None]) -> None:
        self.path = path
        self.patience_s = BUSY_S
        self._warn = warn
        self._version: int | None = None
        self._open()

    def read(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        return self._execute(statement, values).fetchall()

    def write(self, statement: str, values: Sequence[Any] = ()) -> None:
        self._execute(statement, values)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        self._begin()
        try:
            yield
        except BaseException:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise
        self.write("COMMIT")

    def attempt(self, act: Callable[[], T]) -> T:
        """Calls `act`. If the file is broken or was moved away, `act` is called once more, on a
        new file.
        """
        if not self._is_current():
            self._reopen()
        try:
            return act()
        except StoreError as error:
            if not isinstance(error.__cause__, sqlite3.DatabaseError) or is_busy(error.__cause__):
                raise
        self._reopen()
        return act()

    def has_changed(self) -> bool:
        """Whether another process wrote since the last call: cheaper than to read the rows."""
        ((version,),) = self.read("PRAGMA data_version")
        before, self._version = self._version, version
        return bool(version != before)

    def close(self) -> None:
        self._db.close()

    def _execute(self, statement: str, values: Sequence[Any]) -> sqlite3.Cursor:
        try:
            return self._db.execute(statement, values)
        except sqlite3.Error as error:
            raise self._cannot(error) from error

    def _begin(self) -> None:
        deadline = time.monotonic() + self.patience_s
        while True:
            try:
                self._db.execute("BEGIN IMMEDIATE")
                return
            except sqlite3.Error as error:
                if not is_busy(error) or time.monotonic() > deadline:
                    raise self._cannot(error) from error
                time.sleep(RETRY_S)

    def _is_current(self) -> bool:
        """Whether the open file is still the one that others open."""
        try:
            found = os.stat(self.path)
        except FileNotFoundError:
            return False
        return (found.st_dev, found.st_ino) == self._file

    def _reopen(self) -> None:
        self._db.close()
        self._open()

    def _open(self) -> None:
        """One process at a time: of two that find a broken file, only the first sets it aside."""
        try:
            with locked(os.path.splitext(self.path)[0] + ".lock"):
                self._db = open_or_set_aside(self.path, self._warn)
                found = os.stat(self.path)
                self._file = (found.st_dev, found.st_ino)
        except (sqlite3.Error, OSError) as error:
            raise self._cannot(error) from error

    def _cannot(self, error: Exception) -> StoreError:
        return StoreError(
            f"cannot use the ledger {self.path}: {error}",
            hint="set RAMHERD_RUNTIME_DIR to a directory you can write to",
        )


@contextmanager
def locked(path: str) -> Iterator[None]:
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def open_or_set_aside(path: str, warn: Callable[[str], None]) -> sqlite3.Connection:
    problem = find_problem(path)
    if problem is not None:
        aside = f"{path}.aside-{new_id()}"
        name = os.path.basename(aside)
        warn(f"the ledger {path} {problem}: it is now {name}, and a new one is begun")
        for suffix in ("", "-wal", "-shm"):
            if os.path.lexists(path + suffix):
                os.rename(path + suffix, aside + suffix)
    return open_or_make(path)


def find_problem(path: str) -> str | None:
    """What is wrong with the file, if it exists."""
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(found.st_mode):
        return "is not a plain file"
    if found.st_size == 0:
        return None
    try:
        with closing(sqlite3.connect(path, timeout=BUSY_S, isolation_level=None)) as db:
            return find_mismatch(db)
    except sqlite3.DatabaseError as error:
        return None if is_busy(error) else f"is broken ({error})"


def find_mismatch(db: sqlite3.Connection) -> str | None:
    (id_,) = db.execute("PRAGMA application_id").fetchone()
    (version,) = db.execute("PRAGMA user_version").fetchone()
    if id_ != sql.APPLICATION_ID:
        return "is another program's database"
    if version != sql.VERSION:
        return f"is of another ramherd (version {version}, this one knows {sql.VERSION})"
    (check,) = db.execute("PRAGMA quick_check(1)").fetchone()
    return None if check == "ok" else f"is broken ({check})"


def open_or_make(path: str) -> sqlite3.Connection:
    """WAL without syncs: it survives the death of every process, and a reboot voids it anyway."""
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
    db = sqlite3.connect(path, timeout=0, isolation_level=None)
    db.execute(f"PRAGMA busy_timeout = {int(BUSY_S * 1000)}")
    db.execute("PRAGMA synchronous = OFF")
    if db.execute(sql.IS_MADE).fetchone() != (len(sql.TABLES),):
        db.execute("PRAGMA journal_mode = WAL")
        for statement in sql.SCHEMA:
            db.execute(statement)
    db.execute("PRAGMA busy_timeout = 0")
    return db


def is_busy(error: BaseException | None) -> bool:
    if not isinstance(error, sqlite3.OperationalError):
        return False
    return error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def read_ledger(path: str, statement: str) -> list[tuple[Any, ...]]:
    """For those without a lease: nothing is made or set aside; [] where nothing can be read."""
    if not os.path.exists(path):
        return []
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=1)) as db:
            return db.execute(statement).fetchall()
    except sqlite3.Error:
        return []
