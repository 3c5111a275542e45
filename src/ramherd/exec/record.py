"""A session in the store: a herd of one job, written without `store/sqlite.py` (40 ms to import).

One transaction before the program starts, one after it has ended. What an owner left that
died before us is found here as well, and cleared by `act/recovery.py`.
"""

from __future__ import annotations

import json
import os
import sqlite3
import time

from ramherd.core.errors import StoreError
from ramherd.store.lock_file import is_locked
from ramherd.store.sql import migrations
from ramherd.store.sql import records as sql
from ramherd.system.procfs import read_boot_id, read_own_id

TYPE_CHECKING = False  # `typing` costs 4 ms
if TYPE_CHECKING:
    from typing import Any

    Step = tuple[str, tuple[Any, ...] | dict[str, Any]]

    from ramherd.exec.nouns import End, Session
    from ramherd.exec.pen import SessionPen

# As store/sqlite.py has it.
BUSY_S = 10.0
# The last to close a store in WAL mode moves all of it to its place and syncs (10 ms). After a
# session as short as this somebody waits; left open, the next to open it finds its way.
SHORT_S = 1.0


class Record:
    def __init__(self, path: str) -> None:
        self.path = path
        self._opened_s = time.monotonic()
        try:
            self._db = self._open()
        except sqlite3.Error as error:
            raise self._explained(error) from error

    def _open(self) -> sqlite3.Connection:
        """A store that is new, or of an older ramherd, is first made what it should be."""
        db = self._connect() if os.path.exists(self.path) else None
        if db is not None and is_current(db):
            return db
        if db is not None:
            db.close()
        from pathlib import Path  # noqa: PLC0415

        from ramherd.store.sqlite import SqliteStore  # noqa: PLC0415

        SqliteStore(Path(self.path)).close()
        return self._connect()

    def _connect(self) -> sqlite3.Connection:
        db = sqlite3.connect(self.path, timeout=BUSY_S, isolation_level=None)
        db.execute("PRAGMA synchronous = NORMAL")
        return db

    def _explained(self, error: Exception) -> StoreError:
        return StoreError(
            f"cannot use the store {self.path}: {error}",
            hint="set XDG_STATE_HOME to a directory you can write to",
        )

    def has_dead_owners(self, owners_dir: str) -> bool:
        """Whether some open herd has nobody who holds its lock."""
        rows = self._db.execute(sql.OPEN_HERDS).fetchall()
        return not all(is_locked(f"{owners_dir}/{row[1]}") for row in rows)

    def begin(self, session: Session, pen: SessionPen, available_bytes: int) -> None:
        now, reason = time.time(), json.dumps({"why": "submitted"})
        spec = json.dumps(session.spec())
        herd, job, run = session.herd, session.job, session.run
        row = (job, herd, session.name, 0, spec, "queued", reason, now)
        steps: list[Step] = [
            (sql.ADD_HERD, (herd, now, session.owner, read_boot_id(), *read_own_id())),
            (sql.ADD_JOB, row),
            (sql.SET_JOB, standing(job, "running", reason, now)),
            (sql.ADD_RUN, (run, job, 1, now, available_bytes)),
            (sql.ADD_PEN, (run, herd, run, json.dumps(pen.record))),
            (sql.ADD_EVENT, (now, "run_started", herd, job, run, reason)),
        ]
        if pen.fleet is not None:
            steps.append((sql.ADD_PEN, (session.owner, herd, "", json.dumps(pen.fleet))))
        self._write(steps)

    def set_pen(self, session: Session, pen: SessionPen) -> None:
        self._write([(sql.SET_PEN, (json.dumps(pen.record), session.run))])

    def end(self, session: Session, end: End, *, pen_removed: bool) -> None:
        now, reason = time.time(), json.dumps(end.reason)
        herd, job, run = session.herd, session.job, session.run
        counts = {state: int(state == end.state) for state in ("done", "failed", "cancelled")}
        steps: list[Step] = [
            (
                sql.END_RUN,
                (now, end.end, end.code, end.signal, reason, end.peak_bytes, None, None, run),
            ),
            (sql.SET_JOB, standing(job, end.state, reason, now, failures=counts["failed"])),
            (sql.ADD_EVENT, (now, "run_ended", herd, job, run, reason)),
            (sql.END_HERD, (now, json.dumps({"herd": herd, "jobs": 1, **counts}), herd)),
        ]
        if pen_removed:
            steps += [(sql.DROP_PEN, (run,)), (sql.DROP_PEN, (session.owner,))]
        self._write(steps)

    def _write(self, steps: list[Step]) -> None:
        try:
            self._db.execute("BEGIN IMMEDIATE")
            for statement, values in steps:
                self._db.execute(statement, values)
            self._db.execute("COMMIT")
        except sqlite3.Error as error:
            raise self._explained(error) from error

    def close(self) -> None:
        if time.monotonic() - self._opened_s > SHORT_S:
            self._db.close()


def is_current(db: sqlite3.Connection) -> bool:
    try:
        (number,) = db.execute(migrations.NEWEST_MIGRATION).fetchone()
    except sqlite3.OperationalError:
        return False
    return bool(number == len(migrations.MIGRATIONS))


def standing(job: str, state: str, reason: str, now: float, *, failures: int = 0) -> dict[str, Any]:
    """A job's row as `store/sqlite.py` writes it: one run, and nothing before it."""
    return {
        "id": job, "state": state, "final": state in ("done", "failed", "cancelled"),
        "reason": reason, "attempts": 1, "failures": failures, "lost": 0, "overloads": 0,
        "seen_bytes": 0, "interrupted": False, "not_before_s": 0.0, "now": now,
    }  # fmt: skip
