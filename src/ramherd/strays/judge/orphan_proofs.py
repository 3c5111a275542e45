"""Proofs that a process is not needed any more.

A proof is about the process itself: its client, its run or its agent is gone. A parent that is init
proves nothing, and neither does a name. `protection.py` has the reasons to spare a process
all the same.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ramherd.core.policies import StrayPolicy
from ramherd.core.procid import ProcId
from ramherd.strays.judge.process_tree import ProcessTree
from ramherd.strays.judge.protection import (
    NOTHING,
    find_family,
    find_protection,
    is_server,
)
from ramherd.strays.nouns import Details, Evidence, Fact, Kind, PeerState, ProcessScene, Software


def find_proofs(pid: int, scene: ProcessScene, tree: ProcessTree) -> list[Evidence]:
    """The proofs for an inherited process."""
    details = scene.details.get(pid, NOTHING)
    if not details.readable:
        return []
    found = []
    if scene.runs.get(details.run) is True:
        found.append(Evidence(Fact.RUN_OVER, details.run))
    if is_cut_off(details) and is_server(pid, scene, tree):
        found.append(Evidence(Fact.STDIN_GONE))
    if tree.kind(pid) is Kind.AGENT:
        return found + find_wrapper(pid, details, tree)
    return found + find_owner(pid, details, scene)


def is_cut_off(details: Details) -> bool:
    """A stdio server has both ends with one client. A process that reads from a pipe and prints to
    a file is a batch job, and may be at work.
    """
    return details.stdin is PeerState.GONE and details.stdout is PeerState.GONE


def find_wrapper(pid: int, details: Details, tree: ProcessTree) -> list[Evidence]:
    """An agent whose wrapper died continues alone. Below an agent of the same kind the wrapper's
    variable may be inherited, and proves nothing.
    """
    name = tree.software[pid].name
    if name in details.wrapped and name not in details.marks:
        return [Evidence(Fact.WRAPPER_GONE, name)]
    return []


def find_owner(pid: int, details: Details, scene: ProcessScene) -> list[Evidence]:
    """A tool whose agent is gone: its output has no reader, or goes to the agent's own file. A user
    may wait for a tool that prints to another file.
    """
    if not (is_unread(details) or details.prints_to_agent):
        return []
    if (gone := find_gone_agent(pid, details, scene)) is not None:
        return [gone]
    return [Evidence(Fact.READER_GONE, details.marks[0])] if is_left_unread(details) else []


def is_unread(details: Details) -> bool:
    return details.stdout is PeerState.GONE and details.stderr is not PeerState.LIVE


def is_left_unread(details: Details) -> bool:
    return bool(details.marks) and is_unread(details)


def find_gone_agent(pid: int, details: Details, scene: ProcessScene) -> Evidence | None:
    """By the records of ancestry, else by the pid that the agent gave to its tools: gone if no
    process has that pid, or a younger one has it.
    """
    process = scene.processes[pid]
    if (recorded := scene.recorded.get(process.id)) is not None:
        owner = scene.processes.get(recorded.owner.pid)
        is_there = owner is not None and owner.id == recorded.owner
        return None if is_there else Evidence(Fact.OWNER_GONE, recorded.agent, recorded.owner.pid)
    if details.owner_pid and details.marks:
        owner = scene.processes.get(details.owner_pid)
        if owner is None or owner.id.start_ticks > process.id.start_ticks:
            return Evidence(Fact.OWNER_GONE, details.marks[0], details.owner_pid)
    return None


class EndedSession(NamedTuple):
    """The part that an agent reports as ended: the session `id` (none: any session) below its
    process `root`, or its processes from `since_s` on and before `before_s`, in seconds since boot.
    """

    root: ProcId
    id: str = ""
    since_s: float = 0.0
    before_s: float | None = None


def choose_adopted(tree: ProcessTree, ended: EndedSession, ticks_per_s: int) -> list[int]:
    """Children of the processes above a session. A tool of the session among them lost its own
    parent: none of these processes starts tools.
    """
    above, pid = set(), ended.root.pid
    # If processes of others are hidden (hidepid), the last one is not in the table.
    while pid in tree.processes and (pid := tree.processes[pid].ppid) not in above:
        above.add(pid)
    return [
        pid
        for pid, process in tree.processes.items()
        if process.ppid in above - {0}
        and pid not in above
        and process.id != ended.root
        and is_in_time(process.id.start_ticks / ticks_per_s, ended)
    ]


def is_in_time(started_s: float, ended: EndedSession) -> bool:
    """A later process may belong to another subagent that still runs."""
    return ended.since_s <= started_s and (ended.before_s is None or started_s < ended.before_s)


def is_tool_of(environ: Mapping[str, str], agents: Iterable[Software], session: str) -> bool:
    """An agent gives the id of its session to its tools, and a child inherits it."""
    ids = [environ[one.session_in] for one in agents if one.session_in in environ]
    return session in ids if session else bool(ids)


def choose_left_behind(
    tops: Iterable[int], scene: ProcessScene, tree: ProcessTree, policy: StrayPolicy
) -> list[list[int]]:
    """The trees of these processes that nothing protects, parents first. A process of a run is
    left to the run, which ends with all its processes.
    """
    found = []
    for top in tops:
        family = find_family(top, scene, tree)
        in_run = any(scene.details.get(pid, NOTHING).run for pid in family.members)
        proofs = find_proofs(top, scene, tree)
        if not in_run and not find_protection(family, proofs, scene, tree, policy):
            found.append([top, *tree.below(top)])
    return found
