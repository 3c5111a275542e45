"""The service's part of the store: one line of jobs, wishes of others, what has ended stays."""

import fcntl
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from ramherd.act.recovery import recover
from ramherd.core.errors import StoreError
from ramherd.core.model import Job, JobState, JobStatus, Reason, RunEnd, Why
from ramherd.jobs.stored import job_from_text, job_to_text
from ramherd.store.events import read_event_page, read_event_range
from ramherd.store.herds import add_run, end_herd, end_run, read_job_state, read_open_herds, set_job
from ramherd.store.inputs import read_inherited, remove_unused_inputs
from ramherd.store.listing import list_herds, list_jobs, read_herd, read_job, read_job_counts
from ramherd.store.service_herds import read_environment_file
from ramherd.store.service_queue import WINDOW, ServiceQueue
from ramherd.store.service_requests import (
    Wish,
    is_paused,
    read_open_jobs,
    read_spooled,
    remove_spooled,
    retry,
    set_paused,
    submit,
    wish_for_herd,
    wish_for_job,
)
from ramherd.store.sql import migrations as sql
from ramherd.store.sqlite import SqliteStore
from support.make import exited, job

OLD = Path(__file__).parents[2] / "data/store-3.db"
DONE = Reason(Why.EXITED, code=0)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    with closing(SqliteStore(tmp_path / "ramherd.db")) as made:
        yield made


def jobs(herd: str, **after: tuple[str, ...]) -> list[Job]:
    return [
        replace(job(name, seq=seq, after=names), id=f"{herd}-{name}", herd=herd)
        for seq, (name, names) in enumerate(after.items(), 1)
    ]


def fill(store: SqliteStore, herd: str, number: int, priority: int = 0) -> None:
    made = jobs(herd, **{f"j{n:05}": () for n in range(number)})
    submit(store, store.path.parent, herd, [replace(one, priority=priority) for one in made], None)


def end(store: SqliteStore, backlog: ServiceQueue, job_id: str, state: JobState) -> list[str]:
    """As a step does it: here at once, in the store afterwards. Whose standing changed."""
    changed = list(backlog.change(replace(backlog[job_id], state=state, reason=DONE)))
    for status in changed:
        set_job(store, status)
    store.commit()
    return [status.job.id for status in changed]


def names(queue: list[JobStatus]) -> list[str]:
    return [status.job.id for status in queue]


def states(store: SqliteStore) -> dict[str, str]:
    return {one["id"]: one["state"] for one in list_jobs(store)}


def test_an_old_store_is_migrated_with_all_that_is_in_it(tmp_path: Path) -> None:
    """A file of schema 3 as it was: what is over is listed, what was open is recovered."""
    path = tmp_path / "ramherd.db"
    shutil.copy(OLD, path)
    with closing(SqliteStore(path)) as store:
        done, herd = read_job(store, "id-a"), read_herd(store, "01OVER")
        assert [found["herd"] for found in list_herds(store)] == ["02OPEN", "01OVER"]
        assert done is not None
        assert herd is not None
        assert [run["end"] for run in done["runs"]] == ["failed", "done"]
        assert (herd["summary"], herd["counts"]) == ({"done": 2, "jobs": 2}, {"done": 2})
        assert recover(store, tmp_path, tmp_path) == 1
        assert read_job_state(store, "id-c") == "cancelled"
        fill(store, "03NEW", 1)
        numbered = sorted((job["number"], job["id"]) for job in list_jobs(store))
        assert numbered == [(1, "id-a"), (2, "id-b"), (3, "id-c"), (4, "03NEW-j00000")]
        assert store.read(sql.NEWEST_MIGRATION, ()) == [(len(sql.MIGRATIONS),)]


def test_a_job_survives_the_store(store: SqliteStore) -> None:
    """What is started is what was asked for."""
    asked = job("a", label="\u00e9", stdin="in", timeout_s=1.5, after=("b", "c"), retries=2)

    assert job_from_text(job_to_text(asked)) == asked
    assert job_from_text(job_to_text(asked)[:-1] + ', "of_a_newer_ramherd": 1}') == asked


def test_a_submitted_herd_is_whole_or_not_there(store: SqliteStore, tmp_path: Path) -> None:
    """On disk when submit returns; when one of its jobs cannot be stored there is none."""
    twice = jobs("H", a=()) * 2
    with pytest.raises(StoreError, match="UNIQUE"):
        submit(store, store.path.parent, "H", twice, None)
    assert (list_herds(store), list_jobs(store)) == ([], [])
    submit(store, store.path.parent, "H", jobs("H", a=(), b=("a",)), {"PATH": "/bin"})
    with closing(SqliteStore(tmp_path / "ramherd.db")) as other:
        assert states(other) == {"H-a": "queued", "H-b": "waiting"}
        assert [event["kind"] for event in read_event_page(other, 0)] == ["herd_submitted"]


def test_herds_of_the_service_wait_for_the_next_service(store: SqliteStore, tmp_path: Path) -> None:
    """No other ramherd closes them because their owner is dead."""
    fill(store, "H", 1)

    assert read_open_herds(store) == []
    assert recover(store, tmp_path, tmp_path) == 0
    assert read_job_state(store, "H-j00000") == "queued"


def test_the_line_goes_by_priority_then_by_submission(store: SqliteStore) -> None:
    """Over all herds; a herd that came later waits behind one of the same priority."""
    fill(store, "Z", 2)
    fill(store, "A", 1)
    fill(store, "M", 1, priority=5)
    backlog = ServiceQueue(store)
    backlog.refill()

    assert names(backlog.queue) == ["M-j00000", "Z-j00000", "Z-j00001", "A-j00000"]


def test_only_the_head_of_the_line_is_held(store: SqliteStore) -> None:
    """However long it is; what leaves makes place for the next."""
    fill(store, "H", WINDOW + 10)
    backlog = ServiceQueue(store)
    backlog.refill()
    assert len(backlog.queue) == WINDOW

    end(store, backlog, "H-j00000", JobState.DONE)
    assert len(backlog.queue) == WINDOW - 1
    backlog.refill()
    assert names(backlog.queue)[-1] == f"H-j{WINDOW:05}"


def steps_of_a_claim(path: Path, number: int) -> int:
    """SQLite's own steps, which no busy machine changes."""
    with closing(SqliteStore(path / f"{number}.db")) as store:
        fill(store, "H", number)
        backlog = ServiceQueue(store)
        counted = [0]

        def count() -> int:
            counted[0] += 1
            return 0

        store._db.set_progress_handler(count, 1)
        backlog.refill()
        first = backlog.queue[0]
        end(store, backlog, first.job.id, JobState.RUNNING)
        backlog.refill()
        store._db.set_progress_handler(None, 0)
        return counted[0]


def test_a_claim_costs_the_same_however_long_the_line(tmp_path: Path) -> None:
    """From 100 jobs to 10,000."""
    short, long = steps_of_a_claim(tmp_path, 100), steps_of_a_claim(tmp_path, 10_000)

    assert short > 100
    assert long <= 1.1 * short


def test_who_waited_for_several_is_queued_with_the_last_of_them(store: SqliteStore) -> None:
    """Also when two end in the same step, before the store has either."""
    submit(store, store.path.parent, "H", jobs("H", a=(), b=(), c=("a", "b"), d=("c",)), None)
    backlog = ServiceQueue(store)
    backlog.refill()
    changed = [
        status.job.id
        for name in ("H-a", "H-b")
        for status in backlog.change(replace(backlog[name], state=JobState.DONE))
    ]

    assert changed == ["H-a", "H-b", "H-c"]
    assert backlog["H-c"].state is JobState.QUEUED


def test_who_waited_for_a_failure_is_cancelled_and_so_on(store: SqliteStore) -> None:
    """However long the line of those who wait for each other."""
    submit(store, store.path.parent, "H", jobs("H", a=(), b=("a",), c=("b",)), None)
    backlog = ServiceQueue(store)
    backlog.refill()

    assert end(store, backlog, "H-a", JobState.FAILED) == ["H-a", "H-b", "H-c"]
    assert states(store) == {"H-a": "failed", "H-b": "cancelled", "H-c": "cancelled"}


def test_what_has_ended_stays_as_it_ended(store: SqliteStore) -> None:
    """Neither a job's result nor a run's is overwritten by a word that comes late."""
    fill(store, "H", 1)
    backlog = ServiceQueue(store)
    done = replace(backlog["H-j00000"], state=JobState.DONE, reason=DONE, attempts=2)
    add_run(store, "R1", "H-j00000", 2, 0)
    for end_, code in ((RunEnd.DONE, 0), (RunEnd.LOST, 9)):
        end_run(store, "R1", end_, DONE, exited(code), peak_bytes=0, least_bytes=0, after_bytes=0)
    set_job(store, done)
    set_job(store, replace(done, state=JobState.QUEUED))
    store.commit()

    found = read_job(store, "H-j00000")
    assert found is not None
    assert (found["state"], found["runs"][0]["end"], found["runs"][0]["exit_code"]) == (
        "done", "done", 0,
    )  # fmt: skip


def test_a_run_before_the_newest_has_nothing_more_to_say(store: SqliteStore) -> None:
    """Its attempt is its fence."""
    fill(store, "H", 1)
    standing = ServiceQueue(store)["H-j00000"]
    set_job(store, replace(standing, state=JobState.RUNNING, attempts=3))
    set_job(store, replace(standing, state=JobState.FAILED, attempts=2))
    store.commit()

    assert read_job_state(store, "H-j00000") == "running"


def test_a_job_has_one_living_run(store: SqliteStore) -> None:
    """A second is refused until the first has ended."""
    fill(store, "H", 1)
    add_run(store, "R1", "H-j00000", 1, 0)
    with pytest.raises(StoreError, match="UNIQUE"):
        add_run(store, "R2", "H-j00000", 2, 0)
    end_run(store, "R1", RunEnd.LOST, DONE, None, peak_bytes=0, least_bytes=0, after_bytes=0)
    add_run(store, "R2", "H-j00000", 2, 0)
    store.commit()


def test_a_wish_stays_until_it_is_so(store: SqliteStore) -> None:
    """Whoever dies between; and none is noted of what has ended."""
    submit(store, store.path.parent, "H", jobs("H", a=(), b=(), c=()), None)
    backlog = ServiceQueue(store)
    backlog.refill()
    end(store, backlog, "H-c", JobState.DONE)

    assert wish_for_herd(store, "H", Wish.CANCEL) == 2
    assert not wish_for_job(store, "H-c", Wish.CANCEL)
    assert not wish_for_job(store, "none", Wish.CANCEL)
    end(store, backlog, "H-a", JobState.RUNNING)
    end(store, backlog, "H-b", JobState.CANCELLED)
    assert {one["id"]: one["wish"] for one in list_jobs(store)} == {
        "H-a": "cancel", "H-b": None, "H-c": None,
    }  # fmt: skip


def test_a_recycled_job_is_recycled_once(store: SqliteStore) -> None:
    """The wish is over when the job is back in the line."""
    fill(store, "H", 1)
    backlog = ServiceQueue(store)
    end(store, backlog, "H-j00000", JobState.RUNNING)
    assert wish_for_job(store, "H-j00000", Wish.RECYCLE)
    end(store, backlog, "H-j00000", JobState.QUEUED)

    assert list_jobs(store)[0]["wish"] is None


def test_a_retry_brings_back_who_was_cancelled_because_of_it(store: SqliteStore) -> None:
    """And opens the herd again; what is done is not done twice."""
    submit(store, store.path.parent, "H", jobs("H", a=(), b=("a",), c=("b", "x"), x=()), None)
    backlog = ServiceQueue(store)
    backlog.refill()
    end(store, backlog, "H-x", JobState.DONE)
    end(store, backlog, "H-a", JobState.FAILED)
    end_herd(store, "H", {"done": 1})
    store.commit()

    assert retry(store, store.path.parent, "H-x") == []
    assert retry(store, store.path.parent, "none") == []
    assert retry(store, store.path.parent, "H-a") == ["H-a", "H-b", "H-c"]
    assert states(store) == {
        "H-a": "queued", "H-b": "waiting", "H-c": "waiting", "H-x": "done",
    }  # fmt: skip
    herd = read_herd(store, "H")
    assert herd is not None
    assert herd["ended_s"] is None


def test_a_pause_outlives_who_was_told(store: SqliteStore, tmp_path: Path) -> None:
    """It is a flag in the store, and said once."""
    for _again in range(2):
        set_paused(store, paused=True)
    with closing(SqliteStore(tmp_path / "ramherd.db")) as other:
        assert is_paused(other)
        set_paused(other, paused=False)
    assert not is_paused(store)
    assert [event["kind"] for event in read_event_page(store, 0)] == ["paused", "resumed"]


def test_a_delay_is_waited_for_but_not_for_a_clock_that_jumped(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A retry in an hour is none that we gave: the clock was set back."""
    fill(store, "H", 2)
    now = 1_000_000.0
    monkeypatch.setattr("ramherd.store.service_queue.time.time", lambda: now)
    for name, delay_s in (("H-j00000", 30.0), ("H-j00001", 3600.0)):
        store.write("UPDATE jobs SET not_before_s = ? WHERE id = ?", (now + delay_s, name))
    store.commit()
    backlog = ServiceQueue(store)
    backlog.refill()

    assert names(backlog.queue) == ["H-j00001"]
    assert backlog.next_delayed_s == 30.0


def test_events_are_read_on_from_any_number(store: SqliteStore) -> None:
    """Of a herd or a job alone, too; the ends tell who asks for what is gone."""
    fill(store, "H", 1)
    fill(store, "I", 1)
    first, last = read_event_range(store)

    assert [event["herd"] for event in read_event_page(store, first)] == ["I"]
    assert [event["seq"] for event in read_event_page(store, 0, herd="I")] == [last]
    assert read_event_page(store, 0, job="none") == []


def test_a_job_is_shown_without_its_environment(store: SqliteStore) -> None:
    """Keys and tokens stand there."""
    submit(
        store,
        store.path.parent,
        "H",
        [replace(jobs("H", a=())[0], env={"KEY": "secret"})],
        {"TOKEN": "secret"},
    )

    assert "secret" not in str(read_job(store, "H-a"))
    assert "secret" not in str(read_herd(store, "H"))


def test_the_jobs_of_the_service_are_counted(store: SqliteStore) -> None:
    """By state, over all herds; pages go on after the last id."""
    fill(store, "H", 3)
    submit(store, store.path.parent, "I", jobs("I", a=(), b=("a",)), None)

    assert read_job_counts(store) == {"queued": 4, "waiting": 1}
    assert [one["id"] for one in list_jobs(store, herd="H", after="H-j00000", most=1)] == [
        "H-j00001"
    ]
    assert [one["id"] for one in list_jobs(store, state="waiting")] == ["I-b"]


def test_two_services_cannot_claim_the_same_job(store: SqliteStore, tmp_path: Path) -> None:
    """Should there ever be two, the second's run is refused by the store."""
    fill(store, "H", 1)
    with closing(SqliteStore(tmp_path / "ramherd.db")) as other:
        add_run(other, "R1", "H-j00000", 1, 0)
        other.commit()
        with pytest.raises(StoreError) as caught:
            add_run(store, "R2", "H-j00000", 2, 0)
        store.rollback()
    assert isinstance(caught.value.__cause__, sqlite3.IntegrityError)


def test_a_cancellation_gets_through_a_lock(store: SqliteStore) -> None:
    """As a file, until the service has carried it out; only for jobs that can be cancelled."""
    submit(store, store.path.parent, "H", jobs("H", a=(), b=()), None)
    (job_a,) = store.read("SELECT id FROM jobs WHERE name = 'a'")[0]
    store.set_patience(0.0)
    with closing(sqlite3.connect(store.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert wish_for_job(store, job_a, Wish.CANCEL)
        with pytest.raises(StoreError, match="locked"):
            wish_for_job(store, job_a, Wish.RECYCLE)
        with pytest.raises(StoreError, match="locked"):
            wish_for_job(store, "id-none", Wish.CANCEL)
        assert read_spooled(store) == [job_a]
        assert read_open_jobs(store, job_a) == [job_a]
        assert wish_for_herd(store, "H", Wish.CANCEL) == 2
        assert len(read_open_jobs(store, "H")) == 2
        other.execute("ROLLBACK")

    remove_spooled(store, read_spooled(store))
    assert read_spooled(store) == []


def test_requests_that_cannot_be_read_wait(store: SqliteStore) -> None:
    """The state directory of a service may be closed to it for a while, or full of surprises."""
    store.spool.write_text("no directory")

    assert read_spooled(store) == []
    remove_spooled(store, ["id-none"])

    assert store.spool.read_text() == "no directory"


def test_a_new_environment_is_not_removed_as_unused(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another ramherd that cleans up finds it between its creation and its lock."""
    state, lock = store.path.parent, fcntl.flock

    def clean_up_first(fd: int, how: int) -> None:
        monkeypatch.setattr(fcntl, "flock", lock)
        remove_unused_inputs(store, state)
        lock(fd, how)

    monkeypatch.setattr(fcntl, "flock", clean_up_first)
    submit(store, state, "h", jobs("h", a=()), {"KEY": "value"})

    assert read_inherited(state, read_environment_file(store, "h")) == {"KEY": "value"}
