"""`ramherd watch` as text: a sentence for each alert, the table of the census, rows as JSON."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ramherd.core.census_row import Census, CensusRow, CensusTotal
from ramherd.core.units import count, format_duration, format_size
from ramherd.show.event_lines import printable
from ramherd.strays.nouns import Kind, WarningSign
from ramherd.strays.render import render_warning, signed

LARGEST = "; the largest session is {name} (pid {pid}): end it, then: {command}"
STRAYS = "agents left {count} behind, which hold {size}: ramherd reap"
HEAD = ("PID", "MEMORY", "HIGHEST", "TREND", "SINCE", "WHO")
# Of those that have ended, the newest.
ENDED_ROWS = 10


def render_alert(sign: WarningSign) -> str:
    if sign.sign == "strays":
        number = count(round(sign.number), "process", "processes")
        return STRAYS.format(count=number, size=format_size(sign.rate))
    text = render_warning(sign)
    if sign.sign == "memory" and sign.pid and sign.command:
        name, command = printable(sign.name), printable(sign.command)
        text += LARGEST.format(name=name, pid=sign.pid, command=command)
    return text


def render_census(census: Census, now_s: float, *, ended: bool) -> Iterator[str]:
    """Live agents, servers and tools, the largest first; then those that have ended."""
    live = [row for row in census.rows if row.ended_s is None]
    gone = [row for row in census.rows if row.ended_s is not None]
    if live:
        yield from render_table(live, now_s)
    yield render_total(live, census.totals)
    shown = gone if ended else [row for row in gone if row.kind == Kind.AGENT][:ENDED_ROWS]
    if shown:
        yield ""
        yield "ended in the last 7 days, the newest first:"
        yield from render_table(shown, now_s)
    left = len(gone) - len(shown)
    if left:
        processes = count(left, "ended process", "ended processes")
        yield f"{processes} not listed (--all lists them)"


def render_table(rows: Sequence[CensusRow], now_s: float) -> Iterator[str]:
    cells = [HEAD, *(cells_of(row, now_s) for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(HEAD))]
    for row in cells:
        numbers = [cell.rjust(width) for cell, width in zip(row[:-1], widths, strict=False)]
        yield "  ".join([*numbers, row[-1]]).rstrip()


def cells_of(row: CensusRow, now_s: float) -> tuple[str, ...]:
    since_s = now_s - (row.started_s if row.ended_s is None else row.ended_s)
    return (
        str(row.process.pid),
        format_size(row.memory_bytes),
        format_size(row.highest_bytes),
        "-" if row.trend_bytes is None else f"{signed(round(row.trend_bytes))}/h",
        format_duration(since_s) + ("" if row.ended_s is None else " ago"),
        describe(row),
    )


def describe(row: CensusRow) -> str:
    """`claude agent in /src/shop`, `context7 mcp of 4711`."""
    words = [row.software, row.kind]
    if row.cwd:
        words += ["in", row.cwd]
    elif row.session and row.session != row.process.pid:
        words += ["of", str(row.session)]
    if row.run:
        words.append(f"(run {row.run})")
    if row.ended_s is None and row.verdict not in ("live", "idle"):
        words.append(f"({row.verdict})")
    return printable(" ".join(words))


def render_total(live: Sequence[CensusRow], totals: Sequence[CensusTotal]) -> str:
    if not live:
        text = "no agents, MCP servers or their tools are running"
    else:
        total = format_size(sum(row.memory_bytes for row in live))
        text = f"{count(len(live), 'process', 'processes')}, {total}"
    if len(totals) < 2:
        return text
    highest = max(totals, key=lambda one: one.memory_bytes)
    span_s = totals[-1].at_s - totals[0].at_s
    return f"{text}; the most in {format_duration(span_s)}: {format_size(highest.memory_bytes)}"


def render_alerts(signs: Iterable[WarningSign]) -> Iterator[str]:
    for sign in signs:
        yield f"warning: {render_alert(sign)}"


def census_json(census: Census) -> dict[str, Any]:
    return {
        "processes": [row_json(row) for row in census.rows],
        "totals": [total._asdict() for total in census.totals],
    }


def row_json(row: CensusRow) -> Mapping[str, Any]:
    fields = row._asdict()
    process = fields.pop("process")
    return {"pid": process.pid, "start_ticks": process.start_ticks, **fields}
