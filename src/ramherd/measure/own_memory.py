"""Which processes of a run are the agent's own, and what they hold."""

from collections.abc import Iterable
from pathlib import Path

from ramherd.core.model import ProcId
from ramherd.system.procfs import PROC, TICKS_A_S, read_anonymous_bytes, read_proc

# Wrappers, the agent and its servers are all there by then (the slowest agent took 2.8 s to its
# first request); what begins later is a tool call.
SETTLED_S = 5.0


def read_own_bytes(first: ProcId | None, pids: Iterable[int], proc: Path = PROC) -> int | None:
    """What the processes hold that began with the run; None while others are there as well."""
    if first is None:
        return None
    settled = first.start_ticks + SETTLED_S * TICKS_A_S
    own = 0
    for pid in pids:
        found = read_proc(pid, proc)
        if found is None or not found.is_alive:
            continue
        if found.id.start_ticks > settled:
            return None
        own += read_anonymous_bytes(pid, proc)
    return own
