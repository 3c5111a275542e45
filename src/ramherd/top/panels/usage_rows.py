"""Usage windows: accounts that an API does not serve at present, and until when."""

from ramherd.core.agent_task import name_window
from ramherd.decide.usage_limits import UsageWindow, explain_window
from ramherd.show.reasons import render_clock, render_reason
from ramherd.show.wait_text import render_span
from ramherd.top.cells import Cell, Column, TableData, TableRow, Tone, make_cell
from ramherd.top.reading import Reading

COLUMNS = (
    Column("AGENT", 10),
    Column("MODEL", 16, rank=3),
    Column("WINDOW", 16, rank=2),
    Column("UNTIL", 12),
    Column("LEFT", 7, is_right=True),
    Column("WHAT", rank=0),
)


def make_usage_table(reading: Reading) -> TableData:
    rows = tuple(make_row(window, reading.at_s) for window in reading.windows)
    return TableData(COLUMNS, rows, empty="no account is at a usage limit")


def make_row(window: UsageWindow, now_s: float) -> TableRow:
    left_s = window.until_s - now_s
    is_closed = left_s > 0
    cells = (
        make_cell(window.agent, Tone.STRONG),
        make_cell(window.model or "all"),
        make_cell(name_window(window.window)),
        Cell(render_clock(window.until_s, now_s) if is_closed else "", value=window.until_s),
        Cell(render_span(left_s) if is_closed else "", Tone.WARN, left_s),
        make_cell(render_reason(explain_window(window, now_s))),
    )
    return TableRow(f"limit:{'/'.join(window.key)}", cells)
