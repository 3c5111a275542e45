"""Records of an earlier service: its fleets, and runs whose end was not recorded."""

import json
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ramherd.core.model import JobStatus, Reason, RunEnd
from ramherd.core.reasons import reason_from_json
from ramherd.store.herds import SERVICE, RunClock, StoredPen, read_pens
from ramherd.store.protocol import Store
from ramherd.store.service_queue import status_from_row
from ramherd.store.sql import service as sql
from ramherd.system.files import write_json

STOPPING = "stopping"


@dataclass(frozen=True, slots=True)
class OpenRun:
    run: str
    attempt: int
    # By the wall clock.
    started_s: float
    # None for a run that an earlier version started.
    clock: RunClock | None
    # The end that was ordered for the run, if any.
    stopping: tuple[RunEnd, Reason] | None
    # The run that the pen was made for.
    home: str
    pen: dict[str, Any] | None
    status: JobStatus


def read_open_runs(store: Store) -> list[OpenRun]:
    return [
        OpenRun(
            run, attempt, started_s, parse_clock(clock), parse_stopping(stopping), home or run,
            None if record is None else json.loads(record), status_from_row(row),
        )
        for run, attempt, started_s, clock, stopping, home, record, *row in store.read(
            sql.LIVE_RUNS
        )
    ]  # fmt: skip


def record_stopping(store: Store, run: str, end: RunEnd, reason: Reason) -> None:
    """Called before the run is signalled, so that the next service finds the end and its reason."""
    store.write(sql.SET_STOPPING, (json.dumps([end.value, reason.as_json()]), run))


def write_stopping(run_dir: Path, end: RunEnd, reason: Reason) -> None:
    """The same in a file of the run, while the store cannot be written."""
    with suppress(OSError):  # a full disk: then the exit status determines the end of the run
        write_json(str(run_dir / STOPPING), [end.value, reason.as_json()])


def read_stopping(run_dir: Path) -> tuple[RunEnd, Reason] | None:
    try:
        return parse_stopping((run_dir / STOPPING).read_text())
    except (OSError, ValueError):
        return None


def parse_stopping(text: str | None) -> tuple[RunEnd, Reason] | None:
    if text is None:
        return None
    end, reason = json.loads(text)
    return RunEnd(end), reason_from_json(reason)


def parse_clock(text: str | None) -> RunClock | None:
    return None if text is None else RunClock(*json.loads(text))


def read_fleets(store: Store) -> list[StoredPen]:
    return [pen for pen in read_pens(store, SERVICE) if not pen.run]
