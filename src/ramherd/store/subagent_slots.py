"""Slots of subagents in the ledger.

A hooked session is one application: a lease of kind `session` for its own memory, and one of kind
`subagent` for each slot. A slot is provisional (it has an `until`) from the call of the tool to the
start of the subagent. So is a waiter, which renews its row: a hook that is killed meanwhile blocks
the others for only a few seconds. A subagent that has ended is `leaving` until Claude no longer
counts it. Between hooks no session reports anything, so each call measures all sessions, and looks
for subagents that were interrupted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeVar

from ramherd.core.procid import ProcId
from ramherd.core.reasons import reason_from_text
from ramherd.decide.budget import budget_bytes
from ramherd.decide.governor.subagent_slots import (
    Caps,
    SlotChoice,
    SlotHolder,
    Waiter,
    choose_slot,
    free_bytes,
    is_older,
    is_own_cap,
    order_waiters,
)
from ramherd.measure.transcripts import was_cut_short
from ramherd.store.ledger import LeaseRow, Ledger, parse_owners
from ramherd.store.ledger_file import read_ledger
from ramherd.store.sql import ledger as sql
from ramherd.system.boot_clock import read_boot_s
from ramherd.system.procfs import is_running, read_boot_id

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from ramherd.core.machine import Machine
    from ramherd.core.policies import Policy
    from ramherd.core.reasons import Reason

    Measure = Callable[[ProcId], int]

T = TypeVar("T")

# The start of a subagent took 0.03 s from the call of its tool; a permission prompt takes longer,
# and then the slot is found again when the subagent starts.
PROVISIONAL_S = 30.0
# A waiter renews its row every five seconds.
WAITER_S, RENEW_S = 15.0, 10.0

# Claude counts a subagent until its SubagentStop hooks have ended, and no longer at PostToolUse. A
# subagent in the background has no PostToolUse at its end: Claude forgets it within 0.1 s.
LEAVING_S, LEAVING_BEHIND_S = 30.0, 1.0

# A smaller change is noise, and every write wakes all waiters.
RECORDED_BYTES = 1 << 20
ENDED_KEPT = 200
HOOKED = ("session", "subagent", "leaving")


class SlotLimits(NamedTuple):
    """The limits of subagents. `read_machine` reads the memory of the machine, with the pid and the
    used bytes of every application in the ledger. `policy.budget_cap_bytes` is for all hooked
    sessions together.
    """

    read_machine: Callable[[Sequence[tuple[int, int]]], Machine]
    policy: Policy
    per_session: int | None = None
    in_all: int | None = None
    claude: int | None = None


class StartedSubagent(NamedTuple):
    """`transcript` is the file in which Claude records the work of the subagent."""

    name: str
    type: str = ""
    transcript: str = ""


class EndedSubagent(NamedTuple):
    """`started_s` is since boot, like the start of a process; `most_bytes` is the highest memory
    use seen of the subagent.
    """

    type: str
    started_s: float
    before_bytes: int
    most_bytes: int
    used_bytes: int


class SubagentRecord(NamedTuple):
    """A subagent that has ended. `before_bytes` and `after_bytes` are the memory of its session
    with all its processes, at its start and at its end; `at_s` is by the wall clock.
    """

    at_s: float
    session: str
    agent: str
    type: str
    project: str
    seconds: float
    before_bytes: int
    after_bytes: int
    most_bytes: int


class RunningSubagent(NamedTuple):
    """A subagent of the hooked session `pid`. `started_s` is since boot; `before_bytes` is the
    memory of the session at its start, `most_bytes` the highest memory use seen of the subagent.
    """

    pid: int
    agent: str
    type: str
    started_s: float
    before_bytes: int
    most_bytes: int


class WaiterRow(NamedTuple):
    """A subagent that waits, and its reason; after `until_s` its hook is gone."""

    owner: str
    call: str
    since_s: float
    until_s: float
    need_bytes: int
    reason: Reason

    @property
    def is_capped(self) -> bool:
        """It waits for another subagent of its own session."""
        return is_own_cap(self.reason)


class SessionState(NamedTuple):
    """A hooked session: how many subagents run, and which wait, each with its place in line."""

    pid: int
    used_bytes: int
    leased_bytes: int
    running: int
    waiting: list[tuple[WaiterRow, int]]


class SubagentSlots:
    """The slots of one hooked session."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self._own = ledger.owner.id

    def record(self, measure: Measure) -> int:
        """Records the session and its memory; returns the bytes in use."""
        return self._turn(measure, lambda rows: used_by(self._own, rows))

    def reserve(
        self, call: str, need_bytes: int, since_s: float, limits: SlotLimits, measure: Measure
    ) -> SlotChoice:
        """Returns a provisional slot, or a place in line."""
        return self._turn(
            measure, lambda rows: self._reserve(call, need_bytes, since_s, limits, rows)
        )

    def start(
        self, agent: StartedSubagent, need_bytes: int, limits: SlotLimits, measure: Measure
    ) -> None:
        """Makes the slot permanent. A subagent without a provisional slot (one that is woken again)
        gets the memory that is left: it runs in any case.
        """

        def confirm(rows: list[LeaseRow]) -> None:
            owner, name = self._own, agent.name
            if self.ledger.file.read(sql.SUBAGENT, (owner, name)):
                return  # the hook is in two settings files
            found = self.ledger.file.read(sql.FIRST_PROVISIONAL, (owner, ""))
            key, held = found[0] if found else (name, min(need_bytes, self._free(rows, limits)))
            self._drop_slot(owner, key)
            self._set_slot(name, max(held, 1), need_bytes)
            used = used_by(owner, rows)
            entry = (owner, name, agent.type, read_boot_s(), used, 0, agent.transcript)
            self.ledger.file.write(sql.ADD_SUBAGENT, entry)

        self._turn(measure, confirm)

    def stop(
        self, agent: str, measure: Measure, *, leaving_s: float = 0.0
    ) -> EndedSubagent | None:  # fmt: skip
        """Frees the slot; returns the record of the subagent, if its start was seen. Claude counts
        the subagent for up to `leaving_s` more.
        """

        def free(rows: list[LeaseRow]) -> EndedSubagent | None:
            found = self.ledger.file.read(sql.SUBAGENT, (self._own, agent))
            self._drop_subagent(self._own, agent)
            self.ledger.drop_lease(self._own, "leaving", agent)
            if found and leaving_s:
                leaving = (self._own, "leaving", agent, 0, 0, 0, None, read_boot_s() + leaving_s)
                self.ledger.set_lease(LeaseRow._make(leaving))
            used = used_by(self._own, rows)
            return EndedSubagent._make((*found[0], used)) if found else None

        return self._turn(measure, free, ends=agent)

    def record_end(self, ended: SubagentRecord) -> None:
        """Records a subagent for `ramherd hook status`."""

        def write() -> None:
            self.ledger.file.write(sql.ADD_ENDED, ended)
            self.ledger.file.write(sql.DROP_ENDED, (ENDED_KEPT,))

        self.ledger.transact(write)

    def cancel(self, call: str) -> None:
        """The call failed: drops its provisional slot, or the first one if the call has none."""

        def drop() -> None:
            found = self.ledger.file.read(sql.FIRST_PROVISIONAL, (self._own, call))
            for key in {call, found[0][0] if found else call}:
                self._drop_slot(self._own, key)

        self.ledger.transact(drop)

    def stop_waiting(self, call: str) -> None:
        """The call waits no longer."""

        def drop() -> None:
            self._drop_slot(self._own, call)
            self._drop_waiter(call)

        self.ledger.transact(drop)

    def stop_all_but(self, agents: Iterable[str], measure: Measure) -> None:
        """The turn is over, and with it all other subagents of this session."""
        kept = set(agents)

        def drop(rows: list[LeaseRow]) -> None:
            owner = self._own
            for row in rows:
                if row.owner == owner and row.kind == "subagent" and row.key not in kept:
                    self._drop_slot(owner, row.key)
            for (agent,) in self.ledger.file.read(sql.AGENTS, (owner,)):
                if agent not in kept:
                    self._drop_subagent(owner, agent)
            self.ledger.file.write(sql.DROP_LEAVING, (owner,))

        self._turn(measure, drop)

    def has_changed(self) -> bool:
        """Whether another process wrote since the last call."""
        return self.ledger.file.has_changed()

    def read_free_bytes(self, limits: SlotLimits) -> int:
        return self._free(self.rows(), limits)

    def first_start(self) -> float | None:
        """When the oldest running subagent of this session started, in seconds since boot."""
        ((first,),) = self.ledger.file.read(sql.FIRST_START, (self._own,))
        return None if first is None else float(first)

    def count_running(self) -> int:
        return len(self.ledger.file.read(sql.AGENTS, (self._own,)))

    def read_other_sessions(self) -> list[tuple[int, int]]:
        """The pid of each other hooked session, and how many of its subagents run."""
        processes = self.ledger.read_processes()
        held = holders(self._own, self.rows())
        return [
            (processes[owner].pid, holder.slots)
            for owner, holder in held.items()
            if owner != self._own and owner in processes
        ]

    def rows(self) -> list[LeaseRow]:
        return self.ledger.read_leases()

    def _turn(self, measure: Measure, act: Callable[[list[LeaseRow]], T], ends: str = "") -> T:
        """`ends` is a subagent whose end `act` handles."""

        def turn() -> T:
            # Before the lock is taken: reading /proc takes longer than the rest.
            dead = self.ledger.find_dead()
            used = {id_: measure(proc) for id_, proc in self._sessions() if id_ not in dead}
            over = self._find_cut_short()
            with self.ledger.turn(dead):
                for owner, agent in over:
                    if agent != ends:
                        self._drop_subagent(owner, agent)
                self._record_memory(used)
                return act(self.rows())

        return self.ledger.file.attempt(turn)

    def _find_cut_short(self) -> list[tuple[str, str]]:
        rows = self.ledger.file.read(sql.TRANSCRIPTS)
        return [(owner, agent) for owner, agent, path in rows if was_cut_short(path)]

    def _set_slot(
        self, key: str, held: int, need_bytes: int,
        since_s: float | None = None, until_s: float | None = None,
    ) -> None:  # fmt: skip
        self.ledger.set_lease(
            LeaseRow(self._own, "subagent", key, held, 0, need_bytes, since_s, until_s)
        )

    def _drop_slot(self, owner: str, key: str) -> None:
        self.ledger.drop_lease(owner, "subagent", key)

    def _drop_waiter(self, call: str) -> None:
        self.ledger.file.write(sql.DROP_WAITER, (self._own, call))

    def _drop_subagent(self, owner: str, agent: str) -> None:
        self._drop_slot(owner, agent)
        self.ledger.file.write(sql.DROP_SUBAGENT, (owner, agent))

    def _sessions(self) -> list[tuple[str, ProcId]]:
        known = {self._own: self.ledger.owner.proc}
        for owner in parse_owners(self.ledger.file.read(sql.SESSIONS)):
            known[owner.id] = owner.proc
        return list(known.items())

    def _record_memory(self, used: dict[str, int]) -> None:
        rows = self.rows()
        known = {row.owner: row for row in rows if row.kind == "session"}
        for owner, used_bytes in used.items():
            if owner not in known and owner != self._own:
                continue  # gone since it was measured
            slots = [row.bytes for row in rows if row.owner == owner and is_slot(row)]
            before = known.get(owner)
            base = before.wants_bytes if before is not None and slots else used_bytes
            now = (max(base, used_bytes - sum(slots)), used_bytes, base)
            if before is None or is_news(before[3:6], now):
                self.ledger.set_lease(LeaseRow(owner, "session", "", *now))
            if slots:
                self.ledger.file.write(sql.RECORD_MOST, ((used_bytes - base) // len(slots), owner))

    def _caps(self, rows: list[LeaseRow], limits: SlotLimits) -> Caps:
        pids = {owner: proc.pid for owner, proc in self.ledger.read_processes().items()}
        return caps_of(rows, pids, limits)

    def _free(self, rows: list[LeaseRow], limits: SlotLimits) -> int:
        everyone = holders(self._own, rows).values()
        return free_bytes(list(everyone), self._caps(rows, limits))

    def _reserve(
        self, call: str, need_bytes: int, since_s: float, limits: SlotLimits, rows: list[LeaseRow]
    ) -> SlotChoice:
        """Every write wakes all waiters, so a waiter writes only when it is new, when its row runs
        out and, as the first of its session, when its reason changes.
        """
        waiters = self._waiters()
        before = next((one for one in waiters if one[:2] == (self._own, call)), None)
        others = [one for one in waiters if one is not before]
        rest = [row for row in rows if row[:3] != (self._own, "subagent", call)]
        known = holders(self._own, rest, others, dict(self.ledger.file.read(sql.TURNS)))
        mine = known.pop(self._own)
        older_s = min((one.since_s for one in others if one.owner == self._own), default=None)
        choice = choose_slot(
            mine._replace(since_s=since_s, need_bytes=need_bytes), list(known.values()),
            self._caps(rows, limits), older_s=older_s,
        )  # fmt: skip
        now_s = read_boot_s()
        if choice.is_yes:
            self._set_slot(call, need_bytes, need_bytes, until_s=now_s + PROVISIONAL_S)
            self._drop_waiter(call)
            self.ledger.file.write(sql.SET_TURN, (self._own, now_s))
        elif before is None or before.until_s < now_s + RENEW_S or (
            not is_older(older_s, since_s) and before.reason.why is not choice.reason.why
        ):  # fmt: skip
            waiter = WaiterRow(
                self._own, call, since_s, now_s + WAITER_S, need_bytes, choice.reason
            )  # fmt: skip
            self._set_waiter(waiter, is_for_memory=choice.is_for_memory)
        return choice

    def _waiters(self) -> list[WaiterRow]:
        return parse_waiters(self.ledger.file.read(sql.WAITERS))

    def _set_waiter(self, row: WaiterRow, *, is_for_memory: bool) -> None:
        """Only a waiter that waits for memory has a lease that makes other applications wait."""
        if is_for_memory:
            self._set_slot(row.call, 0, row.need_bytes, row.since_s, row.until_s)
        else:
            self._drop_slot(self._own, row.call)
        self.ledger.file.write(sql.SET_WAITER, (*row[:5], row.reason.as_text()))


def read_sessions(path: str) -> list[SessionState]:
    """All hooked sessions, for a process without a lease."""
    owners = parse_owners(read_ledger(path, sql.SESSIONS))
    rows = [LeaseRow._make(row) for row in read_ledger(path, sql.LEASES)]
    now_s, boot_id = read_boot_s(), read_boot_id()
    waiters = [one for one in parse_waiters(read_ledger(path, sql.WAITERS)) if one.until_s >= now_s]
    places = find_places(rows, waiters, dict(read_ledger(path, sql.TURNS)))
    return [
        SessionState(
            proc.pid, used_by(id_, own), sum(row.bytes for row in own),
            sum(is_slot(row) for row in own),
            sorted(((one, places[one[:2]]) for one in waiters if one.owner == id_),
                   key=lambda found: found[1]),
        )
        for id_, its_boot, proc in owners if its_boot == boot_id and is_running(proc)
        if (own := [row for row in rows if row.owner == id_])
    ]  # fmt: skip


def read_running(path: str) -> list[RunningSubagent]:
    """Subagents of all sessions, the first to start first."""
    return [RunningSubagent._make(row) for row in read_ledger(path, sql.RUNNING_SUBAGENTS)]


def read_ended(path: str) -> list[SubagentRecord]:
    """Subagents of all sessions, the last to end last."""
    return [SubagentRecord._make(row) for row in read_ledger(path, sql.ENDED)]


def find_places(
    rows: Sequence[LeaseRow], waiters: Sequence[WaiterRow], turns: Mapping[str, float]
) -> dict[tuple[str, str], int]:
    """The place in line of each waiting subagent. While one waits, the sum of leases stands for the
    whole budget, and the number of running subagents for `max_parallel`.
    """
    line = [
        Waiter(one.owner, one.call, one.since_s, one.need_bytes, one.is_capped) for one in waiters
    ]
    known = {row.owner for row in rows}
    held = holders("", rows, (), turns)
    running = sum(holder.slots for holder in held.values())
    caps = Caps(sum(row.bytes for row in rows), in_all=running)
    return order_waiters(line, [holder for holder in held.values() if holder.owner in known], caps)


def parse_waiters(rows: Iterable[tuple[str, str, float, float, int, str]]) -> list[WaiterRow]:
    return [WaiterRow(*row[:5], reason_from_text(row[5])) for row in rows]


def is_slot(row: LeaseRow) -> bool:
    return row.kind == "subagent" and row.bytes > 0


def is_news(before: Iterable[int], now: Iterable[int]) -> bool:
    return any(abs(a - b) >= RECORDED_BYTES for a, b in zip(before, now, strict=True))


def used_by(owner: str, rows: Iterable[LeaseRow]) -> int:
    return sum(row.used_bytes for row in rows if row.owner == owner)


def holders(
    own: str, rows: Iterable[LeaseRow], waiters: Iterable[WaiterRow] = (),
    turns: Mapping[str, float] | None = None,
) -> dict[str, SlotHolder]:  # fmt: skip
    """One for each application, including our own. A waiter that is blocked only by its own session
    blocks no other application.
    """
    turns = turns or {}
    found = {own: SlotHolder(own, granted_s=turns.get(own, 0.0))}
    for row in rows:
        holder = found.get(row.owner) or SlotHolder(
            row.owner, is_hooked=row.kind in HOOKED, granted_s=turns.get(row.owner, 0.0)
        )
        found[row.owner] = joined(holder, row)
    for one in waiters:
        if not one.is_capped and one.owner in found:
            found[one.owner] = with_waiter(found[one.owner], one.since_s, one.need_bytes)
    return found


def joined(holder: SlotHolder, row: LeaseRow) -> SlotHolder:
    holder = holder._replace(
        bytes=holder.bytes + row.bytes, slots=holder.slots + is_slot(row),
        leaving=holder.leaving + (row.kind == "leaving"),
    )  # fmt: skip
    if row.waiting_since_s is None:
        return holder
    need_bytes = row.wants_bytes if row.kind == "subagent" else 0
    return with_waiter(holder, row.waiting_since_s, need_bytes)


def with_waiter(holder: SlotHolder, since_s: float, need_bytes: int) -> SlotHolder:
    """The oldest waiter counts."""
    if holder.since_s is not None and holder.since_s <= since_s:
        return holder
    return holder._replace(since_s=since_s, need_bytes=need_bytes)


def caps_of(rows: Sequence[LeaseRow], pids: Mapping[str, int], limits: SlotLimits) -> Caps:
    """The budget is that of every application: the smallest that RAM or a limit leaves."""
    uses = [(pid, used_by(owner, rows)) for owner, pid in pids.items()]
    budget = budget_bytes(limits.read_machine(uses), 0, limits.policy, capped=False)
    return Caps(
        budget, limits.policy.budget_cap_bytes, limits.per_session, limits.in_all, limits.claude
    )
