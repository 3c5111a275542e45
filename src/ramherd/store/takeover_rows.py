"""What an earlier service left in the store: its fleets, and runs that nobody saw end."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ramherd.core.model import Event, JobStatus, Reason, RunEnd, Why
from ramherd.store import service_sql as sql
from ramherd.store.service_queue import standing
from ramherd.store.sqlite import Store, StoredPen, reason_from_json

# Whose pens they are: the service's herds have no owner.
SERVICE = "service"


@dataclass(frozen=True, slots=True)
class OpenRun:
    run: str
    attempt: int
    started_s: float
    # What it was being ended as, if it was.
    stopping: tuple[RunEnd, Reason] | None
    # The run that its pen was made for.
    home: str
    pen: dict[str, Any] | None
    status: JobStatus


def open_runs(store: Store) -> list[OpenRun]:
    return [
        OpenRun(
            run, attempt, started_s, read_stopping(stopping), home or run,
            None if record is None else json.loads(record), standing(row),
        )
        for run, attempt, started_s, stopping, home, record, *row in store.read(sql.LIVE_RUNS, ())
    ]  # fmt: skip


def note_stopping(store: Store, run: str, end: RunEnd, reason: Reason) -> None:
    """Before it is told: whoever finds it ended knows as what."""
    store.write(sql.SET_STOPPING, (json.dumps([end.value, reason.as_json()]), run))


def read_stopping(text: str | None) -> tuple[RunEnd, Reason] | None:
    if text is None:
        return None
    end, reason = json.loads(text)
    return RunEnd(end), reason_from_json(json.dumps(reason))


def fleets(store: Store) -> list[StoredPen]:
    return [pen for pen in store.pens_of(SERVICE) if not pen.run]


def herd_environment(store: Store, herd: str) -> Mapping[str, str] | None:
    rows = store.read(sql.HERD_ENV, (herd,))
    return json.loads(rows[0][0]) if rows and rows[0][0] is not None else None


def wishes(store: Store, after: int, most: int) -> list[tuple[str, str, int]]:
    """(job, what is wished, its place in the line) of the next ones after a place."""
    return [(job, wish, place) for job, wish, place in store.read(sql.WISHED, (after, most))]


def end_if_over(store: Store, herd: str, at_s: float) -> None:
    """With its last job, in the same transaction; with its last worktree, if it has some."""
    if store.read(sql.IS_OPEN, (herd,)) or store.read(sql.UNSETTLED_OF_HERD, (herd,)):
        return
    counts = dict(store.read(sql.HERD_COUNTS, (herd,)))
    numbers = {state: counts.get(state, 0) for state in ("done", "failed", "cancelled")}
    store.end_herd(herd, {"herd": herd, "jobs": sum(counts.values()), **numbers})
    store.add_event(Event("herd_ended", Reason(Why.HERD_OVER, **numbers), at_s, herd))
