"""The supervisor's writes when the store does not take them: kept, and written later."""

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from integration.store.test_store import OWNER, rows
from ramherd.core.errors import StoreError
from ramherd.core.model import Event, JobState, Reason, Why
from ramherd.store.events import add_event
from ramherd.store.herds import add_herd, add_run, read_job_state, set_job
from ramherd.store.sqlite import SqliteStore
from ramherd.store.write_buffer import WriteBuffer
from support.make import HERD, job, status


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    with closing(SqliteStore(tmp_path / "ramherd.db")) as made:
        add_herd(made, HERD, OWNER, [status(job("a"))])
        yield made


@contextmanager
def locked(store: SqliteStore) -> Iterator[None]:
    """Another process is at it: a backup, sqlite3 in a shell."""
    with closing(sqlite3.connect(store.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")


def buffer_event(writes: WriteBuffer, kind: str) -> None:
    event = Event(kind, Reason(Why.FITS, need_bytes=1, have_bytes=2), 1.0, HERD)
    writes.add(add_event, event)


def kinds(store: SqliteStore) -> list[Any]:
    """What another process sees."""
    return [row["kind"] for row in rows(store.path, "SELECT kind FROM events ORDER BY seq")]


def test_what_was_added_is_on_disk_after_the_commit(store: SqliteStore) -> None:
    """In order, once, and not before."""
    writes = WriteBuffer(store)
    buffer_event(writes, "a")
    buffer_event(writes, "b")
    assert kinds(store) == []

    assert writes.commit()
    assert writes.commit()
    assert kinds(store) == ["a", "b"]
    assert writes.trouble == ""


def test_nothing_to_write_is_no_trouble(store: SqliteStore) -> None:
    """A quiet step does not touch the store, whoever holds it."""
    writes = WriteBuffer(store)

    with locked(store):
        assert writes.commit()


def test_a_locked_store_is_trouble_with_a_name(store: SqliteStore) -> None:
    """And nobody waits for it: limits and signals are looked after all the same."""
    writes = WriteBuffer(store)
    buffer_event(writes, "a")

    with locked(store):
        began = time.monotonic()
        assert not writes.commit()
        # The store itself is patient for ten seconds.
        assert time.monotonic() - began < 5.0

    assert "database is locked" in writes.trouble
    assert str(store.path) in writes.trouble


def test_nothing_is_lost_while_the_store_is_locked(store: SqliteStore) -> None:
    """Over several steps, in order, and each only once."""
    writes = WriteBuffer(store)
    with locked(store):
        for kind in ("a", "b", "c"):
            buffer_event(writes, kind)
            assert not writes.commit()
        assert not writes.commit()

    assert writes.commit()
    assert kinds(store) == ["a", "b", "c"]
    assert writes.trouble == ""


def test_trouble_can_come_again(store: SqliteStore) -> None:
    """What was written is not written a second time."""
    writes = WriteBuffer(store)
    for kind in ("a", "b"):
        buffer_event(writes, kind)
        with locked(store):
            assert not writes.commit()
        assert writes.commit()

    assert kinds(store) == ["a", "b"]


def test_a_disk_that_fills_up_in_the_middle_leaves_no_half_of_a_step(store: SqliteStore) -> None:
    """All of it comes with the next step, as one transaction."""
    writes, full = WriteBuffer(store), [True]

    def write_last(store: SqliteStore) -> None:
        if full:
            with store._explained():
                raise sqlite3.OperationalError("database or disk is full")

    buffer_event(writes, "a")
    writes.add(set_job, status(job("a"), JobState.DONE))
    writes.add(write_last)
    assert not writes.commit()
    assert "disk is full" in writes.trouble
    assert (kinds(store), read_job_state(store, "id-a")) == ([], "queued")

    full.clear()
    assert writes.commit()
    assert (kinds(store), read_job_state(store, "id-a")) == (["a"], "done")


def test_a_write_that_can_never_work_is_raised(store: SqliteStore) -> None:
    """The same attempt twice is a bug of ours: trying again would hide it for ever."""
    writes = WriteBuffer(store)
    buffer_event(writes, "a")
    for run in ("R1", "R2"):
        writes.add(add_run, run, "id-a", 1, 0)

    with pytest.raises(StoreError, match="UNIQUE"):
        writes.commit()
    assert kinds(store) == []
    assert rows(store.path, "SELECT * FROM runs") == []


def test_a_start_that_was_not_written_can_be_withdrawn(store: SqliteStore) -> None:
    """What else was added stays, in its order."""
    writes = WriteBuffer(store)
    buffer_event(writes, "a")
    writes.start = "R1"
    buffer_event(writes, "b")
    writes.start = ""
    buffer_event(writes, "c")

    writes.withdraw("R1")
    assert writes.commit()
    assert kinds(store) == ["a", "c"]


def test_the_last_writes_are_tried_for_a_while(store: SqliteStore) -> None:
    """Until the store takes them, the time is over, or a signal comes; then with the reason."""
    writes = WriteBuffer(store)
    buffer_event(writes, "a")
    with locked(store):
        assert "database is locked" in writes.commit_last(0.05, lambda: False)
        assert "database is locked" in writes.commit_last(60.0, lambda: True)

    assert writes.commit_last(0.0, lambda: True) == ""
    assert kinds(store) == ["a"]
