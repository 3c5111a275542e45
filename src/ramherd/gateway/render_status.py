"""The text of `ramherd mcp list` and `ramherd mcp status`."""

from collections.abc import Mapping, Sequence
from textwrap import wrap
from typing import Any, NamedTuple

from ramherd.core.units import count, format_duration, format_size

UNUSED_S = 14 * 86_400.0
HEAD = ("SERVER", "SHARE", "STATE", "CLIENTS", "MEMORY", "CALLS", "LAST USE")
RIGHT = (3, 4, 5)
LEAST_REASON = 30


class ServerRow(NamedTuple):
    """A server as the gateway reports it. `saved_bytes` are the copies that agents did not start:
    for each further client of a process the memory of that process.
    """

    name: str
    share: str
    reason: str
    state: str
    clients: int
    used_bytes: int
    calls: int
    last_used_at_s: float | None
    processes: int
    saved_bytes: int
    is_unused: bool
    last_error: str = ""

    def as_json(self) -> dict[str, Any]:
        return self._asdict()


def make_rows(servers: Sequence[Mapping[str, Any]], now_s: float) -> list[ServerRow]:
    return [make_row(server, now_s) for server in servers]


def make_row(server: Mapping[str, Any], now_s: float) -> ServerRow:
    """`known_at_s` is when the server was imported: a new one is not called unused."""
    processes = server.get("processes", ())
    saved = sum(max(one["clients"] - 1, 0) * one["used_bytes"] for one in processes)
    used_at_s, known_at_s = server.get("last_used_at_s"), server.get("known_at_s", now_s)
    return ServerRow(
        server["name"], server["share"], server["reason"], server["state"], server["clients"],
        server["used_bytes"], server["calls"], used_at_s, len(processes), saved,
        now_s - max(used_at_s or 0.0, known_at_s) >= UNUSED_S, server.get("last_error", ""),
    )  # fmt: skip


def render_list(rows: Sequence[ServerRow], columns: int) -> list[str]:
    """Each server, how it is shared, and why."""
    if not rows:
        return ["no MCP servers are known (hint: ramherd mcp import)"]
    name = max(len(row.name) for row in rows)
    share = max(len(row.share) for row in rows)
    lines = []
    for row in rows:
        head = f"{row.name.ljust(name)}  {row.share.ljust(share)}  "
        width = max(columns - len(head), LEAST_REASON)
        first, *rest = wrap(row.reason, width)
        lines += [head + first, *(" " * len(head) + line for line in rest)]
        lines += [f"  {note}" for note in notes_of(row)]
    return lines


def notes_of(row: ServerRow) -> list[str]:
    notes = []
    if row.is_unused:
        notes.append(f"not used for 14 days (hint: ramherd mcp remove {row.name})")
    if row.last_error:
        notes.append(f"last error: {row.last_error}")
    return notes


def render_status(
    gateway: Mapping[str, Any] | None, rows: Sequence[ServerRow], columns: int, now_s: float
) -> list[str]:
    lines = [describe_gateway(gateway)]
    if not rows:
        return [*lines, *render_list(rows, columns)]
    lines += render_rows([HEAD, *(cells_of(row, now_s) for row in rows)], columns)
    lines += [f"{row.name}: {note}" for row in rows for note in notes_of(row)]
    return [*lines, *describe_savings(rows)]


def describe_gateway(gateway: Mapping[str, Any] | None) -> str:
    if gateway is None:
        return "the gateway does not run: the first agent that needs it starts it"
    return (
        f"gateway: pid {gateway['pid']}, 127.0.0.1:{gateway['port']}, "
        f"{format_size(gateway['rss_bytes'])}, {count(gateway['sessions'], 'session')}"
    )


def describe_savings(rows: Sequence[ServerRow]) -> list[str]:
    saved = sum(row.saved_bytes for row in rows)
    if not saved:
        return []
    copies = sum(max(row.clients - row.processes, 0) for row in rows if row.processes)
    plural = "copies" if copies > 1 else "copy"
    return [f"sharing saves {format_size(saved)}: {copies} {plural} of servers did not start"]


def cells_of(row: ServerRow, now_s: float) -> tuple[str, ...]:
    used = "-" if not row.processes else format_size(row.used_bytes)
    last = row.last_used_at_s
    ago = "never" if last is None else f"{format_age(now_s - last)} ago"
    return row.name, row.share, row.state, str(row.clients), used, str(row.calls), ago


def format_age(age_s: float) -> str:
    """Without fractions of a second."""
    return f"{max(age_s, 0):.0f}s" if age_s < 10 else format_duration(age_s)


def render_rows(rows: Sequence[Sequence[str]], columns: int) -> list[str]:
    widths = [max(len(row[at]) for row in rows) for at in range(len(HEAD))]
    return [
        shorten(
            "  ".join(
                cell.rjust(widths[at]) if at in RIGHT else cell.ljust(widths[at])
                for at, cell in enumerate(row)
            ).rstrip(),
            columns,
        )
        for row in rows
    ]


def shorten(line: str, columns: int) -> str:
    return line if len(line) <= columns else f"{line[: columns - 3]}..."
