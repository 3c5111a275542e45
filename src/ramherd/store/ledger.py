"""The ledger: how much of the machine's memory each application of this user holds.

One small SQLite file, one short transaction for each request; no daemon. An owner is alive as long
as it holds its lock: the lease of a dead owner is void in the next request of any owner. Times are
seconds since boot (`system/boot_clock.py`), and each owner has its boot id. Nothing that may be
frozen (a run in its pen) opens this file. `decide/governor/leases.py` decides how much an
application gets. The hook loads this module for each subagent, so it does without dataclasses and
pathlib (16 ms together).
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from ramherd.core.errors import LedgerLocked, StoreError
from ramherd.core.procid import ProcId
from ramherd.core.reasons import Reason, Why
from ramherd.decide.governor.leases import Lease, choose_lease, choose_place, possible_bytes
from ramherd.store.lease_copies import LeaseCopy, read_copies, remove_copy, write_copy
from ramherd.store.ledger_file import LedgerFile, RowFunctions
from ramherd.store.owner import Owner, is_alive
from ramherd.store.sql import ledger as sql
from ramherd.system.boot_clock import read_boot_s

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterable, Iterator

T = TypeVar("T")

# The end of a process waits this long for the ledger.
CLOSE_S = 0.05


class LeaseRow(NamedTuple):
    """One row of the table. An application may have several, told apart by `kind` and `key`. After
    `until_s` the row is void.
    """

    owner: str
    kind: str
    key: str
    bytes: int
    used_bytes: int
    wants_bytes: int
    waiting_since_s: float | None = None
    until_s: float | None = None


class Ask(NamedTuple):
    """What an application asks for, and what it has. `granted_bytes` is the sum that its runs may
    hold now: the lease does not fall below that until they have given memory back.
    `waiting_since_s` is since boot. `least_bytes` is the smallest lease with which one of its jobs
    can go on, `is_at_work` whether a run goes on now.
    """

    wants_bytes: int
    used_bytes: int = 0
    granted_bytes: int = 0
    waiting_since_s: float | None = None
    kind: str = "run"
    key: str = ""
    least_bytes: int = 0
    is_at_work: bool = True


class OtherUse(NamedTuple):
    """The memory that the runs of another application use, and its process."""

    pid: int
    used_bytes: int


class Answer(NamedTuple):
    """`lease_bytes` is our lease in the ledger. `target_bytes` is the size to shrink to: others
    wait for the difference. `possible_bytes` is the lease if we asked for all memory. `others` is
    for the next measurement of the budget.
    """

    lease_bytes: int
    target_bytes: int
    others: tuple[OtherUse, ...]
    possible_bytes: int = 0

    @property
    def others_used_bytes(self) -> int:
        return sum(other.used_bytes for other in self.others)

    @property
    def applications(self) -> int:
        return 1 + len(self.others)


class Ledger:
    """The ledger as one owner uses it."""

    def __init__(
        self,
        path: os.PathLike[str] | str,
        runtime: os.PathLike[str] | str,
        owner: Owner,
    ) -> None:
        """A locked ledger is opened later, by the first request."""
        self.runtime, self.owner = os.fspath(runtime), owner
        self.file = LedgerFile(os.fspath(path), RowFunctions(self._find_users, self._fill))
        self._copied: tuple[object, ...] | None = None
        self.file.patience_s, patience_s = 0.0, self.file.patience_s
        try:
            self.file.open()
        except LedgerLocked:
            pass
        finally:
            self.file.patience_s = patience_s

    def restore(self, runtime: os.PathLike[str] | str) -> bool:
        """The ledger of this user may be in another directory now: the next transaction opens it
        there. Returns False: each transaction notices a removed file, and makes it again.
        """
        if self.runtime != os.fspath(runtime):
            self.runtime = os.fspath(runtime)
            self.file.path = os.path.join(self.runtime, os.path.basename(self.file.path))
        return False

    def ask(self, ask: Ask, budget_bytes: int) -> Answer:
        """Renews our lease, in one transaction."""
        return self.file.attempt(lambda: self._ask(ask, budget_bytes))

    def record_used(self, used_bytes: int, kind: str = "run", key: str = "") -> None:
        """For all others, memory beyond the lease counts as memory outside of every lease."""
        place = (self.owner.id, kind, key)
        self.transact(lambda: self.file.write(sql.SET_USED, (used_bytes, *place)))

    def release(self, kind: str = "run", key: str = "") -> None:
        self.transact(lambda: self.drop_lease(self.owner.id, kind, key))

    def release_all(self) -> None:
        self.transact(lambda: self._drop_owner(self.owner.id))

    def close(self) -> None:
        """A lease that cannot be given back soon becomes void when this process has ended."""
        self.file.patience_s = min(self.file.patience_s, CLOSE_S)
        try:
            self.release_all()
        except StoreError:
            pass
        self.file.close()

    def transact(self, write: Callable[[], None]) -> None:
        def act() -> None:
            with self.file.transaction():
                write()
                self._write_copy()

        self.file.attempt(act)

    def pop_notices(self) -> list[Reason]:
        """Repairs since the last call, to be reported."""
        notices, self.file.notices = self.file.notices, []
        return notices

    def _find_users(self, db: sqlite3.Connection) -> list[int]:
        return [one.proc.pid for one in parse_owners(db.execute(sql.OWNERS)) if self._is_alive(one)]

    def _fill(self, db: sqlite3.Connection) -> None:
        """Fills new tables with the rows that live owners had in the old ones."""
        for (id_, boot_id, proc), leases, subagents in read_copies(self.runtime):
            db.execute(sql.ADD_OWNER, (id_, boot_id, *proc))
            db.executemany(sql.SET_LEASE, [(id_, *row) for row in leases])
            db.executemany(sql.ADD_SUBAGENT, [(id_, *row) for row in subagents])

    def _is_alive(self, owner: Owner) -> bool:
        return is_alive(owner, self.runtime)

    def _write_copy(self) -> None:
        """In the transaction, if our leases have changed; used memory is measured again anyway."""
        leases = [row[1:] for row in self.file.read(sql.LEASES) if row[0] == self.owner.id]
        subagents = self.file.read(sql.SUBAGENTS_OF, (self.owner.id,))
        held = [row[:3] for row in leases]
        state = (self.file.identity, held, [row[0] for row in subagents])
        if state == self._copied:
            return
        self._copied = state
        if leases:
            write_copy(self.runtime, LeaseCopy(self.owner, leases, subagents))
        else:
            remove_copy(self.runtime, self.owner.id)

    def find_dead(self) -> list[str]:
        """Called before the transaction begins: a dead owner stays dead, its id is not used again,
        and reading /proc takes longer than the rest of the transaction.
        """
        return [
            owner.id
            for owner in parse_owners(self.file.read(sql.OWNERS))
            if owner.id != self.owner.id and not self._is_alive(owner)
        ]

    @contextmanager
    def turn(self, dead: Iterable[str]) -> Iterator[None]:
        """One transaction, after removing rows of dead owners, rows without an owner and overdue
        rows; we are among the owners. Call it in `file.attempt`.
        """
        with self.file.transaction():
            for owner in dead:
                self._drop_owner(owner)
                remove_copy(self.runtime, owner)
            for id_, kind, held in self.file.read(sql.DROP_OWNERLESS):
                reason = Reason(Why.LEASE_WITHOUT_OWNER, owner=id_, kind=kind, lease_bytes=held)
                self.file.notices.append(reason)
            for statement in sql.DROP_OVERDUE:
                self.file.write(statement, (read_boot_s(),))
            owner_id, boot_id, proc = self.owner
            self.file.write(sql.ADD_OWNER, (owner_id, boot_id, *proc))
            yield
            self._write_copy()

    def read_leases(self) -> list[LeaseRow]:
        return [LeaseRow._make(row) for row in self.file.read(sql.LEASES)]

    def read_processes(self) -> dict[str, ProcId]:
        """The process of each owner."""
        return {
            owner: ProcId(pid, ticks) for owner, _boot_id, pid, ticks in self.file.read(sql.OWNERS)
        }

    def set_lease(self, row: LeaseRow) -> None:
        self.file.write(sql.SET_LEASE, row)

    def drop_lease(self, owner: str, kind: str, key: str) -> None:
        self.file.write(sql.DROP_LEASE, (owner, kind, key))

    def _drop_owner(self, owner: str) -> None:
        for statement in sql.DROP_OWNER:
            self.file.write(statement, (owner,))

    def _ask(self, ask: Ask, budget_bytes: int) -> Answer:
        with self.turn(self.find_dead()):
            mine, rest, others = self._sum_leases(ask)
            processes = self.read_processes()
            granted = ask.granted_bytes + rest.bytes
            choice = choose_lease(
                mine,
                others,
                budget_bytes,
                granted_bytes=granted,
                least_bytes=ask.least_bytes,
                is_at_work=ask.is_at_work or bool(rest.bytes),
            )
            lease, target = (max(size - rest.bytes, 0) for size in choice)
            # An application that has all it asked for does not wait: others reserve nothing for it.
            since_s = mine.waiting_since_s if lease < ask.wants_bytes else None
            figures = (lease, ask.used_bytes, ask.wants_bytes, since_s)
            self.set_lease(LeaseRow(self.owner.id, ask.kind, ask.key, *figures))
        uses = tuple(OtherUse(processes[other.owner].pid, other.used_bytes) for other in others)
        possible = max(possible_bytes(others, budget_bytes) - rest.bytes, 0)
        return Answer(lease, target, uses, possible)

    def _sum_leases(self, ask: Ask) -> tuple[Lease, Lease, list[Lease]]:
        """All of our leases as `ask` changes them, all of ours except this one, and those of
        others. An application has one share, however many leases it has.
        """
        held, held_by = 0, {self.owner.id: Lease(self.owner.id, 0)}
        for row in self.read_leases():
            if row[:3] == (self.owner.id, ask.kind, ask.key):
                held = row.bytes
            else:
                held_by[row.owner] = add(held_by.get(row.owner, Lease(row.owner, 0)), *row[3:7])
        rest = held_by.pop(self.owner.id)
        since_s = choose_place(ask.waiting_since_s, held, granted_bytes=ask.granted_bytes)
        mine = add(rest, held, ask.used_bytes, ask.wants_bytes, since_s)
        return mine, rest, list(held_by.values())


def add(lease: Lease, bytes_: int, used: int, wants: int, since_s: float | None) -> Lease:
    """Adds one more lease of the same owner: the longest wait counts."""
    since = [at_s for at_s in (lease.waiting_since_s, since_s) if at_s is not None]
    return Lease(
        lease.owner, lease.bytes + bytes_, lease.used_bytes + used, lease.wants_bytes + wants,
        min(since, default=None),
    )  # fmt: skip


def parse_owners(rows: Iterable[tuple[str, str, int, int]]) -> list[Owner]:
    return [Owner(id_, boot_id, ProcId(pid, ticks)) for id_, boot_id, pid, ticks in rows]
