"""Finds and ends processes that the tools of a session left behind.

`reap` waits for the grace, because it only finds that a process is not needed any more. Here the
agent itself reports that a session or a subagent is over. What protects a process from `reap`
protects it here too (`judge/protection.py`): a process at work, or in use, is left to its user.
Mostly nothing is left behind, and an agent waits for the answer, so modules that only a find needs
are imported after it.
"""

import os
import time
from collections.abc import Sequence
from typing import NamedTuple

from ramherd.core.policies import StrayPolicy
from ramherd.core.procid import ProcId
from ramherd.core.sightings import Sighting
from ramherd.strays.judge.orphan_proofs import (
    EndedSession,
    choose_adopted,
    choose_left_behind,
    is_tool_of,
)
from ramherd.strays.judge.process_tree import ProcessTree
from ramherd.strays.judge.software import AGENTS
from ramherd.strays.nouns import ProcessScene
from ramherd.system.procfs import (
    TICKS_PER_S,
    read_cwd,
    read_environ,
    read_table,
    read_uptime_ticks,
)

# A process may start another one at its end.
ROUNDS = 3
# A process at work uses CPU within this time; CPU time is counted in ticks of 10 ms.
SECOND_LOOK_S = 0.5


class LeftBehind(NamedTuple):
    """The processes that were found, parents first, and a sighting of each for the second look."""

    found: list[ProcId]
    sightings: dict[ProcId, Sighting]


def find_left_behind(
    ended: EndedSession, policy: StrayPolicy, earlier: LeftBehind | None = None
) -> LeftBehind:
    """Each with all processes below it. Use of the CPU is counted from the `earlier` look on."""
    tree = ProcessTree(read_table(), {}, {})
    tops = [
        pid
        for pid in choose_adopted(tree, ended, TICKS_PER_S)
        if is_tool_of(read_environ(pid) or {}, AGENTS, ended.id)
    ]
    if not tops:
        return LeftBehind([], {})
    members = [pid for top in tops for pid in (top, *tree.below(top))]
    scene = read_scene(tree, members, {} if earlier is None else earlier.sightings)
    known = ProcessTree(tree.processes, scene.software, {})
    families = choose_left_behind(tops, scene, known, policy)
    found = [tree.processes[pid].id for family in families for pid in family]
    return LeftBehind(found, {proc: sight(proc, scene) for proc in found})


def sight(proc: ProcId, scene: ProcessScene) -> Sighting:
    process, now = scene.processes[proc.pid], scene.at_s
    return Sighting(now, now, process.ppid, process.used_ticks, now, 0)


def read_scene(
    tree: ProcessTree, pids: Sequence[int], sightings: dict[ProcId, Sighting]
) -> ProcessScene:
    from ramherd.strays.judge.software import SoftwareTable  # noqa: PLC0415
    from ramherd.strays.read.listeners import read_sockets  # noqa: PLC0415
    from ramherd.strays.read.process_probe import Probe  # noqa: PLC0415
    from ramherd.strays.read.programs import read_programs  # noqa: PLC0415

    programs, known = read_programs(tree.processes[pid] for pid in pids), SoftwareTable()
    return ProcessScene(
        at_s=time.time(),
        uptime_ticks=read_uptime_ticks(),
        ticks_per_s=TICKS_PER_S,
        uid=os.getuid(),
        ours=frozenset({os.getpid(), *tree.above(os.getpid())}),
        processes=tree.processes,
        software={
            pid: found
            for pid, program in programs.items()
            if (found := known.recognise(program)) is not None
        },
        programs=programs,
        details=Probe(AGENTS, read_sockets()).read(pids),
        cwds={pid: cwd for pid in pids if (cwd := read_cwd(pid)) is not None},
        sightings=sightings,
    )


def end_left_behind(ended: EndedSession, grace_s: float, policy: StrayPolicy) -> int:
    """Returns the number of ended processes: TERM, the grace, KILL."""
    count = 0
    for _round in range(ROUNDS):
        left = find_left_behind(ended, policy)
        if not left.found:
            break
        count += end(left, ended, grace_s, policy)
    return count


def end(left: LeftBehind, ended: EndedSession, grace_s: float, policy: StrayPolicy) -> int:
    """Opened by pidfd first, then judged again: the signalled process is the judged one."""
    from ramherd.system.pidfd import close_processes, end_processes, open_processes  # noqa: PLC0415

    opened = open_processes(left.found)
    try:
        time.sleep(SECOND_LOOK_S)
        again = set(find_left_behind(ended, policy, left).found)
        chosen = {proc: fd for proc, fd in opened.items() if proc in again}
        return len(end_processes(chosen, grace_s))
    finally:
        close_processes(opened)
