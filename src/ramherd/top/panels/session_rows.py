"""Sessions of agents that ramherd did not start: hooked ones with their subagents, and others."""

from collections.abc import Iterator

from ramherd.core.units import format_duration
from ramherd.show.job_table import short_size
from ramherd.show.reasons import render_clock, render_reason
from ramherd.store.subagent_slots import SessionState, SubagentRecord
from ramherd.strays.nouns import Kind, PsRow
from ramherd.top.cells import Cell, Column, TableData, TableRow, Tone, make_cell
from ramherd.top.reading import Reading

COLUMNS = (
    Column("SESSION", 20),
    Column("STATE", 9),
    Column("MEMORY", 7, is_right=True),
    Column("LEASED", 6, is_right=True, rank=5),
    Column("TIME", 7, is_right=True, rank=2),
    Column("BEFORE", 6, is_right=True, rank=2),
    Column("AFTER", 6, is_right=True, rank=2),
    Column("DETAILS", rank=0, least=18),
)
SHOWN_ENDED = 8
RAMHERD = "ramherd"


def make_session_table(reading: Reading) -> TableData:
    """Each hooked session with its subagents below it, then sessions without the hook, then the
    subagents that ended last.
    """
    hooked = {one.pid for one in reading.sessions}
    rows = [row for one in reading.sessions for row in make_hooked_rows(one, reading)]
    rows += [
        make_other_row(row)
        for row in reading.processes.rows
        if is_session(row) and row.process.pid not in hooked
    ]
    ended = list(reading.ended_subagents[-SHOWN_ENDED:])[::-1]
    rows += [make_ended_row(one, reading.at_s) for one in ended]
    return TableData(COLUMNS, tuple(rows), empty="no session runs (ramherd hook install claude)")


def is_session(row: PsRow) -> bool:
    """The root of a tree, and no run of ours."""
    is_root = row.kind is Kind.AGENT and row.session == row.process.pid
    return is_root and row.application != RAMHERD


def make_hooked_rows(session: SessionState, reading: Reading) -> Iterator[TableRow]:
    own = [one for one in reading.subagents if one.pid == session.pid]
    subagents = f"{session.running} running, {len(session.waiting)} waiting"
    yield TableRow(
        f"session:{session.pid}",
        (
            Cell(f"claude {session.pid}", Tone.STRONG, session.pid),
            Cell("hooked", Tone.GOOD), Cell(short_size(session.used_bytes)),
            Cell(short_size(session.leased_bytes), Tone.DIM), Cell(), Cell(), Cell(),
            Cell(subagents),
        ),
    )  # fmt: skip
    for one in own:
        ran_s = max(reading.boot_s - one.started_s, 0.0)
        yield TableRow(
            f"subagent:{session.pid}:{one.agent}",
            (
                make_cell(f"  {one.type or 'subagent'}")._replace(text=child(one.type)),
                Cell("running", Tone.GOOD), Cell(short_size(one.most_bytes)), Cell(),
                Cell(format_duration(ran_s)), Cell(short_size(one.before_bytes)), Cell(), Cell(),
            ),
            depth=1,
        )  # fmt: skip
    for waiter, place in session.waiting:
        waited = format_duration(max(reading.boot_s - waiter.since_s, 0.0))
        why = f"place {place}: {render_reason(waiter.reason)}"
        yield TableRow(
            f"waiter:{session.pid}:{waiter.call}",
            (
                Cell(child("")), Cell("waiting", Tone.WARN), Cell(short_size(waiter.need_bytes)),
                Cell(), Cell(waited), Cell(), Cell(), make_cell(why),
            ),
            depth=1,
        )  # fmt: skip


def child(name: str) -> str:
    return "  " + make_cell(name or "subagent").text


def make_other_row(row: PsRow) -> TableRow:
    where = f"in {row.application}; " if row.application else ""
    idle = "" if row.idle_s is None else f"idle for {format_duration(row.idle_s)}; "
    cells = (
        Cell(f"{row.software} {row.process.pid}", Tone.STRONG, row.process.pid),
        Cell(row.verdict.value, Tone.DIM), Cell(short_size(row.memory_bytes)), Cell(),
        Cell(format_duration(row.age_s)), Cell(), Cell(),
        make_cell(f"{where}{idle}{row.command}", Tone.DIM),
    )  # fmt: skip
    return TableRow(process_key(row), cells)


def make_ended_row(one: SubagentRecord, now_s: float) -> TableRow:
    cells = (
        Cell(child(one.type), Tone.DIM), Cell("ended", Tone.DIM),
        Cell(short_size(one.most_bytes), Tone.DIM), Cell(),
        Cell(format_duration(one.seconds), Tone.DIM), Cell(short_size(one.before_bytes)),
        Cell(short_size(one.after_bytes)),
        make_cell(f"at {render_clock(one.at_s, now_s)} in {one.project}", Tone.DIM),
    )  # fmt: skip
    return TableRow(f"ended:{one.session}:{one.agent}:{one.at_s}", cells, depth=1)


def process_key(row: PsRow) -> str:
    return f"process:{row.process.pid}:{row.process.id.start_ticks}"
