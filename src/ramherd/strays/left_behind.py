"""What the tools of a session left behind, found and ended at once.

`reap` waits for the grace, because it only sees that nobody can want a process any more. Here the
agent itself reports that a session or a subagent is over. The proof is in `judge/proofs.py`, and
what speaks against ending a process speaks against it here too.
"""

import os
import time

from ramherd.core.model import ProcId
from ramherd.strays.judge.process_tree import ProcessTree
from ramherd.strays.judge.proofs import EndedSession, choose_adopted, is_left_behind, is_tool_of
from ramherd.strays.judge.software import AGENTS
from ramherd.strays.nouns import ProcessScene
from ramherd.strays.read.listeners import read_sockets
from ramherd.strays.read.process_probe import Probe, read_environ
from ramherd.strays.read.process_table import TICKS_PER_S, read_table, read_uptime_ticks
from ramherd.system.pidfd import close_processes, end_processes, open_processes

# A process that is ended may start another one at its end.
ROUNDS = 3


def find_left_behind(ended: EndedSession) -> list[ProcId]:
    """Each with all below it, parents first."""
    processes = read_table()
    tree = ProcessTree(processes, {}, {})
    tops = [
        pid
        for pid in choose_adopted(tree, ended, TICKS_PER_S)
        if is_tool_of(read_environ(pid) or {}, AGENTS, ended.id)
    ]
    if not tops:
        return []
    families = [[top, *tree.below(top)] for top in tops]
    scene = ProcessScene(
        at_s=time.time(),
        uptime_ticks=read_uptime_ticks(),
        ticks_per_s=TICKS_PER_S,
        uid=os.getuid(),
        ours=frozenset({os.getpid(), *tree.above(os.getpid())}),
        processes=processes,
        software={},
        programs={},
        details=Probe(AGENTS, read_sockets()).read(pid for family in families for pid in family),
    )
    left = [family for family in families if is_left_behind(family, scene)]
    return [processes[pid].id for family in left for pid in family]


def end_left_behind(ended: EndedSession, grace_s: float) -> int:
    """How many processes were ended: TERM, the grace, KILL."""
    count = 0
    for _round in range(ROUNDS):
        opened = open_processes(find_left_behind(ended))
        if not opened:
            break
        try:
            count += len(end_processes(opened, grace_s))
        finally:
            close_processes(opened)
    return count
