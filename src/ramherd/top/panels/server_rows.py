"""MCP servers: those of the gateway, and those that agents started themselves."""

from collections.abc import Iterable, Iterator

from ramherd.core.units import count
from ramherd.show.job_table import short_size
from ramherd.strays.nouns import Kind, PsRow, Verdict
from ramherd.top.cells import Cell, Column, TableData, TableRow, Tone, make_cell
from ramherd.top.panels.session_rows import process_key
from ramherd.top.panels.stray_rows import VERDICT_TONES
from ramherd.top.reading import Reading, SharedServer

COLUMNS = (
    Column("SERVER", 28),
    Column("STATE", 9),
    Column("CLIENTS", 7, is_right=True),
    Column("MEMORY", 7, is_right=True),
    Column("DETAILS", rank=0),
)


def make_server_table(reading: Reading, *, is_tree: bool = False) -> TableData:
    """One row for each program; as a tree, each process below it."""
    rows = [make_shared_row(server) for server in reading.servers or ()]
    found: dict[str, list[PsRow]] = {}
    for row in reading.processes.rows:
        if row.kind is Kind.MCP:
            found.setdefault(row.software, []).append(row)
    for name, copies in sorted(found.items(), key=lambda item: -total_bytes(item[1])):
        rows.append(make_program_row(name, copies))
        rows += make_copy_rows(copies) if is_tree else ()
    return TableData(COLUMNS, tuple(rows), empty="no MCP server runs")


def make_shared_row(server: SharedServer) -> TableRow:
    cells = (
        make_cell(server.name, Tone.STRONG), Cell(server.state, Tone.GOOD),
        Cell(str(server.clients), value=server.clients),
        Cell(short_size(server.memory_bytes), value=server.memory_bytes),
        Cell("shared by the gateway"),
    )  # fmt: skip
    return TableRow(f"server:{server.name}", cells)


def make_program_row(name: str, copies: list[PsRow]) -> TableRow:
    """A client is a session that uses a copy."""
    clients = len({row.session for row in copies if row.session})
    strays = sum(row.verdict in (Verdict.SUSPECT, Verdict.ORPHAN) for row in copies)
    total = total_bytes(copies)
    details = count(len(copies), "process", "processes")
    cells = (
        make_cell(name, Tone.STRONG),
        Cell("strays", Tone.WARN) if strays == len(copies) else Cell("live", Tone.GOOD),
        Cell(str(clients), value=clients), Cell(short_size(total), value=total),
        Cell(f"{details}, {strays} left behind" if strays else details),
    )  # fmt: skip
    return TableRow(f"program:{name}", cells)


def make_copy_rows(copies: Iterable[PsRow]) -> Iterator[TableRow]:
    for row in copies:
        of = f"of session {row.session}" if row.session else "of no session"
        cells = (
            Cell(f"  pid {row.process.pid}"),
            Cell(row.verdict.value, VERDICT_TONES[row.verdict]), Cell(),
            Cell(short_size(row.memory_bytes)), make_cell(f"{of}; {row.command}", Tone.DIM),
        )  # fmt: skip
        yield TableRow(process_key(row), cells, depth=1)


def total_bytes(rows: Iterable[PsRow]) -> int:
    return sum(row.memory_bytes for row in rows)
