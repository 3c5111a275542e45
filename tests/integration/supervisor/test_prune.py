"""Pruning: what goes and in which order, on a real store and real files."""

import os
import threading
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from ramherd.core.model import (
    Event,
    Job,
    JobState,
    JobStatus,
    ProcId,
    Reason,
    RunEnd,
    Why,
)
from ramherd.decide.pruning import PruneRule
from ramherd.store.events import add_event
from ramherd.store.herds import add_herd, add_pen, add_run, add_sample, drop_pen, end_herd, end_run
from ramherd.store.owner import Owner
from ramherd.store.sqlite import SqliteStore
from ramherd.supervisor.prune import Pruned, foresee, prune, prune_unknown

OWNER = Owner("owner", "boot", ProcId(1, 1))
# A block.
SIZE = 4096


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    made = SqliteStore(tmp_path / "ramherd.db")
    yield made
    made.close()


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    (tmp_path / "runs").mkdir()
    return tmp_path / "runs"


def make_herd(
    store: SqliteStore, runs_dir: Path, name: str, number: int, *, over: bool = True
) -> None:
    """A herd with so many jobs, each with one run that ended and printed SIZE bytes."""
    jobs = [
        Job(f"{name}-job-{n}", name, f"{n}", n, ("true",), "/", 1, stdin="x") for n in range(number)
    ]
    reason = Reason(Why.SUBMITTED)
    add_herd(store, name, OWNER, [JobStatus(job, JobState.DONE, reason) for job in jobs])
    for job in jobs:
        run = f"{name}-run-{job.seq:05}"
        add_run(store, run, job.id, 1, 0)
        add_event(store, Event("run_started", reason, time.time(), name, job.id, run))
        add_sample(store, run, 1.0, 1)
        (runs_dir / run).mkdir()
        (runs_dir / run / "out").write_bytes(b"x" * SIZE)
        end_run(store, run, RunEnd.DONE, reason, None, peak_bytes=0, least_bytes=0, after_bytes=0)
    if over:
        end_herd(store, name, {})
    store.commit()


def rows(store: SqliteStore) -> dict[str, int]:
    tables = ("herds", "jobs", "runs", "events", "samples")
    return {table: store.read(f"SELECT count(*) FROM {table}", ())[0][0] for table in tables}


def test_a_run_whose_process_serves_another_keeps_its_directory(
    store: SqliteStore, runs: Path
) -> None:
    """It is warm, and has its TMPDIR there."""
    make_herd(store, runs, "herd", 2)
    add_pen(store, "herd-run-00000", "service", "herd-run-00009", {})
    first = prune(store, runs, PruneRule(0))
    drop_pen(store, "herd-run-00000")
    second = prune(store, runs, PruneRule(0))

    assert (first.runs, second.runs) == (1, 1)
    assert list(runs.iterdir()) == []


def test_a_size_removes_output_and_no_record(store: SqliteStore, runs: Path) -> None:
    """The oldest first, also of a herd that is not over; a dry run says the same."""
    make_herd(store, runs, "a", 3)
    make_herd(store, runs, "b", 3, over=False)
    rule, before = PruneRule(2 * SIZE), rows(store)
    foreseen = foresee(store, runs, rule)
    assert len(os.listdir(runs)) == 6
    pruned = prune(store, runs, rule)
    assert pruned == foreseen == Pruned(runs=4, freed_bytes=4 * SIZE, left_bytes=2 * SIZE)
    assert rows(store) == before == {"herds": 2, "jobs": 6, "runs": 6, "events": 6, "samples": 6}
    assert sorted(os.listdir(runs)) == ["b-run-00001", "b-run-00002"]
    assert prune(store, runs, rule).runs == 0


def test_an_age_removes_rows_and_files(store: SqliteStore, runs: Path) -> None:
    """Whether their output is still there or not; a dry run says the same."""
    make_herd(store, runs, "a", 3)
    prune(store, runs, PruneRule(2 * SIZE))
    between = time.time()
    make_herd(store, runs, "b", 3)
    rule = PruneRule(2 * SIZE, before_s=between)
    foreseen = foresee(store, runs, rule)
    pruned = prune(store, runs, rule)
    assert pruned == foreseen
    assert pruned == Pruned(runs=3, records=3, freed_bytes=3 * SIZE, left_bytes=2 * SIZE)
    assert rows(store) == {"herds": 1, "jobs": 3, "runs": 3, "events": 3, "samples": 3}
    assert sorted(os.listdir(runs)) == ["b-run-00001", "b-run-00002"]


def test_the_records_of_a_herd_that_is_not_over_stay(store: SqliteStore, runs: Path) -> None:
    """Its summary will name its jobs."""
    make_herd(store, runs, "alive", 3, over=False)
    make_herd(store, runs, "over", 1)
    rule = PruneRule(100 * SIZE, before_s=time.time() + 1)
    assert prune(store, runs, rule).records == 1
    assert len(os.listdir(runs)) == 3
    end_herd(store, "alive", {})
    assert prune(store, runs, rule).records == 3


def test_what_takes_no_disk_is_not_counted(store: SqliteStore, runs: Path) -> None:
    """A log with holes counts by its blocks."""
    make_herd(store, runs, "a", 1)
    with (runs / "a-run-00000/out").open("r+b") as file:
        file.truncate(100 * SIZE)
    assert prune(store, runs, PruneRule(SIZE)).left_bytes == SIZE


def test_two_at_once_share_the_work(store: SqliteStore, runs: Path, tmp_path: Path) -> None:
    """Each run is removed by one of them, and no more than has to."""
    make_herd(store, runs, "a", 600)
    results: list[Pruned] = []

    def prune_too() -> None:
        other = SqliteStore(tmp_path / "ramherd.db")
        results.append(prune(other, runs, PruneRule(100 * SIZE)))
        other.close()

    threads = [threading.Thread(target=prune_too) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(result.runs for result in results) == 500
    assert sum(result.freed_bytes for result in results) == 500 * SIZE
    assert len(os.listdir(runs)) == 100


def test_thousands_of_runs_are_not_held_in_memory(store: SqliteStore, runs: Path) -> None:
    """A batch at a time. The interpreter's own table of names may double once meanwhile."""
    peaks = []
    for herd in "ab":
        make_herd(store, runs, herd, 1500)
        tracemalloc.start()
        try:
            assert prune(store, runs, PruneRule(0)).runs == 1500
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
    assert min(peaks) < 500_000


def test_a_directory_of_no_known_run_goes_after_a_day(store: SqliteStore, runs: Path) -> None:
    """Unless something in it changed since; what is known, and plain files, stay."""
    make_herd(store, runs, "a", 1)
    for name in ("old", "young", "printing"):
        (runs / name).mkdir()
        (runs / name / "out").write_bytes(b"x" * SIZE)
    (runs / "file").write_text("")
    (runs / "link").symlink_to(runs / "young")
    long_ago = time.time() - 2 * 86400
    for path in ("old/out", "old", "printing", "young/out", "a-run-00000", "file"):
        os.utime(runs / path, (long_ago, long_ago))
    foreseen = Pruned()
    prune_unknown(store, runs, time.time(), foreseen, dry_run=True)
    assert (runs / "old").exists()
    pruned = Pruned()
    prune_unknown(store, runs, time.time(), pruned, dry_run=False)
    assert pruned == foreseen == Pruned(unknown=1, freed_bytes=SIZE)
    assert sorted(os.listdir(runs)) == ["a-run-00000", "file", "link", "printing", "young"]


def test_directories_that_are_gone_already(store: SqliteStore, runs: Path) -> None:
    """Somebody removed them by hand: there is nothing to remove, and nobody counts them."""
    make_herd(store, runs, "a", 2)
    (runs / "a-run-00000/out").unlink()
    (runs / "a-run-00000").rmdir()
    assert prune(store, runs, PruneRule(0)) == Pruned(runs=1, freed_bytes=SIZE)
