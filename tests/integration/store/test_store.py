"""The store: real SQLite, opened again to see what is on disk."""

import gc
import json
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from ramherd.core.errors import StoreError
from ramherd.core.model import Brief, Event, JobState, ProcId, Reason, RunEnd, Tree, Why
from ramherd.jobs.stored import job_from_text, job_to_text
from ramherd.store.events import add_event
from ramherd.store.herds import (
    StoredPen,
    add_herd,
    add_pen,
    add_run,
    add_sample,
    drop_pen,
    end_herd,
    end_run,
    find_job_of_herd,
    lose_herd,
    read_job_names,
    read_job_owner,
    read_job_state,
    read_newest_herd,
    read_newest_run,
    read_open_herds,
    read_pens,
    reassign_pen,
    set_job,
    set_pen,
    set_said,
)
from ramherd.store.owner import Owner
from ramherd.store.sql import migrations
from ramherd.store.sqlite import SqliteStore
from support.make import HERD, exited, job, killed_by, status

OWNER = Owner("OWNER", "boot", ProcId(7, 99))
JOBS = [
    status(job("a", seq=1, env={"X": "\u00e9"}, stdin="in", timeout_s=1.5)),
    status(job("b", seq=2, after=("a",)), JobState.WAITING),
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ramherd.db"


@contextmanager
def store_with_herd(path: Path) -> Iterator[SqliteStore]:
    with closing(SqliteStore(path)) as store:
        add_herd(store, HERD, OWNER, JOBS)
        yield store
        store.commit()


def rows(path: Path, query: str) -> list[dict[str, Any]]:
    """What another process sees."""
    with closing(sqlite3.connect(path)) as db:
        db.row_factory = sqlite3.Row
        return [dict(row) for row in db.execute(query)]


def test_a_herd_is_on_disk_before_it_starts(path: Path) -> None:
    """With its owner and every job as it was asked for, whatever happens next."""
    with store_with_herd(path):
        (herd,) = rows(path, "SELECT * FROM herds")
        jobs = rows(path, "SELECT * FROM jobs ORDER BY seq")

    owner = {"owner": "OWNER", "boot_id": "boot", "pid": 7, "start_ticks": 99}
    assert herd | owner == herd
    assert (herd["id"], herd["ended_s"], herd["summary"]) == (HERD, None, None)
    assert [(one["name"], one["state"]) for one in jobs] == [("a", "queued"), ("b", "waiting")]
    assert json.loads(jobs[0]["spec"])["env_names"] == ["X"]
    assert "\\u00e9" not in jobs[0]["spec"]
    assert jobs[0]["spec"] == job_to_text(JOBS[0].job)


def test_states_are_recorded_as_they_happen(path: Path) -> None:
    """With the reason and its numbers; seen by others after the commit."""
    failed = status(
        job("a"), JobState.FAILED, reason=Reason(Why.EXITED, code=3), attempts=2, failures=2
    )
    with store_with_herd(path) as store:
        set_job(store, failed)
        assert rows(path, "SELECT state FROM jobs WHERE name = 'a'") == [{"state": "queued"}]
        store.commit()
        (found,) = rows(path, "SELECT * FROM jobs WHERE name = 'a'")

        assert (found["state"], found["attempts"], found["failures"]) == ("failed", 2, 2)
        assert json.loads(found["reason"]) == {"why": "exited", "code": 3}
        assert read_job_state(store, "id-a") == "failed"


def test_a_run_is_recorded_from_its_start_to_its_end(path: Path) -> None:
    """How it ended, what it held, and what the machine had before, during and after."""
    with store_with_herd(path) as store:
        add_run(store, "R1", "id-a", 1, 500)
        end_run(store, "R1", RunEnd.FAILED, Reason(Why.SIGNALLED, signal=11), killed_by(11),
                      peak_bytes=77, least_bytes=300, after_bytes=400)  # fmt: skip
        add_run(store, "R2", "id-a", 2, 450)
        end_run(store, "R2", RunEnd.DONE, Reason(Why.EXITED, code=0), exited(0), peak_bytes=0,
                      least_bytes=1, after_bytes=2)  # fmt: skip
        assert read_newest_run(store, "id-a") == "R2"
        assert read_newest_run(store, "id-b") is None
    first, second = rows(path, "SELECT * FROM runs ORDER BY attempt")

    assert (first["end"], first["exit_code"], first["signal"]) == ("failed", None, 11)
    assert (second["end"], second["exit_code"], second["signal"]) == ("done", 0, None)
    memory = [first[f"available_{when}_bytes"] for when in ("before", "least", "after")]
    assert [first["peak_bytes"], *memory] == [77, 500, 300, 400]


def test_an_attempt_is_recorded_once(path: Path) -> None:
    """Its number is the fencing token: two runs of a job never have the same."""
    with store_with_herd(path) as store:
        add_run(store, "R1", "id-a", 1, 0)
        with pytest.raises(StoreError, match="UNIQUE"):
            add_run(store, "R2", "id-a", 1, 0)


def test_a_job_is_found_by_its_name_in_the_herd_or_by_its_id_anywhere(path: Path) -> None:
    """`ramherd logs` asks by either."""
    with store_with_herd(path) as store:
        add_herd(store, "LATER", OWNER, [status(job("c"))])

        assert read_newest_herd(store) == "LATER"
        assert find_job_of_herd(store, HERD, "b") == ("id-b", "waiting")
        assert find_job_of_herd(store, "LATER", "b") is None
        assert find_job_of_herd(store, "LATER", "id-b") == ("id-b", "waiting")
        assert read_job_names(store, HERD, 1) == ["a"]


def test_a_store_without_herds_has_no_newest(path: Path) -> None:
    """The first start of all."""
    with closing(SqliteStore(path)) as store:
        assert read_newest_herd(store) is None
        assert read_open_herds(store) == []


def test_the_herds_that_have_not_ended_are_found_with_their_owners(path: Path) -> None:
    """The next start asks whether they live."""
    with store_with_herd(path) as store:
        add_herd(store, "OVER", OWNER, [])
        end_herd(store, "OVER", {"done": 0})

        assert read_open_herds(store) == [(HERD, OWNER)]
    assert rows(path, "SELECT summary FROM herds WHERE id = 'OVER'") == [{"summary": '{"done": 0}'}]


def test_a_lost_herd_is_closed_and_says_which_runs_were_open(path: Path) -> None:
    """Open runs are lost, open jobs cancelled; what had ended stays as it was."""
    why = Reason(Why.SUPERVISOR_LOST)
    with store_with_herd(path) as store:
        set_job(store, status(job("a"), JobState.DONE))
        add_run(store, "R1", "id-a", 1, 0)
        end_run(store, "R1", RunEnd.DONE, Reason(Why.EXITED, code=0), exited(), peak_bytes=0,
                      least_bytes=0, after_bytes=0)  # fmt: skip
        add_run(store, "R2", "id-b", 1, 0)

        assert lose_herd(store, HERD, why) == ["R2"]
        assert lose_herd(store, HERD, why) == []
        assert read_open_herds(store) == []
    jobs = rows(path, "SELECT state, reason FROM jobs ORDER BY name")
    runs = rows(path, "SELECT end FROM runs ORDER BY id")
    assert [one["state"] for one in jobs] == ["done", "cancelled"]
    assert json.loads(jobs[1]["reason"]) == {"why": "supervisor_lost"}
    assert [one["end"] for one in runs] == ["done", "lost"]


def test_pens_are_on_record_until_they_are_gone(path: Path) -> None:
    """Where they are, to be cleared by the next start; never searched by name."""
    with store_with_herd(path) as store:
        add_pen(store, "P1", HERD, "", {"kind": "cgroup1"})
        add_pen(store, "P2", HERD, "R1", {"kind": "polling", "first": None})
        add_pen(store, "P3", "OTHER", "R9", {})
        set_pen(store, "P2", {"kind": "polling", "first": [7, 99]})
        reassign_pen(store, "P2", "R2")
        drop_pen(store, "P1")

        assert read_pens(store, HERD) == [
            StoredPen("P2", "R2", {"kind": "polling", "first": [7, 99]})
        ]


def test_events_carry_their_reason_and_a_growing_number(path: Path) -> None:
    """Append-only: a number is never given twice."""
    with store_with_herd(path) as store:
        first, second = (
            add_event(
                store, Event("run_started", Reason(Why.FITS, need_bytes=n), 5.0, HERD, "id-a")
            )
            for n in (1, 2)
        )
    found = rows(path, "SELECT * FROM events ORDER BY seq")

    assert first < second
    assert [json.loads(one["reason"])["need_bytes"] for one in found] == [1, 2]
    assert (found[0]["kind"], found[0]["job"], found[0]["at_s"]) == ("run_started", "id-a", 5.0)


def test_events_and_samples_are_bounded(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The newest are kept when the next herd comes, and numbers go on from there."""
    monkeypatch.setattr("ramherd.store.events.KEEP_EVENTS", 5)
    monkeypatch.setattr("ramherd.store.events.KEEP_SAMPLES", 3)
    with store_with_herd(path) as store:
        for n in range(20):
            last = add_event(store, Event("x", Reason(Why.SUBMITTED), n, HERD))
            add_sample(store, "R1", float(n), n)
        store.commit()
        add_herd(store, "NEXT", OWNER, [])

        assert add_event(store, Event("x", Reason(Why.SUBMITTED), 99, HERD)) == last + 1
    assert [one["at_s"] for one in rows(path, "SELECT at_s FROM events")] == [
        15,
        16,
        17,
        18,
        19,
        99,
    ]
    assert [one["at_s"] for one in rows(path, "SELECT at_s FROM samples")] == [17, 18, 19]


def test_the_store_is_private_and_in_wal_mode(path: Path) -> None:
    """Commands and prompts are in it; readers and a writer do not wait for each other."""
    with store_with_herd(path) as store:
        assert {file.stat().st_mode & 0o777 for file in path.parent.iterdir()} == {0o600}
        set_job(store, status(job("a"), JobState.RUNNING))
        assert rows(path, "PRAGMA journal_mode") == [{"journal_mode": "wal"}]
        assert len(rows(path, "SELECT * FROM jobs")) == 2


def test_migrations_are_applied_once(path: Path) -> None:
    """A store that is opened again is the same store."""
    with store_with_herd(path):
        before = rows(path, "SELECT * FROM migrations")
    with closing(SqliteStore(path)) as store:
        assert read_newest_herd(store) == HERD
    assert rows(path, "SELECT * FROM migrations") == before
    assert [one["number"] for one in before] == list(range(1, len(migrations.MIGRATIONS) + 1))


def test_a_new_migration_is_applied_to_an_old_store(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the new one, and nothing of what was there is lost."""
    with store_with_herd(path):
        pass
    added = ("ALTER TABLE jobs ADD COLUMN mood INTEGER", "CREATE TABLE extra (x)")
    monkeypatch.setattr(migrations, "MIGRATIONS", (*migrations.MIGRATIONS, added))

    with closing(SqliteStore(path)) as store:
        assert read_newest_herd(store) == HERD
    assert rows(path, "SELECT mood FROM jobs") == [{"mood": None}, {"mood": None}]
    assert rows(path, "SELECT max(number) AS newest FROM migrations") == [
        {"newest": len(migrations.MIGRATIONS)}
    ]


def test_a_migration_that_fails_changes_nothing(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The old ramherd can still use it."""
    with store_with_herd(path):
        pass
    broken = ("CREATE TABLE extra (x)", "CREATE TABLE jobs (x)")
    monkeypatch.setattr(migrations, "MIGRATIONS", (*migrations.MIGRATIONS, broken))
    with pytest.raises(StoreError, match="jobs already exists"):
        SqliteStore(path)
    monkeypatch.undo()
    gc.collect()  # closes what the next test is about

    with closing(SqliteStore(path)) as store:
        assert read_newest_herd(store) == HERD
    assert rows(path, "SELECT name FROM sqlite_master WHERE name = 'extra'") == []


def test_a_store_that_could_not_be_opened_is_let_go(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No lock stays behind that would keep the next one waiting for ten seconds."""
    monkeypatch.setattr(migrations, "MIGRATIONS", (("CREATE TABLE jobs (x)",) * 2,))
    with pytest.raises(StoreError) as caught:
        SqliteStore(path)

    assert caught
    with closing(sqlite3.connect(path, timeout=0.0)) as other:
        try:
            other.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            pytest.fail(str(error))


def test_a_store_of_a_newer_ramherd_is_refused(path: Path) -> None:
    """With both numbers, and unchanged."""
    with store_with_herd(path):
        pass
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("INSERT INTO migrations VALUES (99, 0)")

    with pytest.raises(StoreError, match=r"newer ramherd \(schema 99, this one knows") as caught:
        SqliteStore(path)
    assert caught.value.exit_code == 3
    assert "upgrade" in caught.value.hint


@pytest.mark.parametrize("data", [b"this is no database, whatever it is called" * 50, b"\0" * 5000])
def test_a_foreign_file_is_refused_and_left_as_it_is(path: Path, data: bytes) -> None:
    """It is named, and so is what to do."""
    path.write_bytes(data)

    with pytest.raises(StoreError, match=str(path)) as caught:
        SqliteStore(path)
    assert caught.value.hint
    assert path.read_bytes() == data


def test_a_database_of_another_program_is_refused_and_left_as_it_is(path: Path) -> None:
    """It has tables of the same names, and they are not ours."""
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("CREATE TABLE migrations (id TEXT)")

    with pytest.raises(StoreError):
        SqliteStore(path)
    tables = rows(path, "SELECT name FROM sqlite_master WHERE type = 'table'")
    assert tables == [{"name": "migrations"}]


@pytest.mark.parametrize("name", ["none/ramherd.db", ""])
def test_a_place_that_takes_no_store_is_an_error_that_names_it(tmp_path: Path, name: str) -> None:
    """No such directory, or a directory in its place."""
    with pytest.raises(StoreError, match=str(tmp_path)):
        SqliteStore(tmp_path / name)


def test_a_herd_is_on_disk_whole_or_not_at_all(path: Path) -> None:
    """When its second job cannot be stored there is no herd with one."""
    with closing(SqliteStore(path)) as store, pytest.raises(StoreError, match="UNIQUE"):
        add_herd(store, HERD, OWNER, [status(job("a")), status(job("a"))])

    assert rows(path, "SELECT * FROM herds") == rows(path, "SELECT * FROM jobs") == []


def test_a_job_has_an_owner_while_its_herd_is_not_over(path: Path) -> None:
    """`ramherd logs -f` asks whether anybody will ever end it."""
    with store_with_herd(path) as store:
        assert read_job_owner(store, "id-a") == OWNER
        assert read_job_owner(store, "none") is None
        end_herd(store, HERD, {})
        assert read_job_owner(store, "id-a") is None


def test_a_lock_is_waited_for_as_long_as_was_said(path: Path) -> None:
    """And the error says that somebody else has it."""
    with store_with_herd(path) as store, closing(sqlite3.connect(path)) as other:
        other.execute("BEGIN IMMEDIATE")
        store.set_patience(0.0)
        with pytest.raises(StoreError, match="locked") as caught:
            set_job(store, JOBS[0])
        other.rollback()
        assert "wait until it is done" in caught.value.hint


def test_a_job_is_read_back_as_it_was_stored() -> None:
    """Also what its agent is asked, and where."""
    tree = Tree("/repo", "c0ffee", "/tree", "ramherd/a", "part")
    for brief in (None, Brief("claude", "do it"), Brief("codex", "do it", tree=tree, args=("-x",))):
        asked = job("a", brief=brief, after=("b",))

        assert job_from_text(job_to_text(asked)) == asked


def test_what_an_agent_said_is_kept_with_its_job(path: Path) -> None:
    """As it stands in `run --json`."""
    with store_with_herd(path) as store:
        set_said(store, JOBS[0].job.id, {"session": "s", "turns": 2})
    first, second = rows(path, "SELECT said FROM jobs ORDER BY seq")

    assert json.loads(first["said"]) == {"session": "s", "turns": 2}
    assert second["said"] is None


def test_a_second_connection_of_a_process_keeps_the_locks_of_the_first(path: Path) -> None:
    """Otherwise another process that closes its connection removes the log, and what is committed
    after that is lost.
    """
    reader = (
        "import sqlite3, sys; db = sqlite3.connect(sys.argv[1]); "
        "db.execute('SELECT count(*) FROM jobs').fetchall(); db.close()"
    )
    with closing(SqliteStore(path)) as store:
        store.open_another().close()
        subprocess.run([sys.executable, "-c", reader, str(path)], check=True)
        assert path.with_name("ramherd.db-wal").exists()
        add_herd(store, HERD, OWNER, JOBS)
        assert [row["id"] for row in rows(path, "SELECT id FROM herds")] == [HERD]
