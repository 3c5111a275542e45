"""The ledger: what each application of this user holds of the machine's memory.

One small SQLite file, one short transaction for each question; no daemon. Who holds a lease is
alive as long as its lock is: the lease of a dead owner is void for the next one who asks.
Nothing that may be frozen (a run in its pen) opens this file. Each subagent of a hooked session
loads this module, so it does without dataclasses and pathlib (16 ms together).
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import stat
import sys
import time
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from ramherd.core.errors import StoreError
from ramherd.core.procid import ProcId
from ramherd.decide.governor.leases import Lease, choose_lease
from ramherd.store import ledger_sql as sql
from ramherd.store.owner import Owner, is_alive
from ramherd.system.ids import new_id

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

T = TypeVar("T")

# SQLite waits 1, 2, 5, 10 ms and more between its tries; a transaction here takes 0.3 ms.
RETRY_S = 0.0005
BUSY_S = 5.0


class Ask(NamedTuple):
    """What an application says about itself. `granted_bytes` is what its runs may hold now:
    its lease does not fall below that before they gave it back.
    """

    wants_bytes: int
    used_bytes: int = 0
    granted_bytes: int = 0
    # Monotonic: the same clock for all processes until the next boot, and older rows are void.
    waiting_since_s: float | None = None
    kind: str = "run"
    key: str = ""


class OtherUse(NamedTuple):
    """What the runs of another application use, and the process that it is."""

    pid: int
    used_bytes: int


class Answer(NamedTuple):
    """`lease_bytes` is ours by the ledger. `target_bytes` is what to come down to: others wait
    for the difference. `others` is for the next measurement of the budget.
    """

    lease_bytes: int
    target_bytes: int
    others: tuple[OtherUse, ...]

    @property
    def others_used_bytes(self) -> int:
        return sum(other.used_bytes for other in self.others)

    @property
    def applications(self) -> int:
        return 1 + len(self.others)


class Ledger:
    def __init__(
        self,
        path: os.PathLike[str] | str,
        runtime: os.PathLike[str] | str,
        owner: Owner,
        warn: Callable[[str], None] | None = None,
    ) -> None:
        self.path, self.runtime, self.owner = os.fspath(path), os.fspath(runtime), owner
        self.patience_s = BUSY_S
        self._warn = warn or warn_on_stderr
        self._open()

    def ask(self, ask: Ask, budget_bytes: int) -> Answer:
        """Our lease from now on, in one transaction."""
        return self._again_if_broken(lambda: self._ask(ask, budget_bytes))

    def give_back(self, kind: str = "run", key: str = "") -> None:
        self._again_if_broken(lambda: self._drop(kind, key))

    def close(self) -> None:
        self.give_back_all()
        self._db.close()

    def detach(self) -> None:
        """Closes the file; what is leased stays ours."""
        self._db.close()

    def give_back_all(self) -> None:
        def drop() -> None:
            with self._transaction():
                self._forget(self.owner.id)

        self._again_if_broken(drop)

    def _ask(self, ask: Ask, budget_bytes: int) -> Answer:
        # Looked for before the lock is taken: who is dead stays dead, and ids are not used again.
        dead = self._find_dead()
        with self._transaction():
            self._begin_turn(dead)
            mine, rest, others = self._leases(ask)
            pids = dict(self._db.execute(sql.PIDS).fetchall())
            granted = ask.granted_bytes + rest.bytes
            choice = choose_lease(mine, others, budget_bytes, granted_bytes=granted)
            lease, target = (max(size - rest.bytes, 0) for size in choice)
            place = (self.owner.id, ask.kind, ask.key)
            figures = (lease, ask.used_bytes, ask.wants_bytes, ask.waiting_since_s)
            self._db.execute(sql.SET_LEASE, (*place, *figures))
        uses = tuple(OtherUse(pids[other.owner], other.used_bytes) for other in others)
        return Answer(lease, target, uses)

    def _begin_turn(self, dead: list[str]) -> None:
        """Void what is nobody's any more."""
        for owner in dead:
            self._forget(owner)
        self._db.execute(sql.DROP_OVERDUE, (time.monotonic(),))
        self._db.execute(sql.ADD_OWNER, owner_row(self.owner))

    def _leases(self, ask: Ask) -> tuple[Lease, Lease, list[Lease]]:
        """All I hold with what I say now, that without this one lease, and those of all others.
        An application has one share, however many leases it has.
        """
        held, held_by = 0, {self.owner.id: Lease(self.owner.id, 0)}
        for owner, kind, key, *figures in self._db.execute(sql.LEASES):
            if (owner, kind, key) == (self.owner.id, ask.kind, ask.key):
                held = figures[0]
            else:
                held_by[owner] = add(held_by.get(owner, Lease(owner, 0)), *figures)
        rest = held_by.pop(self.owner.id)
        mine = add(rest, held, ask.used_bytes, ask.wants_bytes, ask.waiting_since_s)
        return mine, rest, list(held_by.values())

    def _find_dead(self) -> list[str]:
        owners = [
            Owner(id_, boot_id, ProcId(pid, ticks))
            for id_, boot_id, pid, ticks in self._db.execute(sql.OWNERS).fetchall()
            if id_ != self.owner.id
        ]
        return [owner.id for owner in owners if not is_alive(owner, self.runtime)]

    def _forget(self, owner: str) -> None:
        for statement in (sql.DROP_LEASES, sql.DROP_SUBAGENTS, sql.DROP_OWNER):
            self._db.execute(statement, (owner,))

    def _drop(self, kind: str, key: str) -> None:
        with self._transaction():
            self._db.execute(sql.DROP_LEASE, (self.owner.id, kind, key))

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._begin()
        try:
            yield
        except BaseException:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    def _begin(self) -> None:
        deadline = time.monotonic() + self.patience_s
        while True:
            try:
                self._db.execute("BEGIN IMMEDIATE")
                return
            except sqlite3.OperationalError as error:
                if not is_busy(error) or time.monotonic() > deadline:
                    raise
                time.sleep(RETRY_S)

    def _again_if_broken(self, act: Callable[[], T]) -> T:
        """A file that broke, or that somebody moved away, is opened anew, once."""
        try:
            if not self._is_ours():
                self._reopen()
            return act()
        except sqlite3.DatabaseError as error:
            if is_busy(error):
                raise self._cannot(error) from error
            self._reopen()
        try:
            return act()
        except sqlite3.Error as error:
            raise self._cannot(error) from error

    def _is_ours(self) -> bool:
        """Whether the open file is still the one that others open."""
        try:
            found = os.stat(self.path)
        except FileNotFoundError:
            return False
        return (found.st_dev, found.st_ino) == self._file

    def _reopen(self) -> None:
        self._db.close()
        self._open()

    def _open(self) -> None:
        """One at a time: of two that find a broken file, only the first sets it aside."""
        try:
            with closing(LockFile(os.path.splitext(self.path)[0] + ".lock")):
                self._db = open_or_set_aside(self.path, self._warn)
                found = os.stat(self.path)
                self._file = (found.st_dev, found.st_ino)
        except (sqlite3.Error, OSError) as error:
            raise self._cannot(error) from error

    def _cannot(self, error: Exception) -> StoreError:
        return StoreError(
            f"cannot use the ledger {self.path}: {error}",
            hint="set RAMHERD_RUNTIME_DIR to a directory you can write to",
        )


class LockFile:
    def __init__(self, path: str) -> None:
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._fd, fcntl.LOCK_EX)

    def close(self) -> None:
        os.close(self._fd)


def add(lease: Lease, bytes_: int, used: int, wants: int, since_s: float | None) -> Lease:
    """One more lease of the same owner: who waits longest speaks for it."""
    since = [at_s for at_s in (lease.waiting_since_s, since_s) if at_s is not None]
    return Lease(
        lease.owner, lease.bytes + bytes_, lease.used_bytes + used, lease.wants_bytes + wants,
        min(since, default=None),
    )  # fmt: skip


def open_or_set_aside(path: str, warn: Callable[[str], None]) -> sqlite3.Connection:
    problem = find_problem(path)
    if problem is not None:
        aside = f"{path}.aside-{new_id()}"
        name = os.path.basename(aside)
        warn(f"the ledger {path} {problem}: it is now {name}, and a new one is begun")
        for suffix in ("", "-wal", "-shm"):
            if os.path.lexists(path + suffix):
                os.rename(path + suffix, aside + suffix)
    return make_ledger(path)


def find_problem(path: str) -> str | None:
    """What is wrong with the file, if there is one."""
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(found.st_mode):
        return "is not a plain file"
    if found.st_size == 0:
        return None
    try:
        with closing(sqlite3.connect(path, timeout=BUSY_S, isolation_level=None)) as db:
            return judge(db)
    except sqlite3.DatabaseError as error:
        return None if is_busy(error) else f"is broken ({error})"


def judge(db: sqlite3.Connection) -> str | None:
    (id_,) = db.execute("PRAGMA application_id").fetchone()
    (version,) = db.execute("PRAGMA user_version").fetchone()
    if id_ != sql.APPLICATION_ID:
        return "is another program's database"
    if version != sql.VERSION:
        return f"is of another ramherd (version {version}, this one knows {sql.VERSION})"
    (check,) = db.execute("PRAGMA quick_check(1)").fetchone()
    return None if check == "ok" else f"is broken ({check})"


def make_ledger(path: str) -> sqlite3.Connection:
    """WAL without syncs: it survives the death of every process, and a reboot voids it anyway."""
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
    db = sqlite3.connect(path, timeout=0, isolation_level=None)
    db.execute(f"PRAGMA busy_timeout = {int(BUSY_S * 1000)}")
    db.execute("PRAGMA synchronous = OFF")
    if db.execute(sql.IS_MADE).fetchone() != (len(sql.TABLES),):
        db.execute("PRAGMA journal_mode = WAL")
        for statement in sql.SCHEMA:
            db.execute(statement)
    db.execute("PRAGMA busy_timeout = 0")
    return db


def is_busy(error: sqlite3.Error) -> bool:
    return error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def owner_row(owner: Owner) -> tuple[str, str, int, int]:
    return owner.id, owner.boot_id, owner.proc.pid, owner.proc.start_ticks


def warn_on_stderr(text: str) -> None:
    print(f"ramherd: {text}", file=sys.stderr)
