"""A store whose files are deleted, replaced or damaged while it is open."""

import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from integration.store.test_store import OWNER
from ramherd.core.errors import StoreDamaged, StoreUnavailable
from ramherd.core.model import JobState, Reason, RunEnd, Why
from ramherd.store.connect import open_store_for_runs
from ramherd.store.herds import StoredPen, add_herd, read_job_state, read_pens, set_job
from ramherd.store.known_rows import KnownRun, add_known_jobs, add_known_pens, add_known_runs
from ramherd.store.restore import copy_table, restore_damaged
from ramherd.store.service_runs import read_stopping, write_stopping
from ramherd.store.sqlite import SqliteStore, find_file
from support.make import HERD, job, status

FILES = ("", "-wal", "-shm")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "state").mkdir(mode=0o700)
    return tmp_path / "state/ramherd.db"


@pytest.fixture
def ours(path: Path) -> Iterator[SqliteStore]:
    """That of a supervisor."""
    with closing(SqliteStore(path)) as made:
        made.may_restore = True
        add_herd(made, HERD, OWNER, [status(job(name)) for name in "abc"])
        yield made


@pytest.fixture
def other(ours: SqliteStore) -> Iterator[SqliteStore]:
    """That of another process."""
    with closing(SqliteStore(ours.path)) as made:
        made.set_patience(0.05)
        yield made


def delete(path: Path) -> None:
    for suffix in FILES:
        os.unlink(f"{path}{suffix}")


def overwrite(path: Path) -> None:
    path.write_bytes(b"garbage" * 4000)


def replace_by_another(path: Path) -> None:
    delete(path)
    SqliteStore(path).close()


def restore_a_backup(path: Path) -> None:
    """An older state of the same store is none that was written back from it."""
    with closing(sqlite3.connect(path)) as db, closing(sqlite3.connect(f"{path}.old")) as old:
        db.backup(old)
    delete(path)
    os.rename(f"{path}.old", path)


MOVES: list[Callable[[Path], None]] = [
    delete,
    os.unlink,
    lambda path: os.unlink(f"{path}-wal"),
    lambda path: os.unlink(f"{path}-shm"),
    lambda path: shutil.rmtree(path.parent),
    replace_by_another,
    restore_a_backup,
]
DAMAGES: list[Callable[[Path], None]] = [
    lambda path: os.truncate(path, 0),
    overwrite,
]


@pytest.mark.parametrize("move", MOVES)
def test_files_that_are_gone_are_written_back(
    ours: SqliteStore, other: SqliteStore, move: Callable[[Path], None]
) -> None:
    """Nobody writes to the old ones meanwhile, and the other process goes on in the new ones."""
    move(ours.path)
    with pytest.raises(StoreUnavailable, match="deleted or replaced"):
        set_job(other, status(job("b"), JobState.DONE))

    ours.check()
    assert "written back, with 3 jobs" in " ".join(ours.pop_restored())
    set_job(other, status(job("b"), JobState.DONE))
    other.commit()
    assert read_job_state(ours, "id-b") == "done"
    assert ours.read("PRAGMA quick_check") == [("ok",)]


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("is_in_log", [True, False])
def test_a_damaged_file_is_set_aside(
    ours: SqliteStore, other: SqliteStore, damage: Callable[[Path], None], *, is_in_log: bool
) -> None:
    """It is found whether or not the log still has its pages; what this process has is kept."""
    if not is_in_log:
        ours.read("PRAGMA wal_checkpoint(TRUNCATE)")
    damage(ours.path)
    ours.check()

    (done,) = ours.pop_restored()
    aside = next(word for word in done.split() if ".damaged-" in word).rstrip(",")
    assert (ours.path.parent / aside).exists()
    assert ours.read("PRAGMA quick_check") == [("ok",)]
    other.set_patience(1.0)
    assert other.read("SELECT count(*) FROM jobs") == ours.read("SELECT count(*) FROM jobs")


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_is_found_behind_a_link(
    ours: SqliteStore, tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    """The state directory may be a link to another one, whose log still has the pages."""
    (tmp_path / "link").symlink_to(ours.path.parent)
    with closing(SqliteStore(tmp_path / "link" / ours.path.name)) as store:
        store.may_restore = True
        set_job(store, status(job("b"), JobState.DONE))
        store.commit()
        damage(store.path)
        store.check()

        assert len(store.pop_restored()) == 1


def test_a_check_of_a_whole_store_changes_nothing(ours: SqliteStore) -> None:
    """Also after a checkpoint and a VACUUM by hand."""
    before = ours._files
    for statement in ("PRAGMA wal_checkpoint(TRUNCATE)", "VACUUM", "PRAGMA wal_checkpoint"):
        with closing(sqlite3.connect(ours.path)) as db:
            db.execute(statement)
        ours.check()

    assert (ours._files, ours.pop_restored()) == (before, [])


def test_only_a_supervisor_writes_back(other: SqliteStore) -> None:
    """A verb would write back what it does not know to be the newest."""
    delete(other.path)
    other.check()

    assert not other.path.exists()


def test_a_store_is_written_back_again_and_again(ours: SqliteStore, other: SqliteStore) -> None:
    """One that slept through all of that finds the last one."""
    for _time in range(3):
        delete(ours.path)
        ours.check()

    set_job(other, status(job("a"), JobState.DONE))
    other.commit()
    assert read_job_state(ours, "id-a") == "done"


def test_a_damaged_store_is_an_error_with_a_hint_that_works(path: Path) -> None:
    """Whoever starts runs sets it aside."""
    path.write_bytes(b"garbage" * 4000)
    with pytest.raises(StoreDamaged, match="is damaged") as caught:
        SqliteStore(path)
    assert "ramherd run" in caught.value.hint

    with closing(open_store_for_runs(path.parent)) as store:
        assert store.read("SELECT count(*) FROM jobs") == [(0,)]
    SqliteStore(path).close()


def test_of_two_that_find_a_damaged_store_one_restores_it(path: Path) -> None:
    """The second would set aside the new one, which the first has open."""
    path.write_bytes(b"garbage" * 4000)
    found = find_file(str(path))
    restore_damaged(path, found)
    with closing(SqliteStore(path)) as store:
        add_herd(store, HERD, OWNER, [status(job("a"))])
        done = restore_damaged(path, found)

        assert "by another ramherd" in done
        assert find_file(str(path)) == store._files[0]


def test_a_store_that_cannot_be_written_back_stays(path: Path) -> None:
    """A full disk: no row is left out silently."""
    with closing(sqlite3.connect(path)) as old, closing(sqlite3.connect(":memory:")) as fresh:
        for db in (old, fresh):
            db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, text TEXT)")
        old.executemany("INSERT INTO t VALUES (?, ?)", [(n, "x" * 3000) for n in range(50)])
        fresh.execute("PRAGMA max_page_count = 9")

        with pytest.raises(sqlite3.OperationalError, match="full"):
            copy_table(old, fresh, "t")


def test_what_a_supervisor_knows_is_added(ours: SqliteStore) -> None:
    """Rows that are missing, and no row twice; jobs stand as it knows them."""
    statuses = [status(job("a"), JobState.RUNNING, attempts=1), status(job("new"), JobState.QUEUED)]
    for _time in range(2):
        add_known_jobs(ours, OWNER, statuses, is_service=False)
        add_known_runs(ours, [KnownRun("R1", "id-a", 1, 5.0)])
        add_known_pens(ours, HERD, [StoredPen("R1", "R1", {"kind": "polling"})])
        ours.commit()

    assert ours.read("SELECT id, state FROM jobs ORDER BY id") == [
        ("id-a", "running"), ("id-b", "queued"), ("id-c", "queued"), ("id-new", "queued"),
    ]  # fmt: skip
    assert ours.read("SELECT id, started_s FROM runs") == [("R1", 5.0)]
    assert read_pens(ours, HERD) == [StoredPen("R1", "R1", {"kind": "polling"})]


def test_why_a_run_was_stopped_is_in_its_directory(tmp_path: Path) -> None:
    """While the store cannot be written; without a file there was no order."""
    assert read_stopping(tmp_path) is None
    write_stopping(tmp_path, RunEnd.CANCELLED, Reason(Why.ASKED))
    assert read_stopping(tmp_path) == (RunEnd.CANCELLED, Reason(Why.ASKED))
