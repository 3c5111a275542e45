"""The store of one user on one machine: SQLite in WAL mode, several ramherds at a time.

WAL with synchronous NORMAL survives the death of every process; writes in `synced` also survive a
power cut. `restore.py` writes a store back whose files were deleted or damaged.
"""

from __future__ import annotations

import errno
import json
import os
import sqlite3
import time
from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING, TypeVar

from ramherd.core.errors import MAKE_ROOM, StoreDamaged, StoreError, StoreUnavailable
from ramherd.core.units import format_size
from ramherd.store.protocol import BUSY_S
from ramherd.store.sql import migrations as sql
from ramherd.store.sql.records import OLDEST_ENDED
from ramherd.store.sql.service import GET_FLAG
from ramherd.system.files import find_foreign
from ramherd.system.own_process import read_file_size_limit
from ramherd.system.procfs import read_open_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path
    from typing import Any, TypeGuard

    from ramherd.store.protocol import Rows, Values

    Files = tuple[tuple[int, int] | None, ...]


T = TypeVar("T")

# The doctor waits only briefly.
CHECK_S = 0.5
RETRY_S = 0.005
# How often a read checks for files that were written back; a write always does.
FOLLOW_EVERY_S = 0.1
GENERATIONS = "generations"
HEADER = b"SQLite format 3\0"


class SqliteStore:
    """One connection, which is opened again when the files of the store are replaced. `connect`
    opens it: `connect_to_write`, or another of the functions below.
    """

    def __init__(
        self, path: Path, connect: Callable[[Path], sqlite3.Connection] | None = None
    ) -> None:
        self.path, self._connect = path, connect or connect_to_write
        self.may_restore = False
        self.spool = path.with_name("requests")
        self._patience_s = BUSY_S
        self._restored: list[str] = []
        # The damage that a read or write found.
        self._damage = ""
        # The connection to the previous files, with their write lock: no process writes there.
        self._before: sqlite3.Connection | None = None
        self._followed_s = 0.0
        with self._explained():
            self._open()

    def _open(self) -> None:
        self._db = self._connect(self.path)
        try:
            self._prepare()
            self._generation = read_generations(self._db)[-1]
        except BaseException:
            self._db.close()
            raise
        self._db.execute("PRAGMA busy_timeout = 0")
        self._files, self._checked = self._find_files(), find_change(self.path)

    def read(self, statement: str, values: Values = ()) -> Rows:
        return self._patiently(lambda: self._db.execute(statement, values).fetchall())

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
        if self._db.in_transaction:
            return
        deadline = time.monotonic() + self._patience_s
        while self._find_files() != self._files:
            self._follow()
            if time.monotonic() >= deadline and self._find_files() != self._files:
                raise StoreUnavailable(
                    f"the store {self.path} was deleted or replaced",
                    hint="a service or herd that is running writes it back: try again",
                )
            time.sleep(RETRY_S)
        self._patiently(lambda: self._db.execute("BEGIN IMMEDIATE"))

    def commit(self) -> None:
        if self._db.in_transaction:
            with self._explained():
                self._db.execute("COMMIT")

    def rollback(self) -> None:
        """If SQLite could not go on, it has already rolled back."""
        if self._db.in_transaction:
            with suppress(sqlite3.Error):
                self._db.execute("ROLLBACK")

    @contextmanager
    def synced(self) -> Iterator[None]:
        self._follow()
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
        self._patience_s = for_s

    def check(self) -> None:
        if self._db.in_transaction:
            return
        self._follow()
        if self._find_files() != self._files:
            self._restore("replaced" if os.path.lexists(self.path) else "deleted")
        elif (change := find_change(self.path)) != self._checked:
            self._checked = change
            self._damage = self._damage or self._read_header_error() or self._read_damage()
        if self._damage:
            self._restore("damaged")

    def pop_restored(self) -> list[str]:
        restored, self._restored = self._restored, []
        return restored

    def overwrite_deleted(self) -> None:
        self.commit()
        self._patiently(lambda: self._db.execute("VACUUM"))
        with self._explained():
            ((is_busy, _log, _moved),) = self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        if is_busy:
            raise StoreUnavailable(f"the store {self.path} is in use by another program")

    def open_another(self) -> SqliteStore:
        return SqliteStore(self.path, self._connect)

    def close(self) -> None:
        self._db.close()
        if self._before is not None:
            self._before.close()

    def _patiently(self, act: Callable[[], T]) -> T:
        """Waits for a lock here, not in SQLite: Ctrl-C ends the wait, and the lock may belong to a
        store that was written back elsewhere meanwhile.
        """
        now = time.monotonic()
        deadline = now + self._patience_s
        if now - self._followed_s >= FOLLOW_EVERY_S:
            self._followed_s = now
            self._follow()
        while True:
            try:
                return act()
            except (sqlite3.Error, OSError) as error:
                is_free = not self._db.in_transaction
                if is_free and is_damaged(error) and self.may_restore and not self._damage:
                    self._damage = str(error)
                    self._restore("damaged")
                elif not (is_free and is_busy(error)) or time.monotonic() >= deadline:
                    raise self._explain(error) from error
                else:
                    time.sleep(RETRY_S)
                    self._follow()

    def _read_header_error(self) -> str:
        """The log may still have the pages that were overwritten in the file."""
        header = read_open_file(os.path.realpath(self.path), len(HEADER))
        return "" if header in (None, HEADER) else "its file is not a database"

    def _read_damage(self) -> str:
        """A file without a schema was emptied or overwritten: our store has one."""
        return read_store_error(self.path, has_schema=True)

    def _follow(self) -> None:
        """Switches to the files that another process wrote back."""
        if self._db.in_transaction or self._find_files() == self._files:
            return
        if is_continued(self.path, self._generation):
            self._db.close()
            self._open()
            self._damage = ""
            self._restored.append(f"the store {self.path} was written back: going on there")

    def _restore(self, what: str) -> None:
        if not self.may_restore:
            return
        from ramherd.store.restore import restore  # noqa: PLC0415 - hopefully never

        with self._explained():
            done = restore(self._db, self.path, self._generation, what)
            if self._before is not None:
                self._before.close()
            self._before = self._db
            self._open()
        self._damage = ""
        self._restored.append(done)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise self._explain(error) from error

    def _explain(self, error: Exception) -> StoreError:
        explained = explain(self.path, error)
        if isinstance(explained, StoreDamaged):
            self._damage = str(error)
        return explained

    def _prepare(self) -> None:
        if read_version(self._db) == len(sql.MIGRATIONS):
            return
        if self._connect is connect_to_read:
            self._db = copy_to_memory(self._db)
        migrate(self._db, self.path)

    def _find_files(self) -> Files:
        """A connection that only reads once keeps the files that it has opened."""
        return find_files(self.path) if self._connect is connect_to_write else ()


def read_version(db: sqlite3.Connection) -> int:
    """How many migrations were applied to the store, without a lock."""
    if not db.execute(sql.HAS_MIGRATIONS).fetchall():
        return 0
    return int(db.execute(sql.NEWEST_MIGRATION).fetchone()[0])


def migrate(db: sqlite3.Connection, path: Path) -> None:
    db.execute("BEGIN IMMEDIATE")
    db.execute(sql.MIGRATIONS_TABLE)
    at = read_version(db)
    if at > len(sql.MIGRATIONS):
        db.execute("ROLLBACK")
        raise StoreError(
            f"the store {path} was written by a newer ramherd (schema {at}, "
            f"this one knows {len(sql.MIGRATIONS)})",
            hint="upgrade ramherd, or set XDG_STATE_HOME to another directory",
        )
    for number, statements in enumerate(sql.MIGRATIONS[at:], at + 1):
        for statement in statements:
            db.execute(statement)
        db.execute(sql.ADD_MIGRATION, (number, time.time()))
    db.execute("COMMIT")


def read_generations(db: sqlite3.Connection) -> list[str]:
    """A store that is written back gets a new generation: the names of all, the newest last. The
    first is named after the time at which the store was made.
    """
    rows = db.execute(GET_FLAG, (GENERATIONS,)).fetchall()
    if rows:
        found: list[str] = json.loads(rows[0][0])
        return found
    return [repr(db.execute(sql.MADE).fetchone()[0])]


def is_continued(path: Path, generation: str) -> bool:
    """Whether the store at this path was written back from one of that generation."""
    try:
        with closing(sqlite3.connect(read_only(path), uri=True, timeout=0)) as db:
            return generation in read_generations(db)[:-1]
    except sqlite3.Error:
        return False


def find_files(path: Path) -> Files:
    """Identifies the files. SQLite keeps them while a connection is open: if a file is gone or
    replaced, another program did that, and no other process sees what we write.
    """
    return tuple(map(find_file, (f"{path}", f"{path}-wal", f"{path}-shm")))


def find_file(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path, follow_symlinks=False)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def find_change(path: Path) -> tuple[int, int]:
    """The file itself changes only with checkpoints: so seldom that each change is checked."""
    try:
        found = os.stat(path, follow_symlinks=False)
    except OSError:
        return 0, 0
    return found.st_size, found.st_mtime_ns


def create_private(path: Path) -> None:
    """Makes the file if it does not exist, and never opens one that does: closing any descriptor of
    a file releases all locks that this process has on it (fcntl), including those of SQLite. The
    next process to close its connection would take itself for the last one, and remove the log that
    we write to: all our later commits would be lost.
    """
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        pass


def connect_to_write(path: Path) -> sqlite3.Connection:
    """Makes files with mode 0600. SQLite opens files by their names, and would follow a link: all
    of them are checked first. In a directory of ours with mode 0700 no other user can put a link
    there between the check and the open.
    """
    for suffix in ("", "-wal", "-shm", "-journal"):
        if problem := find_foreign(f"{path}{suffix}"):
            raise PermissionError(errno.EPERM, problem, f"{path}{suffix}")
    create_private(path)
    db = sqlite3.connect(path, timeout=BUSY_S, isolation_level=None)
    try:
        use_log(db)
        db.execute("PRAGMA synchronous = NORMAL")
        # A checkpoint syncs the disk, for 10 ms and more: every 16 MB instead of every 4.
        db.execute("PRAGMA wal_autocheckpoint = 4000")
    except BaseException:
        db.close()
        raise
    return db


def use_log(db: sqlite3.Connection) -> None:
    """Of two processes that create the store at the same time, SQLite refuses one at once, without
    waiting for the other.
    """
    deadline = time.monotonic() + BUSY_S
    while True:
        try:
            db.execute("PRAGMA journal_mode = WAL")
        except sqlite3.Error as error:
            if not is_busy(error) or time.monotonic() >= deadline:
                raise
            time.sleep(RETRY_S)
        else:
            return


# Without space for the `-shm` file SQLite reports a full disk, or that the file cannot be read.
SHARED_MEMORY_BYTES = 32 << 10
NO_SHARED_MEMORY = (
    sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR,
)  # fmt: skip


def connect_to_read(path: Path) -> sqlite3.Connection:
    """For a read-only disk, or another user's store. Without the `-shm` file, which it then cannot
    make, SQLite reads only the file itself, and nothing of the log: see `read_unseen_bytes`.
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
        if error.sqlite_errorcode & 0xFF not in NO_SHARED_MEMORY:
            raise
    uri = f"{path.absolute().as_uri()}?immutable=1"
    return sqlite3.connect(uri, uri=True, isolation_level=None)


def connect_to_nothing(_path: Path) -> sqlite3.Connection:
    """For a verb that only reads, when there is no store: an empty one."""
    return sqlite3.connect(":memory:", isolation_level=None)


def copy_to_memory(db: sqlite3.Connection) -> sqlite3.Connection:
    """For a store of an older ramherd that cannot be migrated on its disk."""
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


def read_oldest_ended(path: Path) -> list[tuple[str, float, bool]]:
    """(run, end time, whether its herd is over) from a store that cannot be written because its
    disk is full. If the store cannot be opened either, it is read without its log: then the newest
    runs are missing.
    """
    for uri in (read_only(path), f"{path.absolute().as_uri()}?immutable=1"):
        with suppress(sqlite3.Error), closing(sqlite3.connect(uri, uri=True)) as db:
            return [(run, ended_s, bool(over)) for run, ended_s, over in db.execute(OLDEST_ENDED)]
    return []


def read_store_error(path: Path, *, has_schema: bool = False) -> str:
    """Reads only the first pages: a complete check of a large store takes seconds."""
    if not path.exists():
        return ""
    try:
        with closing(sqlite3.connect(read_only(path), uri=True, timeout=CHECK_S)) as db:
            version = read_version(db)
    except sqlite3.Error as error:
        return "" if is_busy(error) or is_without_room(error, path) else str(error)
    return "it is empty" if has_schema and not version else ""


def is_without_room(error: Exception, path: Path) -> bool:
    """Whether SQLite failed for lack of disk space, which it does not always report."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code not in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
        return False
    try:
        disk = os.statvfs(path.parent)
    except OSError:
        return False
    return code == sqlite3.SQLITE_FULL or disk.f_bavail * disk.f_frsize < SHARED_MEMORY_BYTES


def read_only(path: Path) -> str:
    return f"{path.absolute().as_uri()}?mode=ro"


@contextmanager
def explained(path: Path) -> Iterator[None]:
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise explain(path, error) from error


def explain(path: Path, error: Exception) -> StoreError:
    """One line for the user, with a hint."""
    what, hint = str(error), "set XDG_STATE_HOME to a directory you can write to"
    if is_damaged(error):
        return StoreDamaged(
            f"the store {path} is damaged: {what}",
            hint="ramherd up, or ramherd run: both set it aside and keep what can be read",
        )
    if isinstance(error, OSError) and error.strerror:
        other = error.filename if error.filename not in (None, path, str(path)) else ""
        what = f"{other}: {error.strerror}" if other else error.strerror
    if "symbolic link" in what:
        hint = "remove the link; a link in place of the whole directory is followed"
    elif "belongs to" in what:
        hint = "chown it to your user, or set XDG_STATE_HOME to a directory of yours"
    elif is_busy(error):
        from ramherd.store.lock_holder import describe_holder  # noqa: PLC0415 - seldom

        holder, hint = describe_holder(str(path))
        what = f"{what} by {holder}"
    elif is_without_room(error, path):
        what, hint = "the disk is full", MAKE_ROOM
    elif "full" in what:
        hint = MAKE_ROOM
    elif (limit_bytes := read_file_size_limit()) is not None and is_write_error(error):
        what = f"the file size limit (ulimit -f) is {format_size(limit_bytes)}"
        hint = "ulimit -f unlimited, then try again"
    kind = StoreUnavailable if isinstance(error, sqlite3.OperationalError) else StoreError
    return kind(f"cannot use the store {path}: {what}", hint=hint)


def is_damaged(error: Exception) -> bool:
    """If one of our statements does not fit the schema, the schema is not ours."""
    if not has_code(error):
        return False
    code = error.sqlite_errorcode & 0xFF
    is_gone = code == sqlite3.SQLITE_ERROR and str(error).startswith(
        ("no such table", "no such col")
    )
    return is_gone or code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def is_busy(error: Exception) -> bool:
    code = error.sqlite_errorcode & 0xFF if has_code(error) else 0
    return code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def is_write_error(error: Exception) -> bool:
    codes = (sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_SHMSIZE)
    return has_code(error) and error.sqlite_errorcode in codes


def has_code(error: Exception) -> TypeGuard[sqlite3.Error]:
    """Errors that we raised ourselves have no code."""
    return hasattr(error, "sqlite_errorcode")
