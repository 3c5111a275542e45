"""Agents and MCP servers that are running."""

from collections import Counter
from collections.abc import Iterator, Sequence

from ramherd.core.units import MIB, count, format_size
from ramherd.doctor.facts import Processes, ProcRow
from ramherd.doctor.findings import Finding, Severity

MUCH_SHARE = 0.6
# An idle agent does not grow; at this rate it grows a GiB in four hours.
GROWTH_BYTES_PER_HOUR = 256 * MIB
SHOWN = 3


def check_processes(processes: Processes) -> Iterator[Finding]:
    yield check_total(processes)
    yield check_copies([row for row in processes.rows if row.kind == "mcp"])
    yield check_orphans([row for row in processes.rows if row.orphan])
    yield check_growing(processes.rows)


def check_total(processes: Processes) -> Finding:
    rows = [row for row in processes.rows if row.kind in ("agent", "mcp")]
    agents = sum(row.kind == "agent" for row in rows)
    used, most = sum(row.used_bytes for row in rows), processes.machine.most_bytes
    what = (
        f"{count(agents, 'agent')} and {count(len(rows) - agents, 'MCP server')} use "
        f"{format_size(used)} of {format_size(most)}"
    )
    numbers = {
        "agents": agents, "servers": len(rows) - agents, "used_bytes": used, "most_bytes": most,
    }  # fmt: skip
    if used > MUCH_SHARE * most:
        why = "nobody counts what they will need together; ramherd does, for those it starts"
        return Finding("running", Severity.WARNING, what, why, "ramherd ps", numbers=numbers)
    return Finding("running", Severity.OK, what, numbers=numbers)


def check_copies(servers: Sequence[ProcRow]) -> Finding:
    counts = Counter((row.name, row.command) for row in servers)
    extra = {key: count for key, count in counts.items() if count > 1}
    if not extra:
        return Finding("mcp-copies", Severity.OK, "no MCP server runs twice")
    held = sum(row.used_bytes for row in servers if (row.name, row.command) in extra)
    most = sorted(extra.items(), key=lambda item: (-item[1], item[0]))[:SHOWN]
    names = ", ".join(f"{count} x {name}" for (name, _command), count in most)
    return Finding(
        "mcp-copies", Severity.HINT, f"{names}: {format_size(held)}",
        "each session starts its own; most servers can be shared",
        "ramherd mcp enable claude", numbers={"copies": sum(extra.values()), "used_bytes": held},
    )  # fmt: skip


def check_orphans(orphans: Sequence[ProcRow]) -> Finding:
    if not orphans:
        return Finding("orphans", Severity.OK, "no orphan of an agent")
    held, first = sum(row.used_bytes for row in orphans), orphans[0]
    return Finding(
        "orphans", Severity.WARNING, f"{count(len(orphans), 'orphan')}: {format_size(held)}",
        f"no program will use them again; {first.name} (pid {first.pid}): {first.orphan}",
        "ramherd reap --yes", numbers={"orphans": len(orphans), "used_bytes": held},
    )  # fmt: skip


def check_growing(rows: Sequence[ProcRow]) -> Finding:
    growing = [row for row in rows if (row.growth_bytes_per_hour or 0) > GROWTH_BYTES_PER_HOUR]
    if not growing:
        return Finding("growing", Severity.OK, "no session is known to grow")
    worst = max(growing, key=lambda row: row.growth_bytes_per_hour or 0)
    rate = format_size(worst.growth_bytes_per_hour or 0)
    return Finding(
        "growing", Severity.WARNING,
        f"{count(len(growing), 'growing session')}: {worst.name} (pid {worst.pid}) by {rate}/h",
        "it grows until memory runs out: restart it between two prompts and resume its session",
        "claude --resume" if worst.name == "claude" else "ramherd ps",
        numbers={"sessions": len(growing), "pid": worst.pid},
    )  # fmt: skip
