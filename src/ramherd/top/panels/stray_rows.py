"""Strays: processes that agents left behind, with the evidence; as a tree, all processes."""

from ramherd.core.units import format_duration, format_size
from ramherd.show.job_table import short_size
from ramherd.strays.nouns import PsRow, Verdict
from ramherd.strays.render import as_tree, render_facts
from ramherd.top.cells import Cell, Column, TableData, TableRow, Tone, make_cell
from ramherd.top.reading import Reading

COLUMNS = (
    Column("PID", 8, is_right=True),
    Column("MEMORY", 7, is_right=True),
    Column("AGE", 6, is_right=True, rank=3),
    Column("IDLE", 6, is_right=True, rank=4),
    Column("VERDICT", 7),
    Column("WHAT", 24),
    Column("EVIDENCE", rank=0, least=24),
)
VERDICT_TONES = {
    Verdict.LIVE: Tone.GOOD, Verdict.IDLE: Tone.DIM, Verdict.SUSPECT: Tone.WARN,
    Verdict.ORPHAN: Tone.BAD,
}  # fmt: skip
STRAYS = (Verdict.ORPHAN, Verdict.SUSPECT)


def make_stray_table(reading: Reading, *, is_tree: bool = False) -> TableData:
    """Proved orphans first, then suspects; of each, the largest first."""
    rows = reading.processes.rows
    if is_tree:
        found = as_tree(rows)
    else:
        strays = [row for row in rows if row.verdict in STRAYS]
        strays.sort(key=lambda row: (STRAYS.index(row.verdict), -row.memory_bytes))
        found = [(row, 0) for row in strays]
    return TableData(
        COLUMNS, tuple(make_row(row, depth) for row, depth in found), empty=render_empty(reading)
    )


def render_empty(reading: Reading) -> str:
    return "no process was left behind" if reading.processes.at_s else "not scanned yet"


def make_row(row: PsRow, depth: int) -> TableRow:
    what = make_cell(f"{row.software} {row.kind.value}").text
    cells = (
        Cell(str(row.process.pid), value=row.process.pid),
        Cell(short_size(row.memory_bytes), value=row.memory_bytes),
        Cell(format_duration(row.age_s), value=row.age_s),
        Cell() if row.idle_s is None else Cell(format_duration(row.idle_s), value=row.idle_s),
        Cell(row.verdict.value, VERDICT_TONES[row.verdict], row.verdict.value),
        Cell("  " * depth + what, Tone.STRONG, what),
        make_cell(render_facts(row.evidence)),
    )
    return TableRow(f"process:{row.process.pid}:{row.process.id.start_ticks}", cells, depth)


def describe_process(row: PsRow) -> list[str]:
    """All that is known of a process, before it is ended."""
    idle = "" if row.idle_s is None else f", idle for {format_duration(row.idle_s)}"
    lines = [
        f"{row.software} (pid {row.process.pid}, {format_size(row.memory_bytes)})",
        f"verdict   {row.verdict.value}; age {format_duration(row.age_s)}{idle}",
        *(f"evidence  {render_facts([one])}" for one in row.evidence),
        *(f"spared    {render_facts([one])}" for one in row.spared),
        f"command   {row.command}",
    ]
    return [make_cell(line).text if "  " not in line else clean(line) for line in lines]


def clean(line: str) -> str:
    label, text = line[:10], line[10:]
    return label + make_cell(text).text
