"""Writes a store back when its files were deleted or replaced, or are damaged.

An open connection reads files that have no name any more, so a supervisor has all of a deleted
store. Unreadable rows of a damaged store are lost; the file itself is set aside, never removed.
"""

from __future__ import annotations

import fcntl
import json
import os
import sqlite3
import time
from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING

from ramherd.core.errors import StoreUnavailable
from ramherd.store.sql.service import SET_FLAG
from ramherd.store.sqlite import (
    GENERATIONS,
    create_private,
    find_file,
    is_busy,
    is_continued,
    migrate,
    read_generations,
    read_only,
)
from ramherd.system.ids import new_id

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import Any

TABLES = """
    SELECT name FROM sqlite_master
    WHERE type = 'table' AND name NOT LIKE 'sqlite_%' AND name <> 'migrations'
"""
COLUMNS = "SELECT name FROM pragma_table_info(?)"
COUNT_JOBS = "SELECT count(*) FROM jobs"
SIDES = ("-wal", "-shm")


def restore(db: sqlite3.Connection, path: Path, generation: str, what: str) -> str:
    """Writes the store back from an open connection to its files; `what` describes what happened to
    them. Returns what was done, in words. Afterwards `db` has the write lock of those files, so
    that no other process writes there any more.
    """
    path.parent.mkdir(0o700, parents=True, exist_ok=True)
    with one_at_a_time(path):
        if is_continued(path, generation):
            return f"the store {path} was written back by another ramherd"
        lock_writes(db)
        try:
            jobs = write_fresh(db, path, generation)
            aside = set_aside(path) if os.path.lexists(path) else None
            put_in_place(path)
        except BaseException:
            unlock_writes(db)
            raise
    if aside is None:
        return f"the store {path} was deleted: it is written back, with {jobs} jobs"
    if what == "damaged":
        return describe_damaged(path, aside, jobs)
    return (
        f"a file of the store {path} was deleted or replaced: the store is written back, with "
        f"{jobs} jobs; what was there is now {aside}"
    )


def restore_damaged(path: Path, found: tuple[int, int] | None) -> str:
    """The same before a supervisor starts. `found` is the damaged file: of several ramherds that
    start at once, the first restores it, and the others wait.
    """
    with one_at_a_time(path, wait=True):
        if find_file(str(path)) != found:
            return f"the store {path} was written back by another ramherd"
        with closing(sqlite3.connect(read_only(path), uri=True)) as db:
            jobs = write_fresh(db, path, "")
        aside = set_aside(path)
        put_in_place(path)
    return describe_damaged(path, aside, jobs)


def describe_damaged(path: Path, aside: str, jobs: int) -> str:
    return (
        f"the store {path} was damaged: it is now {aside}, "
        f"and a new one has the {jobs} jobs that could be read"
    )


@contextmanager
def one_at_a_time(path: Path, *, wait: bool = False) -> Iterator[None]:
    """Locks the directory, which exists whatever happened to the files."""
    fd = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        yield
    except BlockingIOError:
        raise StoreUnavailable(f"another ramherd process is restoring the store {path}") from None
    finally:
        os.close(fd)


def lock_writes(db: sqlite3.Connection) -> None:
    """Damaged files may not even be lockable."""
    try:
        db.execute("BEGIN IMMEDIATE")
    except sqlite3.DatabaseError as error:
        if is_busy(error):
            raise


def unlock_writes(db: sqlite3.Connection) -> None:
    if db.in_transaction:
        with suppress(sqlite3.Error):
            db.execute("ROLLBACK")


def write_fresh(old: sqlite3.Connection, path: Path, generation: str) -> int:
    """Writes a new store beside the path, with all readable rows. Returns its job count."""
    fresh = path.with_name(f"{path.name}.new")
    for suffix in ("", "-journal", *SIDES):
        with suppress(FileNotFoundError):
            os.unlink(f"{fresh}{suffix}")
    create_private(fresh)
    with closing(sqlite3.connect(fresh, isolation_level=None)) as db:
        migrate(db, fresh)
        db.execute("BEGIN")
        for (table,) in db.execute(TABLES).fetchall():
            copy_table(old, db, table)
        add_generation(db, generation)
        db.execute("COMMIT")
        (jobs,) = db.execute(COUNT_JOBS).fetchone()
    return int(jobs)


def add_generation(db: sqlite3.Connection, generation: str) -> None:
    before = [one for one in read_generations(db) if one != generation]
    names = [*before, *([generation] if generation else []), new_id()]
    db.execute(SET_FLAG, (GENERATIONS, json.dumps(names)))


def copy_table(old: sqlite3.Connection, fresh: sqlite3.Connection, table: str) -> None:
    """Copies forwards to the first unreadable row, then backwards from the last. A failed write is
    an error: the disk is full.
    """
    ours = {name for (name,) in fresh.execute(COLUMNS, (table,))}
    try:
        columns = [name for (name,) in old.execute(COLUMNS, (table,)) if name in ours]
    except sqlite3.DatabaseError:
        return
    names = ", ".join(f'"{name}"' for name in columns)
    marks = ", ".join("?" * len(columns))
    insert = f"INSERT OR IGNORE INTO {table} ({names}) VALUES ({marks})"
    select = f"SELECT {names} FROM {table}"
    if columns and not copy_rows(old, select, fresh, insert):
        copy_rows(old, f"{select} ORDER BY rowid DESC", fresh, insert)


def copy_rows(old: sqlite3.Connection, select: str, fresh: sqlite3.Connection, insert: str) -> bool:
    """Returns whether all rows could be read."""
    rows: Iterator[tuple[Any, ...]] | None = None
    while True:
        try:
            rows = rows or old.execute(select)
            row = next(rows, None)
        except sqlite3.DatabaseError:
            return False
        if row is None:
            return True
        with suppress(sqlite3.IntegrityError):  # half a row, which violates a constraint
            fresh.execute(insert, row)


def set_aside(path: Path) -> str:
    """With its log, which is part of the store. Returns the new name."""
    name = f"{path.name}.damaged-{time.strftime('%Y%m%dT%H%M%S')}-{new_id()[-4:]}"
    aside = path.with_name(name)
    os.rename(path, aside)
    with suppress(FileNotFoundError):
        os.rename(f"{path}-wal", f"{aside}-wal")
    return name


def put_in_place(path: Path) -> None:
    """Removes the old log first: SQLite would take it for the log of the new file."""
    for suffix in SIDES:
        with suppress(FileNotFoundError):
            os.unlink(f"{path}{suffix}")
    os.rename(path.with_name(f"{path.name}.new"), path)
