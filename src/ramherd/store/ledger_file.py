"""The file of the ledger: opens it for one transaction at a time, and handles a file that is
broken, locked, of another version, or was moved away.

`ledger.py` and `subagent_slots.py` define the rows. The hook loads this module for each subagent,
so it does without dataclasses and pathlib (16 ms together). SQLite itself never waits for a lock:
Ctrl-C would not interrupt that wait.
"""

from __future__ import annotations

import errno
import os
import sqlite3
import time
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from ramherd.core.errors import LedgerLocked, StoreError, StoreUnavailable
from ramherd.core.reasons import Reason, Why
from ramherd.store.sql import ledger as sql
from ramherd.system.files import find_foreign
from ramherd.system.ids import new_id
from ramherd.system.lock_file import acquire_lock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

T = TypeVar("T")

# SQLite waits 1, 2, 5, 10 ms and more between its tries; a transaction here takes 0.3 ms.
RETRY_S = 0.0005
# A lock held for longer than this is reported: no ramherd holds one for that long.
BUSY_S = 1.0
# A transaction on a file that was replaced meanwhile is repeated on the new file.
ATTEMPTS = 3
BROKEN = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


class RowFunctions(NamedTuple):
    """Functions of `ledger.py` for the rows. `find_users` reads the pids of live owners from a
    ledger of any format; `fill` fills tables that were just created.
    """

    find_users: Callable[[sqlite3.Connection], list[int]]
    fill: Callable[[sqlite3.Connection], None]


class LedgerFile:
    """`patience_s` is how long a statement waits for other processes. `notices` are the changes
    that this process made to make the ledger usable, to be reported.
    """

    def __init__(self, path: str, rows: RowFunctions) -> None:
        self.path = path
        self.patience_s = BUSY_S
        self.notices: list[Reason] = []
        self._rows = rows
        self._db: sqlite3.Connection | None = None
        # Device and inode of the open file.
        self.identity: tuple[int, int] | None = None
        self._version: int | None = None

    def read(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        return self._execute(statement, values).fetchall()

    def write(self, statement: str, values: Sequence[Any] = ()) -> None:
        self._execute(statement, values)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        self.write("BEGIN IMMEDIATE")
        try:
            yield
            self.write("COMMIT")
        except BaseException:
            if self._db is not None and self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise

    def attempt(self, act: Callable[[], T]) -> T:
        """Calls `act`, and calls it again if the file was broken or replaced meanwhile: its changes
        count only in the file that others open.
        """
        failure: StoreError | None = None
        for _ in range(ATTEMPTS):
            if failure is not None or not self.is_current():
                self.open()
            try:
                answer, failure = act(), None
            except StoreError as error:
                if not is_unusable(error.__cause__) and self.is_current():
                    raise
                failure = error
            if failure is None and self.is_current():
                return answer
        raise failure or StoreUnavailable(f"the ledger {self.path} keeps being replaced")

    def has_changed(self) -> bool:
        """Whether another process has written since the last call, or replaced the file: cheaper
        than reading the rows.
        """
        if not self.is_current():
            return True
        ((version,),) = self.read("PRAGMA data_version")
        before, self._version = self._version, version
        return bool(version != before)

    def is_current(self) -> bool:
        """Whether the open file is the one that others open."""
        return self._db is not None and self.identity == read_identity(self.path)

    def open(self) -> None:
        """One process at a time: of two that find a broken file, only the first sets it aside. The
        old file is closed here too: the last process to close a file removes its log, by name.
        """
        with self._explained(), locked(self._lock_path, self.patience_s):
            self._close()
            self._db = self._retry(self._open_or_set_aside)
            self.identity = read_identity(self.path)

    def close(self) -> None:
        if self._db is None:
            return
        try:
            with locked(self._lock_path, 0.0):
                self._close()
        except OSError:
            self._close()

    def _close(self) -> None:
        if self._db is not None:
            self._db.close()
            self._db = None

    @property
    def _lock_path(self) -> str:
        return f"{os.path.splitext(self.path)[0]}.lock"

    def _execute(self, statement: str, values: Sequence[Any]) -> sqlite3.Cursor:
        if self._db is None:
            self.open()
        with self._explained():
            assert self._db is not None
            db = self._db
            return self._retry(lambda: db.execute(statement, values))

    def _retry(self, act: Callable[[], T]) -> T:
        """Retries until `act` succeeds, fails for another reason than a lock, or time is up."""
        deadline = time.monotonic() + self.patience_s
        while True:
            try:
                return act()
            except sqlite3.Error as error:
                if not is_busy(error) or time.monotonic() >= deadline:
                    raise
            time.sleep(RETRY_S)

    def _open_or_set_aside(self) -> sqlite3.Connection:
        try:
            return open_ledger(self.path, self._rows)
        except sqlite3.DatabaseError as error:
            if not is_broken(error):
                raise
            problem = str(error)
        aside = set_aside(self.path)
        db = open_ledger(self.path, self._rows)
        ((leases,),) = db.execute(sql.COUNT_LEASES).fetchall()
        self.notices.append(
            Reason(
                Why.LEDGER_SET_ASIDE,
                path=self.path,
                problem=problem,
                aside=os.path.basename(aside),
                leases=leases,
            )
        )
        return db

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise explain(self.path, self._lock_path, error) from error


@contextmanager
def locked(path: str, patience_s: float) -> Iterator[None]:
    """Raises BlockingIOError if other processes hold the lock all the while."""
    deadline = time.monotonic() + patience_s
    while (held := acquire_lock(path, wait=False)) is None:
        if time.monotonic() >= deadline:
            raise BlockingIOError(errno.EAGAIN, "locked", path)
        time.sleep(RETRY_S)
    try:
        yield
    finally:
        held.close()


def read_identity(path: str) -> tuple[int, int] | None:
    """Device and inode; None for a file that is gone or was truncated. Processes that have a
    truncated file open could go on with its log, but no other process could read it.
    """
    try:
        found = os.stat(path)
    except OSError:
        return None
    return (found.st_dev, found.st_ino) if found.st_size else None


def open_ledger(path: str, rows: RowFunctions) -> sqlite3.Connection:
    """Opens the ledger; creates it if there is none. Raises the error that SQLite finds in it."""
    make_file(path)
    db = sqlite3.connect(path, timeout=0, isolation_level=None)
    try:
        # WAL without syncs: it survives the death of every process, and a reboot voids it anyway.
        db.execute("PRAGMA synchronous = OFF")
        prepare(db, path, rows)
    except BaseException:
        db.close()
        raise
    return db


def make_file(path: str) -> None:
    """Makes an empty file, without the remains of an earlier one. A file that is empty already was
    truncated, or its maker died: processes that have it open would never let us write to it.
    """
    for name in (path, f"{path}-wal", f"{path}-shm"):
        if problem := find_foreign(name):
            raise StoreError(
                f"cannot use the ledger {name}: {problem}",
                hint=f"move it away: mv {name} {name}.old",
            )
    if not os.path.exists(path) or os.path.getsize(path) == 0:
        for suffix in ("-wal", "-shm", ""):
            remove(path + suffix)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        os.close(os.open(path, flags, 0o600))


def prepare(db: sqlite3.Connection, path: str, rows: RowFunctions) -> None:
    (id_,) = db.execute("PRAGMA application_id").fetchone()
    (version,) = db.execute("PRAGMA user_version").fetchone()
    tables = {name for (name,) in db.execute(sql.TABLE_NAMES)}
    if tables and id_ != sql.APPLICATION_ID:
        raise StoreError(
            f"{path} is another program's database", hint=f"move it away: mv {path} {path}.other"
        )
    (check,) = db.execute("PRAGMA quick_check(1)").fetchone()
    if check != "ok":
        raise QuickCheckFailed(check)
    is_foreign = bool(tables) and version // 100 != sql.FORMAT
    if is_foreign and (users := rows.find_users(db)):
        raise StoreError(
            f"the ledger {path} has format {version // 100}, and this ramherd uses format "
            f"{sql.FORMAT}: process {users[0]} uses it",
            hint="end the ramherds of the other version, or use that version",
        )
    if is_foreign or not tables >= sql.TABLES:
        make_tables(db, rows, drop=tables if is_foreign else set())


class QuickCheckFailed(sqlite3.DatabaseError):
    """The error that PRAGMA quick_check found."""

    sqlite_errorcode = sqlite3.SQLITE_CORRUPT


def make_tables(db: sqlite3.Connection, rows: RowFunctions, *, drop: set[str]) -> None:
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("BEGIN IMMEDIATE")
    for table in drop:
        db.execute(f'DROP TABLE "{table}"')
    for statement in sql.SCHEMA:
        db.execute(statement)
    rows.fill(db)
    db.execute("COMMIT")


def set_aside(path: str) -> str:
    """Moves the main file last: if we die meanwhile, it is still found to be broken."""
    aside = f"{path}.aside-{new_id()}"
    for suffix in ("-wal", "-shm", ""):
        try:
            os.rename(path + suffix, aside + suffix)
        except FileNotFoundError:
            pass
    return aside


def remove(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass


def code_of(error: BaseException | None) -> int | None:
    """SQLite's primary result code."""
    code = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF


def is_busy(error: BaseException | None) -> bool:
    return code_of(error) in BUSY


def is_broken(error: BaseException | None) -> bool:
    """Proven corruption. A file that cannot be opened, read or written now is not broken."""
    return code_of(error) in BROKEN


def is_unusable(error: BaseException | None) -> bool:
    """Broken, or without its tables because it was truncated."""
    return code_of(error) in (*BROKEN, sqlite3.SQLITE_ERROR)


def explain(path: str, lock_path: str, error: Exception) -> StoreError:
    """One line that names the cause, with a hint that works."""
    what = f"cannot use the ledger {path}"
    if is_busy(error) or isinstance(error, BlockingIOError):
        from ramherd.store.lock_holder import describe_holder  # noqa: PLC0415 - seldom

        holder, hint = describe_holder(path, lock_path)
        return LedgerLocked(f"{what}: locked by {holder}", hint=hint)
    cause, hint = describe_cause(path, error)
    return StoreUnavailable(f"{what}: {cause}", hint=hint)


def describe_cause(path: str, error: Exception) -> tuple[str, str]:
    """SQLite does not report why it cannot open a file."""
    failure = error if isinstance(error, OSError) else find_failure()
    if failure is not None and failure.errno in (errno.EMFILE, errno.ENFILE):
        return str(failure.strerror), "raise the limit on open files: ulimit -n 4096"
    if code_of(error) == sqlite3.SQLITE_FULL or is_disk_full(os.path.dirname(path)):
        return "the disk is full", f"make room: df {os.path.dirname(path)}"
    cause = str(failure.strerror) if failure is not None else str(error)
    return cause, f"look at its owner and mode: ls -l {path}*"


def is_disk_full(path: str) -> bool:
    try:
        found = os.statvfs(path)
    except OSError:
        return False
    return found.f_bavail == 0 or (found.f_files > 0 and found.f_favail == 0)


def find_failure() -> OSError | None:
    """Whether this process can open as many files as SQLite does."""
    opened: list[int] = []
    try:
        for _ in range(3):
            opened.append(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
    except OSError as error:
        return error
    finally:
        for fd in opened:
            os.close(fd)
    return None


def read_ledger(path: str, statement: str) -> list[tuple[Any, ...]]:
    """For processes without a lease: creates and moves nothing; [] if nothing can be read."""
    if not os.path.exists(path):
        return []
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=1)) as db:
            return db.execute(statement).fetchall()
    except sqlite3.Error:
        return []
