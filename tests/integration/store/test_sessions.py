"""An interactive session in the store."""

import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from integration.store.test_store import OWNER, rows
from ramherd.core.model import JobState, Reason, RunEnd, Why
from ramherd.store.herds import StoredPen, read_open_herds, read_pens
from ramherd.store.sessions import end_session, start_session
from ramherd.store.sqlite import SqliteStore
from support.make import HERD, exited, job, status

RUNNING = replace(status(job("claude"), JobState.RUNNING), attempts=1)
PENS = (StoredPen("R1", "R1", {"kind": "fake"}), StoredPen("O", "", {"kind": "fleet"}))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    with closing(SqliteStore(tmp_path / "ramherd.db")) as made:
        start_session(made, OWNER, RUNNING, PENS, run="R1", available_bytes=9)
        yield made


def test_a_session_that_runs_is_a_herd_of_one_job(store: SqliteStore) -> None:
    """Whoever finds its owner dead knows its pens."""
    assert read_open_herds(store) == [(HERD, OWNER)]
    assert read_pens(store, HERD) == list(PENS)
    assert rows(store.path, "SELECT state, attempts FROM jobs") == [
        {"state": "running", "attempts": 1}
    ]
    (run,) = rows(store.path, "SELECT * FROM runs")
    assert (run["id"], run["attempt"], run["available_before_bytes"]) == ("R1", 1, 9)
    assert [event["kind"] for event in rows(store.path, "SELECT kind FROM events")] == [
        "run_started"
    ]


@pytest.mark.parametrize("pens_removed", [True, False])
def test_a_session_ends_whole(store: SqliteStore, pens_removed: bool) -> None:
    """Run, job and herd in one transaction; pens that could not be removed stay on record."""
    done = replace(RUNNING, state=JobState.DONE, reason=Reason(Why.EXITED, code=0))
    end_session(
        store, done, RunEnd.DONE, exited(0), run="R1", peak_bytes=77, pens_removed=pens_removed
    )

    (run,) = rows(store.path, "SELECT * FROM runs")
    assert (run["end"], run["exit_code"], run["peak_bytes"]) == ("done", 0, 77)
    (herd,) = rows(store.path, "SELECT * FROM herds")
    assert herd["ended_s"] is not None
    assert json.loads(herd["summary"]) == {
        "herd": HERD, "jobs": 1, "done": 1, "failed": 0, "cancelled": 0,
    }  # fmt: skip
    assert read_pens(store, HERD) == ([] if pens_removed else list(PENS))
    assert [event["kind"] for event in rows(store.path, "SELECT kind FROM events")] == [
        "run_started",
        "run_ended",
    ]
