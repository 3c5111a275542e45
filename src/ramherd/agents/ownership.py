"""Which processes of a run are the agent's own, and which belong to a tool it uses.

All the CLIs that were tried (claude, codex, gemini, opencode, qwen) give each shell command a
session of its own, and start MCP servers in theirs; what starts itself again stays in it, too.
"""

from collections.abc import Iterable

from ramherd.system.procfs import Proc


def own_pids(procs: Iterable[Proc], first: int) -> frozenset[int]:
    """The run's first process, and what descends from it without leaving its session."""
    rows = {proc.id.pid: proc for proc in procs}
    if first not in rows:
        return frozenset()
    session, own, grown = rows[first].sid, {first}, True
    while grown:
        found = {
            pid
            for pid, proc in rows.items()
            if pid not in own and proc.ppid in own and proc.sid == session
        }
        own |= found
        grown = bool(found)
    return frozenset(own)
