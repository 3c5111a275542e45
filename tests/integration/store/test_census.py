"""The census in a real store: kept for seven days, and bounded."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ramherd.core.census_row import CensusRow, CensusTotal
from ramherd.core.model import ProcId
from ramherd.core.sightings import Sighting
from ramherd.store import census
from ramherd.store.census import (
    read_census,
    read_live_rows,
    read_newest_total,
    read_told,
    record_census,
    set_told,
)
from ramherd.store.sightings import set_sightings
from ramherd.store.sqlite import SqliteStore

DAY_S = 86400.0
ROW = CensusRow(
    ProcId(5, 50), "claude", "agent", 5, "/src", "claude --continue", "", "live",
    1.0, 100.0, None, 10, 20, 90.0, None,
)  # fmt: skip
TOTAL = CensusTotal(100.0, 1, 0, 0, 0, 10, 0, 40.0)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    made = SqliteStore(tmp_path / "ramherd.db")
    yield made
    made.close()


def record(store: SqliteStore, *rows: CensusRow, at_s: float = 100.0, place: str = "here") -> None:
    record_census(store, place, rows, [], TOTAL._replace(at_s=at_s))
    store.commit()


def test_a_live_process_has_the_history_of_its_sightings(store: SqliteStore) -> None:
    """An ended one has its own."""
    seen = Sighting(1.0, 90.0, 40, 7, 80.0, 1, None, ((1.0, 5), (2.0, 6)))
    set_sightings(store, "here", {ROW.process: seen}, 90.0)
    record(store, ROW)

    (live,) = read_census(store, 0.0).rows
    assert live == ROW._replace(points=((1.0, 5), (2.0, 6)))
    assert read_live_rows(store, "here") == {ROW.process: ROW}
    ended = ROW._replace(ended_s=200.0, points=((1.2, 5),))
    set_sightings(store, "here", {}, 200.0)
    record_census(store, "here", [], [ended], TOTAL._replace(at_s=200.0))
    store.commit()

    assert read_census(store, 0.0).rows == [ended._replace(points=((1, 5),))]
    assert read_live_rows(store, "here") == {}


def test_processes_of_another_boot_have_ended(store: SqliteStore) -> None:
    """When they were last seen."""
    record(store, ROW, place="before")
    record(store, ROW._replace(seen_s=500.0), at_s=500.0)

    rows = read_census(store, 0.0).rows

    assert [(row.seen_s, row.ended_s) for row in rows] == [(500.0, None), (100.0, 100.0)]


def test_the_census_is_kept_for_seven_days(store: SqliteStore) -> None:
    """Rows by the last look that saw them, and totals."""
    record(store, ROW)
    late = 100.0 + 7 * DAY_S + 1
    record(store, ROW._replace(process=ProcId(6, 60), seen_s=late), at_s=late)

    found = read_census(store, 0.0)

    assert [row.process.pid for row in found.rows] == [6]
    assert [total.at_s for total in found.totals] == [late]


def test_the_census_is_bounded(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tools that come and go do not push out agents; the newest stay."""
    monkeypatch.setattr(census, "MOST_TOOLS", 3)
    tools = [
        ROW._replace(process=ProcId(pid, pid), kind="tool", seen_s=200.0 + pid)
        for pid in range(10, 20)
    ]
    record(store, ROW, *tools, at_s=300.0)

    found = read_census(store, 0.0).rows

    assert {row.process.pid for row in found} == {5, 17, 18, 19}


def test_one_total_a_minute(store: SqliteStore) -> None:
    """However often somebody looks; a clock that was set back starts again."""
    for at_s in (100.0, 120.0, 160.0, 400.0):
        record(store, at_s=at_s)
    assert [total.at_s for total in read_census(store, 0.0).totals] == [100.0, 160.0, 400.0]

    record(store, at_s=50.0)

    newest = read_newest_total(store)
    assert newest is not None
    assert newest.at_s == 50.0


def test_alerts_that_hold(store: SqliteStore) -> None:
    """Kept until they do not."""
    set_told(store, (), {"a": 1.0, "b": 1.0})
    store.commit()
    assert read_told(store) == {"a": 1.0, "b": 1.0}
    set_told(store, read_told(store), {"b": 2.0})
    store.commit()

    assert read_told(store) == {"b": 2.0}
