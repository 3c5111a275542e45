"""Finds and ends processes that the tools of a session left behind, at once.

`reap` waits for the grace, because it only finds that a process is not needed any more. Here the
agent itself reports that a session or a subagent is over. The proof is in `judge/orphan_proofs.py`,
and the objections to ending a process hold here too. Mostly nothing is left behind, and an agent
waits for the answer, so modules that only a find needs are imported after it.
"""

import os
import time
from collections.abc import Sequence

from ramherd.core.procid import ProcId
from ramherd.strays.judge.orphan_proofs import (
    EndedSession,
    choose_adopted,
    is_left_behind,
    is_tool_of,
)
from ramherd.strays.judge.process_tree import ProcessTree
from ramherd.strays.judge.software import AGENTS
from ramherd.strays.nouns import ProcessScene
from ramherd.system.procfs import TICKS_PER_S, read_environ, read_table, read_uptime_ticks

# A process may start another one at its end.
ROUNDS = 3


def find_left_behind(ended: EndedSession) -> list[ProcId]:
    """Each with all processes below it, parents first."""
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
    scene = read_scene(tree, [pid for family in families for pid in family])
    left = [family for family in families if is_left_behind(family, scene)]
    return [processes[pid].id for family in left for pid in family]


def read_scene(tree: ProcessTree, pids: Sequence[int]) -> ProcessScene:
    from ramherd.strays.read.listeners import read_sockets  # noqa: PLC0415
    from ramherd.strays.read.process_probe import Probe  # noqa: PLC0415

    return ProcessScene(
        at_s=time.time(),
        uptime_ticks=read_uptime_ticks(),
        ticks_per_s=TICKS_PER_S,
        uid=os.getuid(),
        ours=frozenset({os.getpid(), *tree.above(os.getpid())}),
        processes=tree.processes,
        software={},
        programs={},
        details=Probe(AGENTS, read_sockets()).read(pids),
    )


def end_left_behind(ended: EndedSession, grace_s: float) -> int:
    """Returns the number of ended processes: TERM, the grace, KILL."""
    count = 0
    for _round in range(ROUNDS):
        found = find_left_behind(ended)
        if not found:
            break
        count += end(found, ended, grace_s)
    return count


def end(found: Sequence[ProcId], ended: EndedSession, grace_s: float) -> int:
    """Opened by pidfd first, then judged again: the signalled process is the judged one."""
    from ramherd.system.pidfd import close_processes, end_processes, open_processes  # noqa: PLC0415

    opened = open_processes(found)
    try:
        again = set(find_left_behind(ended))
        chosen = {proc: fd for proc, fd in opened.items() if proc in again}
        return len(end_processes(chosen, grace_s))
    finally:
        close_processes(opened)
