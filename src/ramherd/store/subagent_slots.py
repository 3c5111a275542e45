"""What hooked sessions ask the ledger: a seat for each subagent.

A session is one application: a lease of kind `session` for its own memory, and one of kind
`subagent` for each seat. A seat is provisional (it has an `until`) from the call of the tool
to the start of the subagent, and so is a waiter, who renews it: whoever is killed in between
is in nobody's way for long. Between hooks no session says anything, so whoever asks measures
all of them, and looks for subagents that were cut short.
"""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import closing
from typing import TYPE_CHECKING, TypeVar

from ramherd.core.procid import ProcId
from ramherd.decide.governor.subagent_slots import Caps, Verdict, choose_seat, free_bytes
from ramherd.measure.transcripts import was_cut_short
from ramherd.store import ledger_sql as sql
from ramherd.store.ledger import Ledger
from ramherd.store.subagent_rows import (
    Past,
    Room,
    Row,
    Starting,
    caps_of,
    holders,
    is_news,
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


class Seats(Ledger):
    """The ledger, for one hooked session."""

    def note(self, measure: Measure) -> int:
        """The session is there, with so much memory."""
        return self._turn(measure, lambda rows: used_by(self.owner.id, rows))

    def take(
        self, call: str, need_bytes: int, since_s: float, room: Room, measure: Measure
    ) -> Verdict:
        """A provisional seat, or a place among those who wait."""
        return self._turn(measure, lambda rows: self._take(call, need_bytes, since_s, room, rows))

    def start(self, agent: Starting, need_bytes: int, room: Room, measure: Measure) -> None:
        """Its seat is no longer provisional. One that nobody asked for (a subagent that is
        woken again) has what is left: it runs in any case.
        """

        def confirm(rows: list[Row]) -> None:
            owner, name = self.owner.id, agent.name
            if self._db.execute(sql.SUBAGENT, (owner, name)).fetchone():
                return  # the hook is in two settings files
            found = self._db.execute(sql.FIRST_PROVISIONAL, (owner, "")).fetchone()
            key, held = found or (name, min(need_bytes, self._free(rows, room)))
            self._db.execute(sql.DROP_SEAT, (owner, key))
            self._db.execute(sql.SET_SEAT, (owner, name, max(held, 1), need_bytes, None, None))
            now_s, used = time.clock_gettime(time.CLOCK_BOOTTIME), used_by(owner, rows)
            entry = (owner, name, agent.type, now_s, used, agent.transcript)
            self._db.execute(sql.ADD_SUBAGENT, entry)

        self._turn(measure, confirm)

    def stop(self, agent: str, measure: Measure) -> Past | None:
        """Frees its seat; what is known of it, if it was seen to start."""

        def free(rows: list[Row]) -> Past | None:
            found = self._db.execute(sql.SUBAGENT, (self.owner.id, agent)).fetchone()
            self._drop_subagent(self.owner.id, agent)
            used = used_by(self.owner.id, rows)
            return Past._make((*found, used)) if found else None

        return self._turn(measure, free, ends=agent)

    def cancel(self, call: str) -> None:
        """The call came to nothing: its provisional seat, or as many as there would be."""

        def drop() -> None:
            with self._transaction():
                found = self._db.execute(sql.FIRST_PROVISIONAL, (self.owner.id, call)).fetchone()
                for key in {call, found[0] if found else call}:
                    self._db.execute(sql.DROP_SEAT, (self.owner.id, key))

        self._again_if_broken(drop)

    def leave(self, call: str) -> None:
        """Nobody waits for this one any more."""
        self.give_back("subagent", call)

    def keep_only(self, agents: Iterable[str], measure: Measure) -> None:
        """The turn is over: all other subagents of this session are."""
        kept = set(agents)

        def drop(rows: list[Row]) -> None:
            owner = self.owner.id
            for row in rows:
                if row.owner == owner and row.kind == "subagent" and row.key not in kept:
                    self._db.execute(sql.DROP_SEAT, (owner, row.key))
            for (agent,) in self._db.execute(sql.AGENTS, (owner,)).fetchall():
                if agent not in kept:
                    self._drop_subagent(owner, agent)

        self._turn(measure, drop)

    def has_news(self) -> bool:
        """Whether anybody else wrote since the last look: cheaper than asking again."""
        (version,) = self._db.execute("PRAGMA data_version").fetchone()
        before, self._version = getattr(self, "_version", None), version
        return bool(version != before)

    def free(self, room: Room) -> int:
        return self._free(self.rows(), room)

    def first_start(self) -> float | None:
        """Of the subagents of this session that run, in seconds since boot."""
        (first,) = self._db.execute(sql.FIRST_START, (self.owner.id,)).fetchone()
        return None if first is None else float(first)

    def count_running(self) -> int:
        return len(self._db.execute(sql.AGENTS, (self.owner.id,)).fetchall())

    def rows(self) -> list[Row]:
        return [Row(*row) for row in self._db.execute(sql.ROWS)]

    def _turn(self, measure: Measure, act: Callable[[list[Row]], T], ends: str = "") -> T:
        """`ends` is a subagent whose end `act` sees to."""

        def turn() -> T:
            # Before the lock is taken: reading /proc takes longer than all the rest.
            dead = self._find_dead()
            used = {id_: measure(proc) for id_, proc in self._sessions() if id_ not in dead}
            over = self._find_cut_short()
            with self._transaction():
                self._begin_turn(dead)
                for owner, agent in over:
                    if agent != ends:
                        self._drop_subagent(owner, agent)
                self._note_memory(used)
                return act(self.rows())

        return self._again_if_broken(turn)

    def _find_cut_short(self) -> list[tuple[str, str]]:
        rows = self._db.execute(sql.TRANSCRIPTS).fetchall()
        return [(owner, agent) for owner, agent, path in rows if was_cut_short(path)]

    def _drop_subagent(self, owner: str, agent: str) -> None:
        for statement in (sql.DROP_SEAT, sql.DROP_SUBAGENT):
            self._db.execute(statement, (owner, agent))

    def _sessions(self) -> list[tuple[str, ProcId]]:
        known = {self.owner.id: self.owner.proc}
        for id_, pid, ticks in self._db.execute(sql.SESSIONS).fetchall():
            known[id_] = ProcId(pid, ticks)
        return list(known.items())

    def _note_memory(self, used: dict[str, int]) -> None:
        rows = self.rows()
        known = {row.owner: row for row in rows if row.kind == "session"}
        for owner, used_bytes in used.items():
            if owner not in known and owner != self.owner.id:
                continue  # gone since it was measured
            seats = [row.bytes for row in rows if row.owner == owner and row.is_seat]
            before = known.get(owner)
            base = before.wants_bytes if before is not None and seats else used_bytes
            now = (max(base, used_bytes - sum(seats)), used_bytes, base)
            if before is None or is_news(before[3:6], now):
                self._db.execute(sql.SET_SESSION, (owner, *now))
            if seats:
                self._db.execute(sql.NOTE_MOST, ((used_bytes - base) // len(seats), owner))

    def _caps(self, rows: list[Row], room: Room) -> Caps:
        pids = dict(self._db.execute(sql.PIDS).fetchall())
        return caps_of(rows, pids, room)

    def _free(self, rows: list[Row], room: Room) -> int:
        everyone = holders(self.owner.id, rows).values()
        return free_bytes(list(everyone), self._caps(rows, room))

    def _take(
        self, call: str, need_bytes: int, since_s: float, room: Room, rows: list[Row]
    ) -> Verdict:
        own = (self.owner.id, "subagent", call)
        before = next((row for row in rows if row[:3] == own), None)
        known = holders(self.owner.id, [row for row in rows if row[:3] != own])
        mine = known.pop(self.owner.id)
        verdict = choose_seat(
            mine._replace(since_s=since_s, need_bytes=need_bytes), list(known.values()),
            self._caps(rows, room), older_s=mine.since_s,
        )  # fmt: skip
        now_s = time.monotonic()
        place = (self.owner.id, call)
        if verdict.is_yes:
            seat = (*place, need_bytes, need_bytes, None, now_s + PROVISIONAL_S)
            self._db.execute(sql.SET_SEAT, seat)
        elif not verdict.is_queued:
            self._db.execute(sql.DROP_SEAT, place)
        elif before is None or (before.until_s or 0.0) < now_s + RENEW_S:
            self._db.execute(sql.SET_SEAT, (*place, 0, need_bytes, since_s, now_s + WAITER_S))
        return verdict


def read_sessions(path: str) -> list[tuple[int, int, int, int, int]]:
    """Pid, used, leased, seats and waiters of each hooked session, for whoever has no lease."""
    if not os.path.exists(path):
        return []
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=1)) as db:
            owners = {id_: ProcId(pid, ticks) for id_, pid, ticks in db.execute(sql.SESSIONS)}
            rows = [Row(*row) for row in db.execute(sql.ROWS)]
    except sqlite3.Error:
        return []
    return [
        (proc.pid, used_by(id_, own), sum(row.bytes for row in own),
         sum(row.is_seat for row in own), sum(row.waiting_since_s is not None for row in own))
        for id_, proc in owners.items() if is_running(proc)
        if (own := [row for row in rows if row.owner == id_])
    ]  # fmt: skip
