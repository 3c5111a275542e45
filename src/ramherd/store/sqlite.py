"""The store of one user on one machine: SQLite in WAL mode, several ramherds at a time.

Writes of one step of the supervisor are one transaction, ended by `commit`. WAL with
synchronous NORMAL survives the death of every process; `add_herd` also survives a power cut.
"""

import json
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from ramherd.core.errors import StoreError
from ramherd.core.model import (
    Brief,
    Event,
    Exit,
    Job,
    JobStatus,
    KeptLog,
    PenReading,
    ProcId,
    Reason,
    RunEnd,
    Tree,
    Why,
)
from ramherd.store import sql
from ramherd.store.owner import Owner

# A line of ours is some 200 bytes: 20 MB for the events, 5 MB for the samples.
KEEP_EVENTS = 100_000
KEEP_SAMPLES = 100_000
BUSY_S = 10.0


@dataclass(frozen=True, slots=True)
class StoredPen:
    id: str
    run: str
    record: dict[str, Any]


JOB_FIELDS = tuple(field.name for field in fields(Job))
Values = Sequence[Any] | Mapping[str, Any]
ChooseLogs = Callable[[Sequence[KeptLog], int], Sequence[KeptLog]]


class Store:
    def __init__(self, path: Path) -> None:
        self.path = path
        with self._explained():
            path.touch(mode=0o600)
            self._db = sqlite3.connect(path, timeout=BUSY_S, isolation_level=None)
            try:
                self._prepare()
            except BaseException:
                self._db.close()
                raise

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise StoreError(
                f"cannot use the store {self.path}: {error}",
                hint=hint_for(error),
            ) from error

    def _prepare(self) -> None:
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = NORMAL")
        # A checkpoint syncs the disk, for 10 ms and more: every 16 MB instead of every 4.
        self._db.execute("PRAGMA wal_autocheckpoint = 4000")
        self._migrate()

    def _migrate(self) -> None:
        self._db.execute("BEGIN IMMEDIATE")
        self._db.execute(sql.MIGRATIONS_TABLE)
        (at,) = self._db.execute(sql.NEWEST_MIGRATION).fetchone()
        if at > len(sql.MIGRATIONS):
            self._db.execute("ROLLBACK")
            raise StoreError(
                f"the store {self.path} is of a newer ramherd (schema {at}, "
                f"this one knows {len(sql.MIGRATIONS)})",
                hint="upgrade ramherd, or set XDG_STATE_HOME to another directory",
            )
        for number, script in enumerate(sql.MIGRATIONS[at:], at + 1):
            for statement in script.split(";"):
                self._db.execute(statement)
            self._db.execute(sql.ADD_MIGRATION, (number, time.time()))
        self._db.execute("COMMIT")

    def _write(self, statement: str, values: Values) -> sqlite3.Cursor:
        self._begin()
        with self._explained():
            return self._db.execute(statement, values)

    def _begin(self) -> None:
        if not self._db.in_transaction:
            with self._explained():
                self._db.execute("BEGIN IMMEDIATE")

    def commit(self) -> None:
        if self._db.in_transaction:
            with self._explained():
                self._db.execute("COMMIT")

    def rollback(self) -> None:
        if self._db.in_transaction:
            self._db.execute("ROLLBACK")

    def set_patience(self, for_s: float) -> None:
        """How long a lock of another process is waited for."""
        self._db.execute(f"PRAGMA busy_timeout = {int(for_s * 1000)}")

    def close(self) -> None:
        """What was not committed is not kept."""
        self._db.close()

    def add_herd(self, herd: str, owner: Owner, jobs: Iterable[JobStatus]) -> None:
        """On disk before it starts, whatever happens to the machine next."""
        now = time.time()
        values = (herd, now, owner.id, owner.boot_id, owner.proc.pid, owner.proc.start_ticks)
        with self.synced():
            self._write(sql.ADD_HERD, values)
            for status in jobs:
                job = status.job
                row = (job.id, herd, job.name, job.seq, spec_json(job), status.state.value)
                self._write(sql.ADD_JOB, (*row, reason_json(status.reason), now))
            self.trim()

    def trim(self) -> None:
        self._write(sql.TRIM_EVENTS, (KEEP_EVENTS,))
        self._write(sql.TRIM_SAMPLES, (KEEP_SAMPLES,))

    def end_herd(self, herd: str, summary: dict[str, Any]) -> None:
        self._write(sql.END_HERD, (time.time(), json.dumps(summary), herd))

    def set_job(self, status: JobStatus) -> None:
        """A job that has ended stays as it is: no later word of an older run changes it."""
        now = time.time()
        delay_s = status.not_before_s - time.monotonic()
        values = {
            "id": status.job.id, "state": status.state.value, "final": status.state.is_final,
            "reason": reason_json(status.reason), "attempts": status.attempts,
            "failures": status.failures, "lost": status.lost, "seen_bytes": status.seen_bytes,
            "interrupted": status.interrupted, "overloads": status.overloads,
            "not_before_s": now + delay_s if delay_s > 0 else 0.0, "now": now,
        }  # fmt: skip
        self._write(sql.SET_JOB, values)

    def set_said(self, job: str, said: dict[str, Any]) -> None:
        """What a job's agent says of itself: session, turns, tokens, cost, result."""
        self._write(sql.SET_SAID, (json.dumps(said), job))

    def add_run(self, run: str, job: str, attempt: int, available_bytes: int) -> None:
        self._write(sql.ADD_RUN, (run, job, attempt, time.time(), available_bytes))

    def end_run(
        self, run: str, end: RunEnd, reason: Reason, exit_: Exit | None, pen: PenReading,
        *, least_bytes: int, after_bytes: int,
    ) -> None:  # fmt: skip
        code, signal = (exit_.code, exit_.signal) if exit_ is not None else (None, None)
        row = (time.time(), end.value, code, signal, reason_json(reason), pen.peak_bytes)
        self._write(sql.END_RUN, (*row, least_bytes, after_bytes, run))

    def add_event(self, event: Event) -> int:
        row = (event.at_s, event.kind, event.herd, event.job, event.run)
        return self._write(sql.ADD_EVENT, (*row, reason_json(event.reason))).lastrowid or 0

    def add_sample(self, run: str, at_s: float, used_bytes: int) -> None:
        self._write(sql.ADD_SAMPLE, (run, at_s, used_bytes))

    def add_pen(self, pen: str, herd: str, run: str, record: dict[str, Any]) -> None:
        self._write(sql.ADD_PEN, (pen, herd, run, json.dumps(record)))

    def set_pen(self, pen: str, record: dict[str, Any]) -> None:
        self._write(sql.SET_PEN, (json.dumps(record), pen))

    def hand_pen(self, pen: str, run: str) -> None:
        self._write(sql.HAND_PEN, (run, pen))

    def drop_pen(self, pen: str) -> None:
        self._write(sql.DROP_PEN, (pen,))

    def open_herds(self) -> list[tuple[str, Owner]]:
        rows = self._read(sql.OPEN_HERDS, ())
        return [
            (herd, Owner(owner, boot_id, ProcId(pid, ticks)))
            for herd, owner, boot_id, pid, ticks in rows
        ]

    def pens_of(self, herd: str) -> list[StoredPen]:
        rows = self._read(sql.PENS_OF_HERD, (herd,))
        return [StoredPen(pen, run, json.loads(record)) for pen, run, record in rows]

    def lose_herd(self, herd: str, reason: Reason) -> list[str]:
        """Its supervisor died: what was not finished will not be. The runs that were open."""
        now = time.time()
        runs = self._write(sql.LOSE_RUNS, (now, reason_json(reason), herd)).fetchall()
        self._write(sql.LOSE_JOBS, (reason_json(reason), now, herd))
        self._write(sql.END_HERD, (now, None, herd))
        return [run for (run,) in runs]

    def newest_herd(self) -> str | None:
        rows = self._read(sql.NEWEST_HERD, ())
        return rows[0][0] if rows else None

    def find_job(self, herd: str, name: str) -> tuple[str, str] | None:
        """(id, state) of a job by its name in the herd, or by its id anywhere."""
        rows = self._read(sql.FIND_JOB, (herd, name, name)) or self._read(
            sql.FIND_JOB_BY_ID, (name,)
        )
        return (rows[0][0], rows[0][2]) if rows else None

    def find_newest_job(self, name: str) -> tuple[str, str] | None:
        """The same by its name, in the newest herd that has such a job."""
        rows = self._read(sql.FIND_NEWEST_JOB, (name,))
        return (rows[0][0], rows[0][2]) if rows else None

    def job_names(self, herd: str, most: int) -> list[str]:
        return [name for (name,) in self._read(sql.JOB_NAMES, (herd, most))]

    def job_state(self, job: str) -> str:
        return str(self._read(sql.JOB_STATE, (job,))[0][0])

    def owner_of(self, job: str) -> Owner | None:
        """The owner of the job's herd while that is not over."""
        rows = self._read(sql.OWNER_OF_JOB, (job,))
        return Owner(rows[0][0], rows[0][1], ProcId(*rows[0][2:])) if rows else None

    def newest_run(self, job: str) -> str | None:
        rows = self._read(sql.NEWEST_RUN, (job,))
        return rows[0][0] if rows else None

    def not_measured(self, most: int) -> list[str]:
        """Runs of herds that are over whose logs nobody has measured yet."""
        return [run for (run,) in self._read(sql.NOT_MEASURED, (most,))]

    def set_log_bytes(self, run: str, size: int) -> None:
        self._write(sql.SET_LOG_BYTES, (size, run))

    def logs_bytes(self) -> int:
        return int(self._read(sql.LOGS_BYTES, ())[0][0])

    def oldest_logs(self, most: int, after: KeptLog | None = None) -> list[KeptLog]:
        start = (after.ended_s, after.run) if after is not None else (float("-inf"), "")
        return [KeptLog(*row) for row in self._read(sql.OLDEST_LOGS, (*start, most))]

    def take_logs(self, choose: ChooseLogs, most: int) -> Sequence[KeptLog]:
        """Chosen among the oldest and off the record, in one transaction: of two that prune at
        once, each run is one's, and both see what is left.
        """
        self._begin()
        chosen = choose(self.oldest_logs(most), self.logs_bytes())
        herds = {self._drop_run(log.run) for log in chosen}
        for herd in herds:
            if not self._read(sql.HAS_RUNS, (herd,)):
                for statement in sql.DROP_HERD:
                    self._write(statement, (herd,))
        self.commit()
        return chosen

    def _drop_run(self, run: str) -> str:
        ((job, herd),) = self._read(sql.JOB_OF_RUN, (run,))
        self._write(sql.DROP_EVENTS, (job, run))
        self._write(sql.DROP_SAMPLES, (run,))
        self._write(sql.DROP_RUN, (run,))
        if self._write(sql.DROP_JOB, (job,)).rowcount:
            self._write(sql.DROP_NEEDS, (job,))
        return str(herd)

    def is_run(self, run: str) -> bool:
        return bool(self._read(sql.IS_RUN, (run,)))

    def _read(self, statement: str, values: Values) -> list[tuple[Any, ...]]:
        with self._explained():
            return self._db.execute(statement, values).fetchall()

    def begin(self) -> None:
        """Take the write lock now, so that what is read next cannot change before the commit."""
        if not self._db.in_transaction:
            with self._explained():
                self._db.execute("BEGIN IMMEDIATE")

    # For tables that have a module of their own (`store/class_rows.py`).
    def read(self, statement: str, values: Values) -> list[tuple[Any, ...]]:
        return self._read(statement, values)

    def write(self, statement: str, values: Values) -> int:
        """How many rows were changed."""
        return self._write(statement, values).rowcount

    def write_all(self, statement: str, rows: Iterable[Sequence[Any]]) -> None:
        self._begin()
        with self._explained():
            self._db.executemany(statement, rows)

    @contextmanager
    def synced(self) -> Iterator[None]:
        """What is written inside is committed whole, and survives a power cut as well."""
        with self._explained():
            self._db.execute("PRAGMA synchronous = FULL")
        try:
            yield
            self.commit()
        finally:
            self.rollback()
            with self._explained():
                self._db.execute("PRAGMA synchronous = NORMAL")


def read_oldest_over(path: Path) -> Iterator[tuple[str, float]]:
    """(run, when it ended) of herds that are over, from a store that cannot be opened because
    its disk is full: read without its log, so the newest may be missing, and what is over is.
    """
    uri = f"{path.absolute().as_uri()}?immutable=1"
    with closing(sqlite3.connect(uri, uri=True)) as db:
        try:
            yield from db.execute(sql.OLDEST_OVER)
        except sqlite3.Error:
            return


def hint_for(error: Exception) -> str:
    if "locked" in str(error):
        return "another program holds it: close it, and try again"
    if "full" in str(error):
        return "make room: ramherd prune --keep 1GiB"
    return "set XDG_STATE_HOME to a directory you can write to"


def reason_json(reason: Reason) -> str:
    return json.dumps(reason.as_json())


def spec_json(job: Job) -> str:
    brief = asdict(job.brief) if job.brief is not None else None
    known = {name: getattr(job, name) for name in JOB_FIELDS}
    return json.dumps({**known, "env": dict(job.env), "brief": brief})


def job_from_spec(text: str) -> Job:
    """Keys that this ramherd does not know are another's."""
    spec = {name: value for name, value in json.loads(text).items() if name in JOB_FIELDS}
    lists = {name: tuple(value) for name, value in spec.items() if isinstance(value, list)}
    return Job(**{**spec, **lists, "brief": brief_from_spec(spec.get("brief"))})


def brief_from_spec(spec: dict[str, Any] | None) -> Brief | None:
    if spec is None:
        return None
    tree, args = spec["tree"], tuple(spec.get("args", ()))
    return Brief(**{**spec, "tree": Tree(**tree) if tree is not None else None, "args": args})


def reason_from_json(text: str) -> Reason:
    numbers = json.loads(text)
    return Reason(Why(numbers.pop("why")), **numbers)
