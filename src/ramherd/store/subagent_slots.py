"""What hooked sessions ask the ledger: a seat for each subagent.

A session is one application: a lease of kind `session` for its own memory, and one of kind
`subagent` for each seat. A seat is provisional (it has an `until`) from the call of the tool
to the start of the subagent, and so is a waiter, who renews it: whoever is killed in between
is in nobody's way for long. Between hooks no session says anything, so whoever asks measures
all of them, and looks for subagents that were cut short.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TypeVar

from ramherd.core.procid import ProcId
from ramherd.decide.governor.subagent_slots import Caps, Verdict, choose_seat, free_bytes
from ramherd.measure.transcripts import was_cut_short
from ramherd.store import ledger_sql as sql
from ramherd.store.ledger import LeaseRow, Ledger
from ramherd.store.ledger_file import read_ledger
from ramherd.store.subagent_rows import (
    Past,
    Room,
    Starting,
    caps_of,
    holders,
    is_news,
    is_seat,
    used_by,
)
from ramherd.system.identity import is_running

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    Measure = Callable[[ProcId], int]

T = TypeVar("T")

# From the call of the tool to the start of its subagent took 0.03 s; a user who is asked for
# permission takes longer, and then its seat is found again when it starts.
PROVISIONAL_S = 30.0
# A waiter says every five seconds that it is still there.
WAITER_S, RENEW_S = 15.0, 10.0


class Seats:
    """The ledger, for one hooked session."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self._own = ledger.owner.id

    def note(self, measure: Measure) -> int:
        """The session is there, with so much memory."""
        return self._turn(measure, lambda rows: used_by(self._own, rows))

    def take(
        self, call: str, need_bytes: int, since_s: float, room: Room, measure: Measure
    ) -> Verdict:
        """A provisional seat, or a place among those who wait."""
        return self._turn(measure, lambda rows: self._take(call, need_bytes, since_s, room, rows))

    def start(self, agent: Starting, need_bytes: int, room: Room, measure: Measure) -> None:
        """Its seat is no longer provisional. One that nobody asked for (a subagent that is
        woken again) has what is left: it runs in any case.
        """

        def confirm(rows: list[LeaseRow]) -> None:
            owner, name = self._own, agent.name
            if self.ledger.file.read(sql.SUBAGENT, (owner, name)):
                return  # the hook is in two settings files
            found = self.ledger.file.read(sql.FIRST_PROVISIONAL, (owner, ""))
            key, held = found[0] if found else (name, min(need_bytes, self._free(rows, room)))
            self._drop_seat(owner, key)
            self._set_seat(name, max(held, 1), need_bytes)
            now_s, used = time.clock_gettime(time.CLOCK_BOOTTIME), used_by(owner, rows)
            entry = (owner, name, agent.type, now_s, used, agent.transcript)
            self.ledger.file.write(sql.ADD_SUBAGENT, entry)

        self._turn(measure, confirm)

    def stop(self, agent: str, measure: Measure) -> Past | None:
        """Frees its seat; what is known of it, if it was seen to start."""

        def free(rows: list[LeaseRow]) -> Past | None:
            found = self.ledger.file.read(sql.SUBAGENT, (self._own, agent))
            self._drop_subagent(self._own, agent)
            used = used_by(self._own, rows)
            return Past._make((*found[0], used)) if found else None

        return self._turn(measure, free, ends=agent)

    def cancel(self, call: str) -> None:
        """The call came to nothing: its provisional seat, or as many as there would be."""

        def drop() -> None:
            with self.ledger.file.transaction():
                found = self.ledger.file.read(sql.FIRST_PROVISIONAL, (self._own, call))
                for key in {call, found[0][0] if found else call}:
                    self._drop_seat(self._own, key)

        self.ledger.file.attempt(drop)

    def leave(self, call: str) -> None:
        """Nobody waits for this one any more."""
        self.ledger.release("subagent", call)

    def keep_only(self, agents: Iterable[str], measure: Measure) -> None:
        """The turn is over: all other subagents of this session are."""
        kept = set(agents)

        def drop(rows: list[LeaseRow]) -> None:
            owner = self._own
            for row in rows:
                if row.owner == owner and row.kind == "subagent" and row.key not in kept:
                    self._drop_seat(owner, row.key)
            for (agent,) in self.ledger.file.read(sql.AGENTS, (owner,)):
                if agent not in kept:
                    self._drop_subagent(owner, agent)

        self._turn(measure, drop)

    def has_news(self) -> bool:
        """Whether another process wrote since the last call."""
        return self.ledger.file.has_changed()

    def free(self, room: Room) -> int:
        return self._free(self.rows(), room)

    def first_start(self) -> float | None:
        """Of the subagents of this session that run, in seconds since boot."""
        ((first,),) = self.ledger.file.read(sql.FIRST_START, (self._own,))
        return None if first is None else float(first)

    def count_running(self) -> int:
        return len(self.ledger.file.read(sql.AGENTS, (self._own,)))

    def rows(self) -> list[LeaseRow]:
        return self.ledger.read_leases()

    def _turn(self, measure: Measure, act: Callable[[list[LeaseRow]], T], ends: str = "") -> T:
        """`ends` is a subagent whose end `act` sees to."""

        def turn() -> T:
            # Before the lock is taken: reading /proc takes longer than all the rest.
            dead = self.ledger.find_dead()
            used = {id_: measure(proc) for id_, proc in self._sessions() if id_ not in dead}
            over = self._find_cut_short()
            with self.ledger.turn(dead):
                for owner, agent in over:
                    if agent != ends:
                        self._drop_subagent(owner, agent)
                self._note_memory(used)
                return act(self.rows())

        return self.ledger.file.attempt(turn)

    def _find_cut_short(self) -> list[tuple[str, str]]:
        rows = self.ledger.file.read(sql.TRANSCRIPTS)
        return [(owner, agent) for owner, agent, path in rows if was_cut_short(path)]

    def _set_seat(
        self, key: str, held: int, need_bytes: int,
        since_s: float | None = None, until_s: float | None = None,
    ) -> None:  # fmt: skip
        self.ledger.set_lease(
            LeaseRow(self._own, "subagent", key, held, 0, need_bytes, since_s, until_s)
        )

    def _drop_seat(self, owner: str, key: str) -> None:
        self.ledger.drop_lease(owner, "subagent", key)

    def _drop_subagent(self, owner: str, agent: str) -> None:
        self._drop_seat(owner, agent)
        self.ledger.file.write(sql.DROP_SUBAGENT, (owner, agent))

    def _sessions(self) -> list[tuple[str, ProcId]]:
        known = {self._own: self.ledger.owner.proc}
        for id_, pid, ticks in self.ledger.file.read(sql.SESSIONS):
            known[id_] = ProcId(pid, ticks)
        return list(known.items())

    def _note_memory(self, used: dict[str, int]) -> None:
        rows = self.rows()
        known = {row.owner: row for row in rows if row.kind == "session"}
        for owner, used_bytes in used.items():
            if owner not in known and owner != self._own:
                continue  # gone since it was measured
            seats = [row.bytes for row in rows if row.owner == owner and is_seat(row)]
            before = known.get(owner)
            base = before.wants_bytes if before is not None and seats else used_bytes
            now = (max(base, used_bytes - sum(seats)), used_bytes, base)
            if before is None or is_news(before[3:6], now):
                self.ledger.set_lease(LeaseRow(owner, "session", "", *now))
            if seats:
                self.ledger.file.write(sql.NOTE_MOST, ((used_bytes - base) // len(seats), owner))

    def _caps(self, rows: list[LeaseRow], room: Room) -> Caps:
        pids = {owner: proc.pid for owner, proc in self.ledger.read_processes().items()}
        return caps_of(rows, pids, room)

    def _free(self, rows: list[LeaseRow], room: Room) -> int:
        everyone = holders(self._own, rows).values()
        return free_bytes(list(everyone), self._caps(rows, room))

    def _take(
        self, call: str, need_bytes: int, since_s: float, room: Room, rows: list[LeaseRow]
    ) -> Verdict:
        own = (self._own, "subagent", call)
        before = next((row for row in rows if row[:3] == own), None)
        known = holders(self._own, [row for row in rows if row[:3] != own])
        mine = known.pop(self._own)
        verdict = choose_seat(
            mine._replace(since_s=since_s, need_bytes=need_bytes), list(known.values()),
            self._caps(rows, room), older_s=mine.since_s,
        )  # fmt: skip
        now_s = time.monotonic()
        if verdict.is_yes:
            self._set_seat(call, need_bytes, need_bytes, until_s=now_s + PROVISIONAL_S)
        elif not verdict.is_queued:
            self._drop_seat(self._own, call)
        elif before is None or (before.until_s or 0.0) < now_s + RENEW_S:
            self._set_seat(call, 0, need_bytes, since_s, now_s + WAITER_S)
        return verdict


def read_sessions(path: str) -> list[tuple[int, int, int, int, int]]:
    """Pid, used, leased, seats and waiters of each hooked session, for whoever has no lease."""
    owners = {id_: ProcId(pid, ticks) for id_, pid, ticks in read_ledger(path, sql.SESSIONS)}
    rows = [LeaseRow._make(row) for row in read_ledger(path, sql.LEASES)]
    return [
        (proc.pid, used_by(id_, own), sum(row.bytes for row in own),
         sum(is_seat(row) for row in own), sum(row.waiting_since_s is not None for row in own))
        for id_, proc in owners.items() if is_running(proc)
        if (own := [row for row in rows if row.owner == id_])
    ]  # fmt: skip
