"""The store of one user on one machine: SQLite in WAL mode, several ramherds at a time.

WAL with synchronous NORMAL survives the death of every process; what is written in `synced` also
survives a power cut.
"""

from __future__ import annotations

import errno
import os
import sqlite3
import time
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

from ramherd.core.errors import StoreError, StoreUnavailable
from ramherd.core.units import format_size
from ramherd.store.protocol import BUSY_S
from ramherd.store.sql import migrations as sql
from ramherd.store.sql.records import OLDEST_OVER
from ramherd.system.files import find_foreign
from ramherd.system.own_process import read_file_size_limit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path
    from typing import Any, TypeGuard

    from ramherd.store.protocol import Rows, Values


# The doctor does not wait for long.
CHECK_S = 0.5


class SqliteStore:
    """`connect` opens it: `connect_to_write`, or another of the functions below."""

    def __init__(
        self, path: Path, connect: Callable[[Path], sqlite3.Connection] | None = None
    ) -> None:
        self.path, self._connect = path, connect or connect_to_write
        with self._explained():
            self._db = self._connect(path)
            try:
                self._prepare()
            except BaseException:
                self._db.close()
                raise

    def read(self, statement: str, values: Values = ()) -> Rows:
        with self._explained():
            return self._db.execute(statement, values).fetchall()

    def write(self, statement: str, values: Values = ()) -> int:
        self.begin()
        with self._explained():
            return self._db.execute(statement, values).rowcount

    def write_all(self, statement: str, rows: Iterable[Sequence[Any]]) -> None:
        self.begin()
        with self._explained():
            self._db.executemany(statement, rows)

    def write_returning(self, statement: str, values: Values = ()) -> Rows:
        self.begin()
        return self.read(statement, values)

    def begin(self) -> None:
        if not self._db.in_transaction:
            with self._explained():
                self._db.execute("BEGIN IMMEDIATE")

    def commit(self) -> None:
        if self._db.in_transaction:
            with self._explained():
                self._db.execute("COMMIT")

    def rollback(self) -> None:
        if self._db.in_transaction:
            self._db.execute("ROLLBACK")

    @contextmanager
    def synced(self) -> Iterator[None]:
        with self._explained():
            self._db.execute("PRAGMA synchronous = FULL")
        try:
            yield
            self.commit()
        finally:
            self.rollback()
            with self._explained():
                self._db.execute("PRAGMA synchronous = NORMAL")

    def set_patience(self, for_s: float) -> None:
        self._db.execute(f"PRAGMA busy_timeout = {int(for_s * 1000)}")

    def open_another(self) -> SqliteStore:
        return SqliteStore(self.path, self._connect)

    def close(self) -> None:
        self._db.close()

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise explain(self.path, error) from error

    def _prepare(self) -> None:
        if self._read_version() == len(sql.MIGRATIONS):
            return
        if self._connect is connect_to_read:
            self._db = copy_to_memory(self._db)
        self._migrate()

    def _read_version(self) -> int:
        """How many migrations the store has seen, without a lock."""
        if not self._db.execute(sql.HAS_MIGRATIONS).fetchall():
            return 0
        return int(self._db.execute(sql.NEWEST_MIGRATION).fetchone()[0])

    def _migrate(self) -> None:
        self._db.execute("BEGIN IMMEDIATE")
        self._db.execute(sql.MIGRATIONS_TABLE)
        at = self._read_version()
        if at > len(sql.MIGRATIONS):
            self._db.execute("ROLLBACK")
            raise StoreError(
                f"the store {self.path} is of a newer ramherd (schema {at}, "
                f"this one knows {len(sql.MIGRATIONS)})",
                hint="upgrade ramherd, or set XDG_STATE_HOME to another directory",
            )
        for number, statements in enumerate(sql.MIGRATIONS[at:], at + 1):
            for statement in statements:
                self._db.execute(statement)
            self._db.execute(sql.ADD_MIGRATION, (number, time.time()))
        self._db.execute("COMMIT")


def create_private(path: Path) -> None:
    """Makes the file if it is not there, and never opens one that is: to close any descriptor of a
    file gives up all locks that this process has on it (fcntl), those of SQLite too. The next
    process that closed its connection would take itself for the last one, and remove the log that
    we write to: everything that we commit after that would be lost.
    """
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        pass


def connect_to_write(path: Path) -> sqlite3.Connection:
    """Made with mode 0600. SQLite opens files by their names, and would follow a link: all of them
    are checked first. In a directory of ours with mode 0700 nobody else can put a link there
    between the check and the open.
    """
    for suffix in ("", "-wal", "-shm", "-journal"):
        if problem := find_foreign(f"{path}{suffix}"):
            raise PermissionError(errno.EPERM, problem, f"{path}{suffix}")
    create_private(path)
    db = sqlite3.connect(path, timeout=BUSY_S, isolation_level=None)
    try:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = NORMAL")
        # A checkpoint syncs the disk, for 10 ms and more: every 16 MB instead of every 4.
        db.execute("PRAGMA wal_autocheckpoint = 4000")
    except BaseException:
        db.close()
        raise
    return db


def connect_to_read(path: Path) -> sqlite3.Connection:
    """On a read-only disk, or another user's. Without the `-shm` file, which it then cannot make,
    SQLite reads what is in the file itself, and nothing of the log: see `read_unseen_bytes`.
    """
    if path.is_symlink():
        raise PermissionError(errno.EPERM, find_foreign(str(path)), str(path))
    if not os.access(path, os.R_OK):
        raise PermissionError(errno.EACCES, "Permission denied", str(path))
    db = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None)
    try:
        db.execute("SELECT count(*) FROM sqlite_master").fetchone()
        return db
    except sqlite3.OperationalError as error:
        db.close()
        if error.sqlite_errorcode & 0xFF not in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY):
            raise
    uri = f"{path.absolute().as_uri()}?immutable=1"
    return sqlite3.connect(uri, uri=True, isolation_level=None)


def connect_to_nothing(_path: Path) -> sqlite3.Connection:
    """For a verb that only reads, where there is no store: it finds an empty one."""
    return sqlite3.connect(":memory:", isolation_level=None)


def copy_to_memory(db: sqlite3.Connection) -> sqlite3.Connection:
    """A store of an older ramherd that cannot be brought up to date on its disk."""
    copy = sqlite3.connect(":memory:", isolation_level=None)
    with closing(db):
        db.backup(copy)
    return copy


def read_unseen_bytes(path: Path) -> int:
    """Bytes of the log that `connect_to_read` cannot read."""
    try:
        return 0 if os.path.exists(f"{path}-shm") else os.stat(f"{path}-wal").st_size
    except FileNotFoundError:
        return 0


def read_oldest_over(path: Path) -> Iterator[tuple[str, float]]:
    """(run, when it ended) of herds that are over, from a store that cannot be opened because
    its disk is full: read without its log, so the newest may be missing.
    """
    uri = f"{path.absolute().as_uri()}?immutable=1"
    with closing(sqlite3.connect(uri, uri=True)) as db:
        try:
            yield from db.execute(OLDEST_OVER)
        except sqlite3.Error:
            return


def read_store_error(path: Path) -> str:
    """Read-only, and only the first page: a whole check of a large store takes seconds."""
    if not path.exists():
        return ""
    try:
        with closing(
            sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=CHECK_S)
        ) as db:
            db.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.Error as error:
        return str(error)
    return ""


def explain(path: Path, error: Exception) -> StoreError:
    """One line for the user, and what to do."""
    passes = isinstance(error, sqlite3.OperationalError)
    what, hint = str(error), "set XDG_STATE_HOME to a directory you can write to"
    if isinstance(error, OSError) and error.strerror:
        other = error.filename if error.filename not in (None, path, str(path)) else ""
        what = f"{other}: {error.strerror}" if other else error.strerror
    if "symbolic link" in what:
        hint = "remove the link; a link in place of the whole directory is followed"
    elif "belongs to" in what:
        hint = "chown it to your user, or set XDG_STATE_HOME to a directory of yours"
    elif is_busy(error):
        hint = "another program holds it: close it, and try again"
    elif "full" in what:
        hint = "make room: ramherd prune --keep 1GiB"
    elif (limit_bytes := read_file_size_limit()) is not None and is_write_error(error):
        what = f"the file size limit (ulimit -f) is {format_size(limit_bytes)}"
        hint = "ulimit -f unlimited, then try again"
    kind = StoreUnavailable if passes else StoreError
    return kind(f"cannot use the store {path}: {what}", hint=hint)


def is_busy(error: Exception) -> bool:
    code = error.sqlite_errorcode & 0xFF if has_code(error) else 0
    return code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def is_write_error(error: Exception) -> bool:
    codes = (sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_SHMSIZE)
    return has_code(error) and error.sqlite_errorcode in codes


def has_code(error: Exception) -> TypeGuard[sqlite3.Error]:
    """An error that we raised ourselves has none."""
    return hasattr(error, "sqlite_errorcode")
