"""The census of agents, servers and tools: kept for seven days, and bounded in size.

read_census(store, since_s)   for `ramherd watch` and for other views: rows and totals
"""

import json
from collections.abc import Iterable, Mapping

from ramherd.core.census_row import Census, CensusRow, CensusTotal
from ramherd.core.procid import ProcId
from ramherd.store.protocol import Store
from ramherd.store.sql import census as sql

KEEP_S = 7 * 86400.0
# A row has 200 bytes, and up to 1.2 KB of history when it has ended: 5 MB for all at most.
MOST_AGENTS_AND_SERVERS = 3000
MOST_TOOLS = 2000
# With one total a minute, 10,080 in seven days.
TOTAL_EVERY_S = 55.0


def read_census(store: Store, since_s: float) -> Census:
    """Processes that were seen since then, the live and the largest first; and the totals."""
    rows = [row_of(found) for found in store.read(sql.ROWS, (since_s,))]
    rows.sort(key=lambda row: (row.ended_s is not None, -(row.ended_s or 0), -row.memory_bytes))
    return Census(rows, [CensusTotal(*found) for found in store.read(sql.TOTALS, (since_s,))])


def read_newest_total(store: Store) -> CensusTotal | None:
    return next((CensusTotal(*found) for found in store.read(sql.NEWEST_TOTAL)), None)


def read_live_rows(store: Store, place: str) -> dict[ProcId, CensusRow]:
    rows = (row_of(found) for found in store.read(sql.LIVE_ROWS, (place,)))
    return {row.process: row for row in rows}


def row_of(found: tuple[object, ...]) -> CensusRow:
    pid, ticks, *fields, points = found
    history = tuple((at_s, size) for at_s, size in json.loads(str(points)))
    return CensusRow._make((ProcId._make((pid, ticks)), *fields, history))


def record_census(
    store: Store, place: str, rows: Iterable[CensusRow], ended: Iterable[CensusRow],
    total: CensusTotal,
) -> None:  # fmt: skip
    """`rows` are alive; `ended` are those that the last look saw, and this one does not. Within the
    caller's transaction.
    """
    for row in rows:
        process, *fields, _points = row
        store.write(sql.SET_ROW, (place, process.pid, process.start_ticks, *fields))
    for row in ended:
        history = json.dumps([[round(at_s), size] for at_s, size in row.points])
        process = row.process
        store.write(sql.END_ROW, (row.ended_s, history, place, process.pid, process.start_ticks))
    store.write(sql.END_ELSEWHERE, (place,))
    add_total(store, total)
    store.write(sql.DROP_OLD_ROWS, (total.at_s - KEEP_S,))
    store.write(sql.DROP_MANY_ROWS, (1, MOST_AGENTS_AND_SERVERS))
    store.write(sql.DROP_MANY_ROWS, (0, MOST_TOOLS))


def add_total(store: Store, total: CensusTotal) -> None:
    store.write(sql.DROP_LATER_TOTALS, (total.at_s,))
    newest = read_newest_total(store)
    if newest is None or total.at_s - newest.at_s >= TOTAL_EVERY_S:
        store.write(sql.ADD_TOTAL, total)
    store.write(sql.DROP_OLD_TOTALS, (total.at_s - KEEP_S,))


def read_told(store: Store) -> dict[str, float]:
    """Keys of the alerts that were sent and hold, with the last time that there was reason to."""
    return dict(store.read(sql.ALERTS))


def set_told(store: Store, before: Iterable[str], told: Mapping[str, float]) -> None:
    """`told` are the keys that hold now. Within the caller's transaction."""
    for key in set(before) - set(told):
        store.write(sql.DROP_ALERT, (key,))
    for key, at_s in told.items():
        store.write(sql.SET_ALERT, (key, at_s))
