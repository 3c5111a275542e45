"""The memory history in a real store: in steps, for a week, and bounded."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from ramherd.core.memory_moment import MemoryMoment, RunMemory
from ramherd.core.units import GIB, MIB
from ramherd.store.herds import add_herd
from ramherd.store.memory_history import read_moments, record_moments, trim_moments
from ramherd.store.owner import OwnerLock
from ramherd.store.sqlite import SqliteStore
from support.make import status

NOW_S = 1_000_200
DAY_S = 86_400
MOST = 64 << 20


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    made = SqliteStore(tmp_path / "ramherd.db")
    yield made
    made.close()


def moment(at_s: int, used: int = GIB, *runs: RunMemory) -> MemoryMoment:
    return MemoryMoment(at_s, 16 * GIB, 8 * GIB, 12 * GIB, used, 2 * used, "calm", runs)


def record(store: SqliteStore, step_s: int, *moments: MemoryMoment) -> None:
    record_moments(store, [(step_s, one) for one in moments])
    store.commit()


def read_times(store: SqliteStore, ago_s: int, most: int = 2000) -> list[int]:
    history = read_moments(store, NOW_S - ago_s, NOW_S, NOW_S, most)
    return [one.at_s for one in history.moments]


def test_a_moment_is_read_as_it_was(store: SqliteStore, tmp_path: Path) -> None:
    """Runs name their job by its number; sizes are whole KiB. A job that is not in the store has no
    number, and is left out.
    """
    with closing(OwnerLock(tmp_path)) as lock:
        add_herd(store, "H", lock.owner, [status("lint")])
    ((job, number),) = store.read("SELECT id, number FROM jobs")
    runs = (RunMemory(job, 2, 300 * MIB, 512 * MIB, held=True), RunMemory("gone", 1, MIB, MIB))

    record(store, 1, moment(NOW_S, GIB, *runs))
    history = read_moments(store, NOW_S - 10, NOW_S, NOW_S, 600)

    same = RunMemory(str(number), 2, 300 * MIB, 512 * MIB, held=True)
    assert history.moments == [moment(NOW_S, GIB, same)]
    known = {"job": job, "name": "lint", "herd": "H", "agent": None}
    assert (history.step_s, history.jobs) == (1, {str(number): known})


def test_the_fuller_moment_of_a_step_stays(store: SqliteStore) -> None:
    """Also if an earlier service wrote it."""
    record(store, 60, moment(NOW_S, 5))
    record(store, 60, moment(NOW_S + 10, 4), moment(NOW_S + 20, 6), moment(NOW_S + 30, 1))

    history = read_moments(store, NOW_S, NOW_S + 3600, NOW_S + 3600, 60)
    assert [(one.at_s, one.used_bytes) for one in history.moments] == [(NOW_S + 20, 6)]


def test_each_step_is_kept_for_its_time(store: SqliteStore) -> None:
    """Ten minutes of seconds, and a week of five minutes."""
    ages_s = (0, 300, 900, DAY_S, 3 * DAY_S, 8 * DAY_S)
    for step_s in (1, 300):
        record(store, step_s, *(moment(NOW_S - age_s) for age_s in reversed(ages_s)))

    trim_moments(store, NOW_S, MOST)
    store.commit()

    assert read_times(store, 600) == [NOW_S - 300, NOW_S]
    week = [NOW_S - 3 * DAY_S, NOW_S - DAY_S, NOW_S - 900, NOW_S - 300, NOW_S]
    assert read_times(store, 7 * DAY_S) == week


def test_a_clock_that_was_set_back_leaves_no_moments_of_the_future(store: SqliteStore) -> None:
    """They would be at the end of every chart for as long as the clock was ahead."""
    record(store, 1, moment(NOW_S), moment(NOW_S + 5000))

    trim_moments(store, NOW_S, MOST)

    assert store.read("SELECT at_s FROM memory_history") == [(NOW_S,)]


def test_the_newest_that_fit_are_kept(store: SqliteStore) -> None:
    """A row counts with 100 bytes and its runs."""
    record(store, 1, *(moment(NOW_S - ago_s) for ago_s in range(50)))

    trim_moments(store, NOW_S, 1000)
    store.commit()

    assert read_times(store, 600) == list(range(NOW_S - 9, NOW_S + 1))


def test_a_chart_of_a_week_has_as_many_points_as_asked(store: SqliteStore) -> None:
    """With the highest among them."""
    moments = [moment(NOW_S - 300 * ago) for ago in range(2000)]
    moments[1234] = moments[1234]._replace(used_bytes=7 * GIB)
    record(store, 300, *moments)

    history = read_moments(store, NOW_S - 7 * DAY_S, NOW_S, NOW_S, 100)

    assert len(history.moments) <= 100
    assert max(one.used_bytes for one in history.moments) == 7 * GIB
