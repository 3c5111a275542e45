"""Warning signs: growing sessions, and too many processes of a kind."""

from collections.abc import Iterator, Mapping, Sequence
from shlex import quote

from ramherd.core.policies import StrayPolicy
from ramherd.core.procid import ProcId
from ramherd.decide.governor.leaks import find_leak
from ramherd.strays.judge.counts import (
    is_node,
    warn_of_nodes,
    warn_of_servers,
    warn_of_subagents,
)
from ramherd.strays.nouns import (
    Details,
    Kind,
    Origin,
    ProcessScene,
    PsRow,
    Recorded,
    Saving,
    Software,
    Verdict,
    WarningSign,
)


def find_warnings(
    rows: Sequence[PsRow], scene: ProcessScene, policy: StrayPolicy, used_percent: float
) -> list[WarningSign]:
    found = [
        *warn_of_sessions(rows, scene, policy), *warn_of_large_servers(rows, policy),
        *warn_of_many_subagents(rows, scene, policy),
    ]  # fmt: skip
    servers = sum(row.kind is Kind.MCP for row in rows)
    nodes = sum(is_node(program.path, program.argv) for program in scene.programs.values())
    left = sum(row.verdict in (Verdict.ORPHAN, Verdict.SUSPECT) and is_left(row) for row in rows)
    found += [*warn_of_servers(servers, policy.warn_mcp), *warn_of_nodes(nodes, policy.warn_node)]
    counts = (
        WarningSign("memory", used_percent, policy.warn_memory_percent),
        WarningSign("outlived", left, 1),
    )
    return found + [sign for sign in counts if sign.number >= sign.limit]


def is_left(row: PsRow) -> bool:
    """What a user started by hand may run without a session."""
    return row.origin is Origin.LEFT


def warn_of_sessions(
    rows: Sequence[PsRow], scene: ProcessScene, policy: StrayPolicy
) -> Iterator[WarningSign]:
    """Only the agent's own memory, not that of its tools, which come and go."""
    for row in rows:
        if row.kind is not Kind.AGENT:
            continue
        seen = scene.sightings.get(row.process.id)
        leak = find_leak(seen.points) if seen is not None else None
        rate = 60 * leak.slope_bytes_per_s if leak is not None else 0.0
        if leak is None and row.memory_bytes < policy.warn_at_bytes:
            continue
        yield WarningSign(
            "grows" if leak is not None else "large", row.memory_bytes, policy.warn_at_bytes,
            row.process.pid, row.software, rate, resume_command(row, rows, scene),
        )  # fmt: skip


def warn_of_large_servers(rows: Sequence[PsRow], policy: StrayPolicy) -> Iterator[WarningSign]:
    """A server without its helpers, such as a browser."""
    for row in rows:
        if row.kind is Kind.MCP and row.memory_bytes > policy.warn_server_bytes:
            yield WarningSign(
                "server", row.memory_bytes, policy.warn_server_bytes, row.process.pid, row.software
            )


def warn_of_many_subagents(
    rows: Sequence[PsRow], scene: ProcessScene, policy: StrayPolicy
) -> Iterator[WarningSign]:
    """Agent processes below an agent, and the subagents that a hook counted inside it."""
    agents = {row.process.pid: row for row in rows if row.kind is Kind.AGENT}
    inside = count_inside(scene.recorded)
    for root in (row for row in agents.values() if row.session == row.process.pid):
        below = [
            row for row in agents.values()
            if row.session == root.process.pid and row is not root and not is_proper(row, agents)
        ]  # fmt: skip
        count = len(below) + inside.get(root.process.id, 0)
        yield from warn_of_subagents(count, policy.warn_subagents, root.process.pid, root.software)


def is_proper(row: PsRow, agents: Mapping[int, PsRow]) -> bool:
    """Whether it is the agent itself below its own wrapper."""
    parent = agents.get(row.process.ppid)
    return parent is not None and parent.software == row.software


def count_inside(recorded: Mapping[ProcId, Recorded]) -> dict[ProcId, int]:
    return {one.owner: one.subagents for one in recorded.values()}


def resume_command(row: PsRow, rows: Sequence[PsRow], scene: ProcessScene) -> str:
    """By the session in the environment of its tools or in a record; otherwise its last session."""
    command = session_command(scene.software[row.process.pid], find_session_id(row, rows, scene))
    cwd = scene.cwds.get(row.process.pid)
    return f"cd {quote(cwd)} && {command}" if command and cwd else command


def session_command(known: Software, session: str) -> str:
    """The id comes from the environment of a process: only a valid id may reach a shell."""
    is_id = bool(session) and all(letter.isalnum() or letter in "-_" for letter in session)
    return known.resume.format(session=session) if is_id and known.resume else known.resume_last


def find_session_id(row: PsRow, rows: Sequence[PsRow], scene: ProcessScene) -> str:
    for one in scene.recorded.values():
        if one.owner == row.process.id and one.session:
            return one.session
    members = (other.process.pid for other in rows if other.session == row.session)
    told = (scene.details.get(pid, Details()).session for pid in members)
    return next((session for session in told if session), "")


def find_savings(rows: Sequence[PsRow], scene: ProcessScene) -> list[Saving]:
    """One server is enough for all copies with the same command line."""
    copies: dict[tuple[str, str, tuple[str, ...]], list[int]] = {}
    for row in rows:
        if row.kind is Kind.MCP and row.verdict is not Verdict.ORPHAN:
            # `node index.js` is another server in another directory.
            program = scene.programs[row.process.pid]
            key = (row.software, program.path, program.argv)
            copies.setdefault(key, []).append(row.memory_bytes)
    found = [
        Saving(name, len(sizes), sum(sizes) - max(sizes))
        for (name, _path, _argv), sizes in copies.items()
        if len(sizes) > 1
    ]
    return sorted(found, key=lambda saving: -saving.saved_bytes)
