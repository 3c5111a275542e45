"""The ledger: what each application of this user holds of the machine's memory.

One small SQLite file, one short transaction for each question; no daemon. An owner is alive as
long as it holds its lock: the lease of a dead owner is void for the next one that asks.
Nothing that may be frozen (a run in its pen) opens this file. How much an application gets is
decided in `decide/governor/leases.py`. The hook loads this module for each subagent, so it does
without dataclasses and pathlib (16 ms together).
"""

from __future__ import annotations

import os
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from ramherd.core.procid import ProcId
from ramherd.decide.governor.leases import Lease, choose_lease
from ramherd.store.ledger_file import LedgerFile
from ramherd.store.owner import Owner, is_alive
from ramherd.store.sql import ledger as sql

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

T = TypeVar("T")


class LeaseRow(NamedTuple):
    """One line of the table. An application may have several: `kind` and `key` tell them apart.
    Both times are monotonic: the same clock for all processes until the next boot. After `until_s`
    the line is void.
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
    """What an application asks for, and what it has. `granted_bytes` is what its runs may hold now:
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
    """The ledger as one owner uses it."""

    def __init__(
        self,
        path: os.PathLike[str] | str,
        runtime: os.PathLike[str] | str,
        owner: Owner,
        warn: Callable[[str], None] | None = None,
    ) -> None:
        self.file = LedgerFile(os.fspath(path), warn or warn_on_stderr)
        self.runtime, self.owner = os.fspath(runtime), owner

    def restore(self, runtime: os.PathLike[str] | str) -> bool:
        """The ledger of this user may be in another directory now: the next transaction opens it
        there. False: a file that was removed is noticed, and made again, by each transaction.
        """
        if self.runtime != os.fspath(runtime):
            self.runtime = os.fspath(runtime)
            self.file.path = os.path.join(self.runtime, os.path.basename(self.file.path))
        return False

    def ask(self, ask: Ask, budget_bytes: int) -> Answer:
        """Our lease from now on, in one transaction."""
        return self.file.attempt(lambda: self._ask(ask, budget_bytes))

    def record_used(self, used_bytes: int, kind: str = "run", key: str = "") -> None:
        """What is used beyond the lease counts as used by nobody's lease, for all others."""
        place = (self.owner.id, kind, key)
        self._transact(lambda: self.file.write(sql.SET_USED, (used_bytes, *place)))

    def release(self, kind: str = "run", key: str = "") -> None:
        self._transact(lambda: self.drop_lease(self.owner.id, kind, key))

    def release_all(self) -> None:
        self._transact(lambda: self._drop_owner(self.owner.id))

    def close(self) -> None:
        self.release_all()
        self.file.close()

    def detach(self) -> None:
        """Closes the file; what is leased stays ours."""
        self.file.close()

    def _transact(self, write: Callable[[], None]) -> None:
        """Waits for the transactions of others: a single statement would fail at once."""

        def act() -> None:
            with self.file.transaction():
                write()

        self.file.attempt(act)

    def find_dead(self) -> list[str]:
        """Found before the transaction begins: a dead owner stays dead, its id is not used again,
        and reading /proc takes longer than all the rest.
        """
        owners = [
            Owner(id_, boot_id, ProcId(pid, ticks))
            for id_, boot_id, pid, ticks in self.file.read(sql.OWNERS)
            if id_ != self.owner.id
        ]
        return [owner.id for owner in owners if not is_alive(owner, self.runtime)]

    @contextmanager
    def turn(self, dead: Iterable[str]) -> Iterator[None]:
        """One transaction without the lines of dead owners and those past their time; ours is
        among the owners. Call it in `file.attempt`.
        """
        with self.file.transaction():
            for owner in dead:
                self._drop_owner(owner)
            self.file.write(sql.DROP_OVERDUE, (time.monotonic(),))
            owner_id, boot_id, proc = self.owner
            self.file.write(sql.ADD_OWNER, (owner_id, boot_id, proc.pid, proc.start_ticks))
            yield

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
            choice = choose_lease(mine, others, budget_bytes, granted_bytes=granted)
            lease, target = (max(size - rest.bytes, 0) for size in choice)
            # An application that has all it asked for does not wait: nobody stands back for it.
            since_s = ask.waiting_since_s if lease < ask.wants_bytes else None
            figures = (lease, ask.used_bytes, ask.wants_bytes, since_s)
            self.set_lease(LeaseRow(self.owner.id, ask.kind, ask.key, *figures))
        uses = tuple(OtherUse(processes[other.owner].pid, other.used_bytes) for other in others)
        return Answer(lease, target, uses)

    def _sum_leases(self, ask: Ask) -> tuple[Lease, Lease, list[Lease]]:
        """All of ours as `ask` changes them, all of ours but this one, and those of the others.
        An application has one share, however many leases it has.
        """
        held, held_by = 0, {self.owner.id: Lease(self.owner.id, 0)}
        for row in self.read_leases():
            if row[:3] == (self.owner.id, ask.kind, ask.key):
                held = row.bytes
            else:
                held_by[row.owner] = add(held_by.get(row.owner, Lease(row.owner, 0)), *row[3:7])
        rest = held_by.pop(self.owner.id)
        mine = add(rest, held, ask.used_bytes, ask.wants_bytes, ask.waiting_since_s)
        return mine, rest, list(held_by.values())


def add(lease: Lease, bytes_: int, used: int, wants: int, since_s: float | None) -> Lease:
    """One more lease of the same owner: the longest wait counts."""
    since = [at_s for at_s in (lease.waiting_since_s, since_s) if at_s is not None]
    return Lease(
        lease.owner, lease.bytes + bytes_, lease.used_bytes + used, lease.wants_bytes + wants,
        min(since, default=None),
    )  # fmt: skip


def warn_on_stderr(text: str) -> None:
    print(f"ramherd: {text}", file=sys.stderr)
