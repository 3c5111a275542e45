"""SubagentSlots of hooked sessions, on real files and for real processes."""

import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from ramherd.core.machine import Limit, Machine
from ramherd.core.policies import Policy
from ramherd.core.procid import ProcId
from ramherd.core.reasons import Why
from ramherd.store.ledger import Ask, Ledger
from ramherd.store.owner import OwnerLock, is_alive, session_owner
from ramherd.store.subagent_slots import (
    ENDED_KEPT,
    SlotLimits,
    StartedSubagent,
    SubagentRecord,
    SubagentSlots,
    is_slot,
    read_ended,
    read_sessions,
)
from ramherd.system.boot_clock import read_boot_s
from ramherd.system.procfs import read_boot_id, read_process

MIB = 1 << 20
GIB = 1 << 30
NEED = 128 * MIB
Uses = Sequence[tuple[int, int]]
Opener = Callable[..., SubagentSlots]
# The last line of a transcript: Escape while the model or a tool was at work, an error of the API.
ENDS = (
    '{"content":[{"type":"text","text":"[Request interrupted by user]"}]}',
    '{"content":[{"type":"text","text":"[Request interrupted by user for tool use]"}]}',
    '{"content":[{"type":"text","text":"API Error: 400"}],"isApiErrorMessage":true}',
)


def limits_of(total_bytes: int) -> SlotLimits:
    """RAM all of which may be used, nothing of it used by others."""

    def read(uses: Uses) -> Machine:
        return Machine(total_bytes, total_bytes, (), sum(used for _pid, used in uses))

    return SlotLimits(read, Policy(budget_share=1.0))


ROOM = limits_of(GIB)


class Process:
    """Stands for a claude."""

    def __init__(self) -> None:
        self.child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
        found = read_process(self.child.pid)
        assert found is not None
        self.id = found.id

    def kill(self) -> None:
        self.child.kill()
        self.child.wait()


@pytest.fixture
def process() -> Iterator[Callable[[], Process]]:
    started: list[Process] = []

    def start() -> Process:
        started.append(Process())
        return started[-1]

    yield start
    for one in started:
        one.kill()


@pytest.fixture
def open_slots(tmp_path: Path) -> Iterator[Opener]:
    opened: list[SubagentSlots] = []

    def open_one(proc: ProcId | None = None) -> SubagentSlots:
        found = read_process(os.getpid())
        assert found is not None
        owner = session_owner(proc or found.id)
        opened.append(SubagentSlots(Ledger(tmp_path / "ledger.db", tmp_path, owner)))
        return opened[-1]

    yield open_one
    for slots in opened:
        slots.ledger.file.close()


def advance_clock(monkeypatch: pytest.MonkeyPatch, by_s: float) -> None:
    """The clock since boot, where the ledger reads it."""
    later_s = read_boot_s() + by_s
    for module in ("ledger", "subagent_slots"):
        monkeypatch.setattr(f"ramherd.store.{module}.read_boot_s", lambda: later_s)


def measure(_session: ProcId) -> int:
    return 100 * MIB


def take(slots: SubagentSlots, call: str, since_s: float = 1.0, limits: SlotLimits = ROOM) -> bool:
    return slots.reserve(call, NEED, since_s, limits, measure).is_yes


def test_a_session_and_its_subagents_share_the_budget(open_slots: Opener) -> None:
    """Its own memory counts: 100 of 1024 MiB, so that seven slots of 128 are left."""
    slots = open_slots()
    assert [take(slots, f"call-{number}") for number in range(8)] == [True] * 7 + [False]
    assert slots.read_free_bytes(ROOM) == 28 * MIB


def test_a_slot_is_confirmed_by_the_first_start(open_slots: Opener) -> None:
    """Which subagent a call became is not told, and need not be: one slot each."""
    slots = open_slots()
    for call in ("one", "two"):
        take(slots, call)
    slots.start(StartedSubagent("agent", "general-purpose"), NEED, ROOM, measure)

    keys = {row.key: row.until_s for row in slots.rows() if row.kind == "subagent"}
    assert keys["agent"] is None
    assert len(keys) == 2
    slots.start(StartedSubagent("agent", "general-purpose"), NEED, ROOM, measure)
    assert {row.key for row in slots.rows() if row.kind == "subagent"} == set(keys)


def test_a_slot_that_is_not_confirmed_comes_free(
    open_slots: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After 30 s; a confirmed one stays."""
    slots = open_slots()
    take(slots, "one")
    slots.start(StartedSubagent("agent"), NEED, ROOM, measure)
    take(slots, "two")
    advance_clock(monkeypatch, 31)
    slots.record(measure)

    assert [row.key for row in slots.rows() if is_slot(row)] == ["agent"]


def test_a_waiter_who_is_gone_is_in_nobodys_way(
    open_slots: Opener, process: Callable[[], Process], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was killed while it waited, and its session lives on."""
    first, second = open_slots(process().id), open_slots(process().id)
    small = limits_of(330 * MIB)
    take(first, "running", limits=small)
    assert not take(first, "killed", 1.0, small)
    first.start(StartedSubagent("agent"), NEED, small, measure)
    first.stop("agent", measure)
    later_s = read_boot_s() + 1
    assert not take(second, "alive", later_s, small)
    advance_clock(monkeypatch, 16)
    assert take(second, "alive", later_s, small)


def test_a_woken_subagent_takes_what_is_left(open_slots: Opener) -> None:
    """Nobody asked for it, and it cannot be kept from running."""
    slots = open_slots()
    for number in range(7):
        take(slots, f"call-{number}")
        slots.start(StartedSubagent(f"agent-{number}"), NEED, ROOM, measure)
    slots.start(StartedSubagent("woken"), NEED, ROOM, measure)

    (held,) = [row.bytes for row in slots.rows() if row.key == "woken"]
    assert held == 28 * MIB


def test_a_stop_frees_the_slot_and_tells_of_the_subagent(open_slots: Opener) -> None:
    """Memory before, at most, and after; a second stop has nothing to tell."""
    slots, used = open_slots(), [100 * MIB]

    def growing(_session: ProcId) -> int:
        return used[0]

    slots.record(growing)
    slots.reserve("call", NEED, 1.0, ROOM, growing)
    slots.start(StartedSubagent("agent", "explore"), NEED, ROOM, growing)
    used[0] = 150 * MIB
    slots.record(growing)
    used[0] = 120 * MIB
    past = slots.stop("agent", growing)

    assert past is not None
    figures = (past.type, past.before_bytes, past.most_bytes, past.used_bytes)
    assert figures == ("explore", 100 * MIB, 50 * MIB, 120 * MIB)
    assert slots.stop("agent", growing) is None
    assert not any(is_slot(row) for row in slots.rows())


@pytest.mark.parametrize("end", ENDS)
def test_a_subagent_that_was_cut_short_frees_its_slot(
    open_slots: Opener, process: Callable[[], Process], tmp_path: Path, end: str
) -> None:
    """No hook tells of it, but its transcript does, to whoever asks next."""
    path = tmp_path / "agent.jsonl"
    first, second = open_slots(process().id), open_slots()
    take(first, "call")
    first.start(StartedSubagent("agent", "", str(path)), NEED, ROOM, measure)
    path.write_text(f'{end}\n{{"text":"and woken again"}}\n')
    second.record(measure)
    assert [row.key for row in second.rows() if is_slot(row)] == ["agent"]
    with path.open("a") as file:
        file.write(f"{end}\n")
    second.record(measure)
    assert not any(is_slot(row) for row in second.rows())
    assert first.stop("agent", measure) is None


def test_the_hook_that_tells_the_end_comes_before_the_transcript(
    open_slots: Opener, tmp_path: Path
) -> None:
    """What is known of the subagent is not lost to the look at its transcript."""
    path = tmp_path / "agent.jsonl"
    slots = open_slots()
    take(slots, "call")
    slots.start(StartedSubagent("agent", "explore", str(path)), NEED, ROOM, measure)
    path.write_text(f"{ENDS[-1]}\n")

    past = slots.stop("agent", measure)

    assert past is not None
    assert past.type == "explore"
    assert not any(is_slot(row) for row in slots.rows())


def test_a_cancelled_call_frees_one_provisional_slot(open_slots: Opener) -> None:
    """Also when a start took the slot of that very call for its own."""
    slots = open_slots()
    take(slots, "denied")
    take(slots, "started")
    slots.start(StartedSubagent("agent"), NEED, ROOM, measure)
    slots.cancel("denied")
    assert [row.key for row in slots.rows() if is_slot(row)] == ["agent"]


def test_at_the_end_of_a_turn_only_the_background_is_left(open_slots: Opener) -> None:
    """Whatever was missed on the way."""
    slots = open_slots()
    for name in ("one", "two"):
        take(slots, name)
        slots.start(StartedSubagent(f"agent-{name}"), NEED, ROOM, measure)
    take(slots, "lost")
    slots.stop_all_but(["agent-two"], measure)
    assert [row.key for row in slots.rows() if is_slot(row)] == ["agent-two"]


def test_a_killed_session_frees_its_slots(
    open_slots: Opener, process: Callable[[], Process]
) -> None:
    """No lock of ours lives in it: its process does, or does not."""
    claude = process()
    first, second = open_slots(claude.id), open_slots()
    for number in range(6):
        take(first, f"call-{number}")
    assert not take(second, "call")
    claude.kill()
    assert take(second, "call")
    assert {row.owner for row in second.rows()} == {second.ledger.owner.id}


def test_another_process_with_the_same_pid_is_not_the_session(tmp_path: Path) -> None:
    """Its start differs, and so does every boot."""
    found = read_process(os.getpid())
    assert found is not None
    owner = session_owner(found.id)
    assert is_alive(owner, tmp_path)
    reused = ProcId(found.id.pid, found.id.start_ticks - 1)
    assert not is_alive(session_owner(reused), tmp_path)
    assert owner.boot_id == read_boot_id()
    assert not is_alive(owner._replace(boot_id="before"), tmp_path)


def test_a_session_is_one_application_beside_a_herd(open_slots: Opener, tmp_path: Path) -> None:
    """With five slots it has one share, not five."""
    slots = open_slots()
    for number in range(5):
        take(slots, f"call-{number}")
    with closing(OwnerLock(tmp_path)) as lock:
        herd = Ledger(tmp_path / "ledger.db", tmp_path, lock.owner)
        answer = herd.ask(Ask(GIB, waiting_since_s=5.0), GIB)
        herd.close()
    assert answer.applications == 2
    assert answer.others_used_bytes == 100 * MIB
    assert answer.lease_bytes == GIB - 740 * MIB


def test_a_program_that_runs_holds_up_no_subagent(open_slots: Opener, tmp_path: Path) -> None:
    """`exec` asked before the subagent did, and has all that it asked for: it no longer waits."""
    with closing(OwnerLock(tmp_path)) as lock:
        program = Ledger(tmp_path / "ledger.db", tmp_path, lock.owner)
        ask = Ask(NEED, 0, NEED, 0.5, "exec")
        assert program.ask(ask, GIB).lease_bytes == NEED

        assert take(open_slots(), "call", since_s=1.0)
        program.close()


def test_a_session_that_outgrew_its_slots_leaves_less_to_others(open_slots: Opener) -> None:
    """What is used is gone, whatever was promised."""
    slots = open_slots()
    take(slots, "call")
    slots.start(StartedSubagent("agent"), NEED, ROOM, measure)
    slots.record(lambda _session: 600 * MIB)
    (row,) = [row for row in slots.rows() if row.kind == "session"]
    assert (row.bytes, row.used_bytes, row.wants_bytes) == (472 * MIB, 600 * MIB, 100 * MIB)


def test_what_others_use_elsewhere_is_no_part_of_a_limit(
    open_slots: Opener, process: Callable[[], Process]
) -> None:
    """Of a limit that only our session lives under, all that is used beside it is others'."""
    here, there = process(), process()

    def limits(*below: int) -> SlotLimits:
        def read(uses: Uses) -> Machine:
            inside = sum(used for pid, used in uses if pid in below)
            everywhere = sum(used for _pid, used in uses)
            limit = Limit(GIB, 300 * MIB, inside)
            return Machine(8 * GIB, 8 * GIB, (limit,), everywhere)

        return SlotLimits(read, Policy(budget_share=1.0))

    open_slots(there.id).record(measure)
    slots = open_slots(here.id)
    slots.record(measure)
    assert slots.read_free_bytes(limits(here.id.pid)) == GIB - 200 * MIB - 200 * MIB
    everywhere = limits(here.id.pid, there.id.pid)
    assert slots.read_free_bytes(everywhere) == GIB - 300 * MIB


def test_waiting_writes_seldom(open_slots: Opener, process: Callable[[], Process]) -> None:
    """Each write wakes all others who wait."""
    slots, onlooker = open_slots(process().id), open_slots()
    full = limits_of(GIB // 8)
    assert not take(slots, "call", limits=full)
    onlooker.has_changed()
    for _time in range(3):
        assert not take(slots, "call", limits=full)
        assert not onlooker.has_changed()
    slots.stop_waiting("call")
    assert onlooker.has_changed()


def test_sessions_are_shown_without_a_lease(open_slots: Opener, tmp_path: Path) -> None:
    """Of living ones; where there is no ledger there are none."""
    assert read_sessions(str(tmp_path / "none.db")) == []
    slots = open_slots()
    take(slots, "call")
    assert not take(slots, "waits", limits=limits_of(GIB // 8))
    (shown,) = read_sessions(str(tmp_path / "ledger.db"))
    assert shown[:4] == (os.getpid(), 100 * MIB, 228 * MIB, 1)
    ((waiter, place),) = shown.waiting
    assert (waiter.call, waiter.reason.why, place) == ("waits", Why.NO_ROOM_BUDGET, 1)
    with closing(sqlite3.connect(tmp_path / "ledger.db")) as db, db:
        db.execute("UPDATE owners SET start_ticks = 1")
    assert read_sessions(str(tmp_path / "ledger.db")) == []


def test_the_last_subagents_that_ended_are_kept(open_slots: Opener, tmp_path: Path) -> None:
    """Two hundred of them; also those of sessions that are gone."""
    slots = open_slots()
    for number in range(ENDED_KEPT + 3):
        slots.record_end(SubagentRecord(number, "s", f"agent-{number}", "x", "/p", 1.0, 1, 2, 3))
    slots.ledger.release_all()
    ended = read_ended(str(tmp_path / "ledger.db"))
    assert len(ended) == ENDED_KEPT
    assert ended[-1] == (ENDED_KEPT + 2, "s", f"agent-{ENDED_KEPT + 2}", "x", "/p", 1.0, 1, 2, 3)


def test_a_ledger_of_the_version_before_gets_the_new_tables(
    open_slots: Opener, tmp_path: Path
) -> None:
    """With all leases that it holds."""
    slots = open_slots()
    take(slots, "one")
    with closing(sqlite3.connect(tmp_path / "ledger.db")) as db, db:
        for table in ("waiters", "turns", "ended_subagents"):
            db.execute(f"DROP TABLE {table}")
    again = open_slots()
    assert take(again, "two")
    assert {row.key for row in again.rows() if row.kind == "subagent"} == {"one", "two"}
