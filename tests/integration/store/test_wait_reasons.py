"""Why a job does not run now, as lists of jobs have it: from a real store."""

import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ramherd.core.model import Job, JobState, Reason, Why
from ramherd.core.units import MIB
from ramherd.decide.start_pause import explain_user_pause
from ramherd.store.herds import SERVICE, add_run, add_sample, end_herd, set_job
from ramherd.store.listing import list_jobs
from ramherd.store.service_requests import submit
from ramherd.store.sqlite import SqliteStore
from ramherd.store.start_pauses import read_start_waits, set_start_pause, set_start_wait
from support.make import job, status

NO_ROOM = Reason(Why.NO_ROOM_LEASE, need_bytes=300 * MIB, used_bytes=0, lease_bytes=MIB)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    with closing(SqliteStore(tmp_path / "ramherd.db")) as made:
        submit(made, tmp_path, "H", make_jobs(), None)
        yield made


def make_jobs() -> list[Job]:
    made = {"a": (), "b": (), "c": ("a", "b")}
    return [
        replace(job(name, seq=seq, after=after), id=f"id-{name}", herd="H")
        for seq, (name, after) in enumerate(made.items(), 1)
    ]


def reasons(store: SqliteStore) -> dict[str, dict[str, Any]]:
    return {found["name"]: found["reason"] for found in list_jobs(store)}


def test_a_job_that_waits_names_those_that_are_not_done(store: SqliteStore) -> None:
    """The one that is done is left out."""
    assert reasons(store)["c"] == {"why": "after", "jobs": "a, b"}
    set_job(store, status(make_jobs()[0], JobState.DONE))

    assert reasons(store)["c"] == {"why": "after", "jobs": "b"}


def test_what_keeps_the_first_in_line_keeps_the_others(store: SqliteStore) -> None:
    """Those behind a job that needs more memory than is free wait for that job; a limit on the
    number of runs is the same for all.
    """
    assert reasons(store)["a"] == {"why": "submitted"}
    set_start_wait(store, SERVICE, NO_ROOM, "id-a", "a")
    assert reasons(store)["a"] == NO_ROOM.as_json()
    assert reasons(store)["b"] == {"why": "behind", "first": "a"}
    full = Reason(Why.MAX_PARALLEL, running=1, limit=1)
    set_start_wait(store, SERVICE, full, "id-a", "a")
    assert reasons(store)["a"] == reasons(store)["b"] == full.as_json()


def test_a_pause_comes_first(store: SqliteStore) -> None:
    """That of a job before that of the service."""
    set_start_wait(store, SERVICE, NO_ROOM, "id-a", "a")
    set_start_pause(store, SERVICE, explain_user_pause(7.0))
    store.write("UPDATE jobs SET paused_s = 5 WHERE name = 'b'")

    assert reasons(store)["a"] == {"why": "paused", "paused_at": 7.0}
    assert reasons(store)["b"] == {"why": "job_paused", "paused_at": 5.0}


def test_a_reason_of_the_service_before_is_not_shown(store: SqliteStore) -> None:
    """`the service stops` is no longer true once the next one runs; a delay still is."""
    stopped = replace(status(make_jobs()[0]), reason=Reason(Why.SERVICE_STOPS))
    retry = Reason(Why.RETRY, failures=1)
    delayed = replace(
        status(make_jobs()[1]), reason=retry, not_before_s=time.monotonic() + 60
    )  # fmt: skip
    for changed in (stopped, delayed):
        set_job(store, changed)
    assert reasons(store)["a"] == {"why": "submitted"}
    set_start_wait(store, SERVICE, NO_ROOM, "id-a", "a")

    assert reasons(store)["a"] == NO_ROOM.as_json()
    assert reasons(store)["b"] == retry.as_json()


def test_a_list_has_the_newest_run_of_a_job(store: SqliteStore) -> None:
    """Its start, and what it used when it was last measured."""
    running = replace(status(make_jobs()[0], JobState.RUNNING), attempts=1)
    set_job(store, running)
    add_run(store, "R1", "id-a", 1, 0)
    for used_bytes in (1, 2 * MIB):
        add_sample(store, "R1", time.time(), used_bytes)
    first, second, _third = list_jobs(store)

    assert (first["used_bytes"], first["ended_s"]) == (2 * MIB, None)
    assert first["started_s"] == pytest.approx(time.time(), abs=60)
    assert (second["used_bytes"], second["started_s"], second["paused_s"]) == (None, None, None)


def test_the_wait_of_a_herd_ends_with_the_herd(store: SqliteStore) -> None:
    """No flag is left behind."""
    set_start_wait(store, "H", NO_ROOM, "id-a", "a")
    assert list(read_start_waits(store)) == ["H"]
    end_herd(store, "H", {})

    assert read_start_waits(store) == {}
