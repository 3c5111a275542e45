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
from ramherd.store.sqlite import Store
from ramherd.store.write_buffer import WriteBuffer
from support.make import HERD, job, status


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with closing(Store(tmp_path / "ramherd.db")) as made:
        made.add_herd(HERD, OWNER, [status(job("a"))])
        yield made


@contextmanager
def locked(store: Store) -> Iterator[None]:
    """Another process is at it: a backup, sqlite3 in a shell."""
    with closing(sqlite3.connect(store.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")


def add_event(writes: WriteBuffer, kind: str) -> None:
    event = Event(kind, Reason(Why.FITS, need_bytes=1, have_bytes=2), 1.0, HERD)
    writes.add(Store.add_event, event)


def kinds(store: Store) -> list[Any]:
    """What another process sees."""
    return [row["kind"] for row in rows(store.path, "SELECT kind FROM events ORDER BY seq")]


def test_what_was_added_is_on_disk_after_the_commit(store: Store) -> None:
    """In order, once, and not before."""
    writes = WriteBuffer(store)
    add_event(writes, "a")
    add_event(writes, "b")
    assert kinds(store) == []

    assert writes.commit()
    assert writes.commit()
    assert kinds(store) == ["a", "b"]
    assert writes.trouble == ""


def test_nothing_to_write_is_no_trouble(store: Store) -> None:
    """A quiet step does not touch the store, whoever holds it."""
    writes = WriteBuffer(store)

    with locked(store):
        assert writes.commit()


def test_a_locked_store_is_trouble_with_a_name(store: Store) -> None:
    """And nobody waits for it: limits and signals are looked after all the same."""
    writes = WriteBuffer(store)
    add_event(writes, "a")

    with locked(store):
        began = time.monotonic()
        assert not writes.commit()
        # The store itself is patient for ten seconds.
        assert time.monotonic() - began < 5.0

    assert "database is locked" in writes.trouble
    assert str(store.path) in writes.trouble


def test_nothing_is_lost_while_the_store_is_locked(store: Store) -> None:
    """Over several steps, in order, and each only once."""
    writes = WriteBuffer(store)
    with locked(store):
        for kind in ("a", "b", "c"):
            add_event(writes, kind)
            assert not writes.commit()
        assert not writes.commit()

    assert writes.commit()
    assert kinds(store) == ["a", "b", "c"]
    assert writes.trouble == ""


def test_trouble_can_come_again(store: Store) -> None:
    """What was written is not written a second time."""
    writes = WriteBuffer(store)
    for kind in ("a", "b"):
        add_event(writes, kind)
        with locked(store):
            assert not writes.commit()
        assert writes.commit()

    assert kinds(store) == ["a", "b"]


def test_a_disk_that_fills_up_in_the_middle_leaves_no_half_of_a_step(store: Store) -> None:
    """All of it comes with the next step, as one transaction."""
    writes, full = WriteBuffer(store), [True]

    def write_last(store: Store) -> None:
        if full:
            with store._explained():
                raise sqlite3.OperationalError("database or disk is full")

    add_event(writes, "a")
    writes.add(Store.set_job, status(job("a"), JobState.DONE))
    writes.add(write_last)
    assert not writes.commit()
    assert "disk is full" in writes.trouble
    assert (kinds(store), store.job_state("id-a")) == ([], "queued")

    full.clear()
    assert writes.commit()
    assert (kinds(store), store.job_state("id-a")) == (["a"], "done")


def test_a_write_that_can_never_work_is_raised(store: Store) -> None:
    """The same attempt twice is a bug of ours: trying again would hide it for ever."""
    writes = WriteBuffer(store)
    add_event(writes, "a")
    for run in ("R1", "R2"):
        writes.add(Store.add_run, run, "id-a", 1, 0)

    with pytest.raises(StoreError, match="UNIQUE"):
        writes.commit()
    assert kinds(store) == []
    assert rows(store.path, "SELECT * FROM runs") == []
