"""What a look leaves for the next, in a real store."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ramherd.core.model import ProcId
from ramherd.core.sightings import Sighting, StrayCount
from ramherd.store.herds import add_herd, add_pen, add_run, end_herd
from ramherd.store.owner import Owner, OwnerLock
from ramherd.store.sightings import (
    add_counts,
    find_over,
    read_counts,
    read_sightings,
    set_sightings,
)
from ramherd.store.sqlite import SqliteStore
from support.make import job, status

SEEN = Sighting(1.0, 90.0, 40, 7, 80.0, 1 << 20, None, ((1.0, 5), (2.0, 6)))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    made = SqliteStore(tmp_path / "ramherd.db")
    yield made
    made.close()


def test_sightings_are_kept_for_each_place(store: SqliteStore) -> None:
    """A pid in a container is another process."""
    orphan = SEEN._replace(orphan_s=50.0)
    set_sightings(store, "here", {ProcId(5, 50): SEEN, ProcId(6, 60): orphan}, 90.0)
    set_sightings(store, "there", {ProcId(5, 50): orphan}, 90.0)

    assert read_sightings(store, "here") == {ProcId(5, 50): SEEN, ProcId(6, 60): orphan}
    assert read_sightings(store, "there") == {ProcId(5, 50): orphan}


def test_what_was_not_seen_again_is_forgotten(store: SqliteStore) -> None:
    """At once here, after a day elsewhere."""
    set_sightings(store, "here", {ProcId(5, 50): SEEN, ProcId(6, 60): SEEN}, 90.0)
    set_sightings(store, "there", {ProcId(7, 70): SEEN}, 90.0)
    later = SEEN._replace(at_s=100.0)

    set_sightings(store, "here", {ProcId(5, 50): later}, 100.0)

    assert read_sightings(store, "here") == {ProcId(5, 50): later}
    assert read_sightings(store, "there") != {}
    set_sightings(store, "here", {}, 90.0 + 86401)
    assert read_sightings(store, "there") == {}


def test_counts_are_kept_for_a_week(store: SqliteStore) -> None:
    """As many as a trend needs."""
    old, new = StrayCount(10.0, "x", 1, 0, 0), StrayCount(10.0 + 7 * 86400, "x", 3, 1, 2)
    add_counts(store, [old], old.at_s)
    assert read_counts(store, 0.0) == [old]

    add_counts(store, [new], new.at_s + 1)

    assert read_counts(store, 0.0) == [new]


def test_a_run_is_over_with_its_owner_or_its_end(store: SqliteStore, tmp_path: Path) -> None:
    """Of a run that this store does not know, nothing is said."""
    lock = OwnerLock(tmp_path)
    add_herd(store, "h", lock.owner, [status(job("a"))])
    add_run(store, "r", status(job("a")).job.id, 1, 0)
    store.commit()

    assert find_over(store, tmp_path, ["r", "foreign"]) == {"r": False}
    end_herd(store, "h", {})
    store.commit()
    assert find_over(store, tmp_path, ["r"]) == {"r": True}
    # A warm process bears the tag of its first run.
    add_pen(store, "r", "h", "the run that it serves now", {})
    assert find_over(store, tmp_path, ["r"]) == {"r": False}
    lock.close()


def test_a_run_of_a_dead_service_is_the_next_ones(store: SqliteStore, tmp_path: Path) -> None:
    """It goes on without its supervisor, to be adopted."""
    gone = Owner("o", "another boot", ProcId(1, 1))
    add_herd(store, "h", gone, [status(job("a"))])
    add_run(store, "r", job("a").id, 1, 0)
    store.commit()
    assert find_over(store, tmp_path, ["r"]) == {"r": True}
    store.write("UPDATE herds SET service = 1", ())
    assert find_over(store, tmp_path, ["r"]) == {"r": False}
