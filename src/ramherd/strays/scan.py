"""One scan of the machine: the running agents, servers and tools, and their owners.

Everything is read once and cheaply; only processes that may be strays are probed: with 1000
processes a scan takes less than 150 ms of CPU (tests/bench/look.py).
"""

import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ramherd.config.load import Config
from ramherd.core.model import Event, ProcId, Reason
from ramherd.core.policies import StrayPolicy
from ramherd.core.procid import Process
from ramherd.core.sightings import StrayCount
from ramherd.store.events import add_event
from ramherd.store.protocol import Store
from ramherd.store.sightings import (
    add_counts,
    find_over,
    read_counts,
    read_sightings,
    set_sightings,
)
from ramherd.strays import ancestry
from ramherd.strays.judge.process_tree import (
    ProcessTree,
    choose_probes,
    choose_rows,
    choose_unclaimed,
    choose_wrappers,
)
from ramherd.strays.judge.software import SoftwareTable
from ramherd.strays.judge.trends import Growth, find_growth, next_sighting
from ramherd.strays.judge.verdict import judge
from ramherd.strays.judge.warnings import find_warnings
from ramherd.strays.nouns import Kind, ProcessScene, PsRow, Recorded, Verdict, WarningSign
from ramherd.strays.read.listeners import read_sockets
from ramherd.strays.read.process_probe import Probe
from ramherd.strays.read.programs import read_programs
from ramherd.system.procfs import (
    TICKS_PER_S,
    read_anonymous_bytes,
    read_cwd,
    read_meminfo,
    read_pss_bytes,
    read_table,
    read_uptime_ticks,
)

# Enough for a trend; `ps --watch` scans every two seconds.
COUNT_EVERY_S = 300.0
TREND_S = 6 * 3600.0
# smaps_rollup of 500 MB takes 13 ms: the largest processes first, the rest by anonymous memory.
PSS_CPU_S = 0.05


@dataclass(frozen=True)
class Scan:
    scene: ProcessScene
    tree: ProcessTree
    rows: list[PsRow]
    # Pids whose memory is the proportional share (PSS); for the others it is the anonymous memory.
    exact: frozenset[int]


@dataclass(frozen=True)
class Scanner:
    """Scans with the user's settings, and records each scan for later ones.

    Without a store there are no earlier scans or runs, and nothing is recorded.
    """

    policy: StrayPolicy
    software: SoftwareTable
    runtime: Path
    store: Store | None

    def scan(self) -> Scan:
        processes = read_table()
        programs = read_programs(processes.values())
        software = {
            pid: found
            for pid, program in programs.items()
            if (found := self.software.recognise(program)) is not None
        }
        sightings = {} if self.store is None else read_sightings(self.store, ancestry.read_place())
        recorded = read_recorded(str(self.runtime))
        tree = ProcessTree(processes, software, sightings)
        probe = Probe(self.software.agents, read_sockets())
        rows = choose_rows(tree, find_marked(tree, probe, recorded))
        wrappers = choose_wrappers(tree, rows)
        details = probe.read(choose_probes(tree, rows, wrappers))
        tags = {one.run for one in details.values()} - {""}
        memory, exact = read_memory(processes, rows | wrappers)
        scene = ProcessScene(
            at_s=time.time(),
            uptime_ticks=read_uptime_ticks(),
            ticks_per_s=TICKS_PER_S,
            uid=os.getuid(),
            ours=find_ours(processes),
            processes=processes,
            software=software,
            programs=programs,
            details=details,
            memory=memory,
            cwds=read_cwds(pid for pid in rows if tree.kind(pid) is Kind.AGENT),
            sightings=sightings,
            recorded=recorded,
            runs={} if self.store is None else find_over(self.store, self.runtime, tags),
        )
        return Scan(scene, tree, judge(scene, tree, rows | wrappers, self.policy), exact)

    def record(self, scan: Scan, ended: Mapping[str, int] | None = None) -> None:
        """`ended` is the number of ended processes of each software."""
        if self.store is not None:
            record_sightings(self.store, self.runtime, scan)
            record_counts(self.store, scan.rows, scan.scene.at_s, ended or {})

    def record_event(self, kind: str, reason: Reason, at_s: float) -> None:
        if self.store is not None:
            add_event(self.store, Event(kind, reason, at_s, herd=""))
            self.store.commit()

    def find_growth(self, at_s: float) -> list[Growth]:
        return [] if self.store is None else find_growth(read_counts(self.store, at_s - TREND_S))

    def find_warnings(self, scan: Scan) -> list[WarningSign]:
        total, available = read_meminfo()
        used_percent = 100 * (1 - available / total)
        return find_warnings(scan.rows, scan.scene, self.policy, used_percent)


def read_cwds(pids: Iterable[int]) -> dict[int, str]:
    return {pid: cwd for pid in pids if (cwd := read_cwd(pid)) is not None}


def find_marked(tree: ProcessTree, probe: Probe, recorded: Mapping[ProcId, Recorded]) -> set[int]:
    """Unknown processes without their own parent that an agent or a run of ours started."""
    return {
        pid
        for pid in choose_unclaimed(tree)
        if tree.processes[pid].id in recorded or probe.is_marked(pid)
    }


def read_recorded(runtime: str) -> dict[ProcId, Recorded]:
    """The newest record of each process wins."""
    found = {}
    for agent, session, subagents, root, below in ancestry.read_records(runtime):
        recorded = Recorded(agent, ProcId(*root), session, subagents)
        found.update({ProcId(*one): recorded for one in below})
        found[ProcId(*root)] = recorded
    return found


def find_ours(processes: Mapping[int, Process]) -> frozenset[int]:
    """This process and its ancestors."""
    found, pid = set(), os.getpid()
    while pid in processes and pid not in found:
        found.add(pid)
        pid = processes[pid].ppid
    return frozenset(found)


def read_memory(
    processes: Mapping[int, Process], pids: Iterable[int]
) -> tuple[dict[int, int], frozenset[int]]:
    memory: dict[int, int] = {}
    exact = set()
    end_s = time.process_time() + PSS_CPU_S
    for pid in sorted(pids, key=lambda pid: -processes[pid].resident_bytes):
        size = read_pss_bytes(pid) if time.process_time() < end_s else None
        if size is not None:
            exact.add(pid)
        memory[pid] = size if size is not None else read_anonymous_bytes(pid)
    return memory, frozenset(exact)


def make_policy(config: Config) -> StrayPolicy:
    return StrayPolicy(
        grace_s=config["stray_grace"],
        warn_at_bytes=config["warn_at"],
        warn_subagents=config["warn_subagents"],
        warn_mcp=config["warn_mcp"],
        warn_node=config["warn_node"],
        warn_memory_percent=config["warn_memory"],
    )


def record_sightings(store: Store, runtime: Path, scan: Scan) -> None:
    """Records sightings for the next scan, and the trees of agents for the time after their end."""
    scene = scan.scene
    sightings = {row.process.id: next_sighting(row, scene) for row in scan.rows}
    set_sightings(store, ancestry.read_place(), sightings, scene.at_s)
    for root, members in trees_of_agents(scan):
        below = [(proc.pid, proc.start_ticks) for proc in members]
        if any(ProcId(*one) not in scene.recorded for one in below):
            agent = scene.software[root.pid].name
            recorded = scene.recorded.get(root, Recorded(agent, root))
            start = (root.pid, root.start_ticks)
            line = (agent, recorded.session, recorded.subagents, start, below)
            ancestry.append(str(runtime), line)


def trees_of_agents(scan: Scan) -> Iterable[tuple[ProcId, list[ProcId]]]:
    """Live agents, with all processes below them."""
    for row in scan.rows:
        if row.kind is Kind.AGENT and row.session == row.process.pid:
            below = [scan.scene.processes[pid].id for pid in scan.tree.below(row.process.pid)]
            if below and row.verdict is not Verdict.ORPHAN:
                yield row.process.id, below


def record_counts(
    store: Store, rows: Iterable[PsRow], at_s: float, ended: Mapping[str, int]
) -> None:
    if not ended and read_counts(store, at_s - COUNT_EVERY_S):
        return
    add_counts(store, count_strays(list(rows), at_s, ended), at_s)


def count_strays(rows: Iterable[PsRow], at_s: float, ended: Mapping[str, int]) -> list[StrayCount]:
    """For the trend: agents and servers, and how many of them were ended."""
    names = {row.software for row in rows if row.kind in (Kind.AGENT, Kind.MCP)} | set(ended)
    counts = []
    for name in sorted(names):
        own = [row for row in rows if row.software == name]
        strays = sum(row.verdict is Verdict.ORPHAN for row in own)
        counts.append(StrayCount(at_s, name, len(own), strays, ended.get(name, 0)))
    return counts
