"""Which processes of a run are the agent's own, and their memory; the rest belongs to its tools.

All tested CLIs (claude, codex, gemini, opencode, qwen) give each shell command a session of its
own, and start MCP servers in the agent's session; an agent that restarts itself also stays in it.
For any other program, only the start times of its processes are known.
"""

from collections.abc import Iterable

from ramherd.core.procid import Process, ProcId
from ramherd.system.proc_stat import PROC, Root
from ramherd.system.procfs import TICKS_PER_S, read_anonymous_bytes, read_process

# Wrappers, the agent and its servers have started by then (the slowest agent took 2.8 s to its
# first request); a process that starts later is a tool call.
SETTLED_S = 5.0


def read_agent_bytes(first: ProcId | None, pids: Iterable[int], proc: Root = PROC) -> int | None:
    """The memory of the processes of a known CLI, without those of its tools."""
    if first is None:
        return None
    procs = [found for pid in pids if (found := read_process(pid, proc)) is not None]
    return sum(read_anonymous_bytes(pid, proc) for pid in own_pids(procs, first.pid))


def own_pids(procs: Iterable[Process], first: int) -> frozenset[int]:
    """The run's first process, and its descendants that have not left its session."""
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


def read_own_bytes(first: ProcId | None, pids: Iterable[int], proc: Root = PROC) -> int | None:
    """The memory of the processes that started with the run; None while there are others."""
    if first is None:
        return None
    settled = first.start_ticks + SETTLED_S * TICKS_PER_S
    own = 0
    for pid in pids:
        found = read_process(pid, proc)
        if found is None or not found.is_alive:
            continue
        if found.id.start_ticks > settled:
            return None
        own += read_anonymous_bytes(pid, proc)
    return own
