"""The numbers of jobs, in a real store."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from ramherd.core.model import ProcId
from ramherd.store.events import read_event_page
from ramherd.store.herds import add_herd
from ramherd.store.job_numbers import find_numbered_job, read_numbers
from ramherd.store.known_rows import add_known_jobs
from ramherd.store.owner import Owner
from ramherd.store.sqlite import SqliteStore
from support.make import job, status

OWNER = Owner("OWNER", "boot", ProcId(7, 99))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    with closing(SqliteStore(tmp_path / "ramherd.db")) as made:
        yield made


def add(store: SqliteStore, herd: str, *names: str) -> dict[str, int]:
    """The numbers of the jobs of a new herd."""
    made = [
        status(replace(job(name, seq=seq), id=f"{herd}-{name}", herd=herd))
        for seq, name in enumerate(names, 1)
    ]
    add_herd(store, herd, OWNER, made)
    return read_numbers(store, herd)


def test_jobs_are_numbered_in_the_order_of_submission(store: SqliteStore) -> None:
    """One row of numbers for all herds of a store."""
    assert add(store, "H1", "b", "a") == {"H1-b": 1, "H1-a": 2}
    assert add(store, "H2", "c") == {"H2-c": 3}
    assert find_numbered_job(store, "2") == "H1-a"


@pytest.mark.parametrize("text", ["4", "0", "-1", "two", "", "1" * 30, "\u0661"])
def test_other_texts_are_no_number(store: SqliteStore, text: str) -> None:
    """Nor is a number that no job has; and SQLite keeps 64 bits."""
    add(store, "H1", "a", "b")

    assert find_numbered_job(store, text) is None


def test_the_number_of_a_pruned_job_is_not_given_again(store: SqliteStore) -> None:
    """A command that was printed for it must never mean another job."""
    add(store, "H1", "a", "b")
    store.write("DELETE FROM jobs")
    store.commit()

    assert add(store, "H2", "c") == {"H2-c": 3}


def test_jobs_without_a_number_get_the_next_ones(store: SqliteStore) -> None:
    """Those that are restored, and those of an earlier ramherd that goes on beside this one."""
    add(store, "H1", "a")
    known = [status(replace(job(name), id=f"H2-{name}", herd="H2")) for name in ("x", "y")]
    for _time in range(2):
        add_known_jobs(store, OWNER, known, is_service=False)
    assert read_numbers(store, "H2") == {"H2-x": 2, "H2-y": 3}
    store.write("UPDATE jobs SET number = NULL WHERE id = 'H2-y'")
    store.commit()

    assert add(store, "H3", "z") == {"H3-z": 4}
    assert read_numbers(store, "H2") == {"H2-x": 2, "H2-y": 3}


def test_numbers_outlive_the_files_of_the_store(store: SqliteStore) -> None:
    """A store that is written back has the same numbers, and gives none twice."""
    store.may_restore = True
    add(store, "H1", "a", "b")
    store.write("DELETE FROM jobs WHERE number = 2")
    store.commit()
    store.path.unlink()
    store.check()

    assert read_numbers(store, "H1") == {"H1-a": 1}
    assert add(store, "H2", "c") == {"H2-c": 3}


def test_events_of_a_job_are_found_by_its_number(store: SqliteStore) -> None:
    """As by its id."""
    add(store, "H1", "a")
    store.write(
        "INSERT INTO events (at_s, kind, herd, job, reason) VALUES (0, 'k', 'H1', 'H1-a', '{}')"
    )
    store.commit()

    assert read_event_page(store, 0, job="1") == read_event_page(store, 0, job="H1-a") != []
