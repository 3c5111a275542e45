"""One scan of the machine: the running agents, servers and tools, and their owners.

Everything is read once and cheaply; only processes that may be strays are probed: with 1000
processes a scan takes less than 150 ms of CPU (tests/bench/look.py).

    scan = scanner.scan()            # at once
    scan = scanner.scan_closely()    # again after a second, if there are new orphans
"""

import os
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ramherd.config.load import Config
from ramherd.core.model import Event, ProcId, Reason, Why
from ramherd.core.policies import StrayPolicy
from ramherd.core.procid import Process
from ramherd.core.sightings import Sighting, StrayCount
from ramherd.store.events import add_event, read_events
from ramherd.store.protocol import Store
from ramherd.store.sightings import (
    add_counts,
    find_over,
    read_counts,
    read_sightings,
    set_sightings,
)
from ramherd.strays import ancestry
from ramherd.strays.judge.own_servers import (
    find_lost_servers,
    find_servers_of_agents,
    is_cut,
    last_with,
)
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
from ramherd.strays.nouns import (
    Kind,
    ProcessScene,
    PsRow,
    Recorded,
    Verdict,
    WarningSign,
)
from ramherd.strays.read.listeners import read_sockets
from ramherd.strays.read.process_probe import Probe
from ramherd.strays.read.programs import read_programs, speaks_mcp
from ramherd.strays.read.projects import read_projects
from ramherd.strays.render import render_warning
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
# A warning that stays true is repeated once a day.
REPEAT_S = 86400.0
WARNING = "warning"
# A process at work uses CPU within this time; CPU time is counted in ticks of 10 ms.
SECOND_LOOK_S = 1.0


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

    def scan(self, earlier: Scan | None = None) -> Scan:
        """`earlier` was not recorded: it is the last look at processes that no record has."""
        processes = read_table()
        programs = read_programs(processes.values())
        software = {
            pid: found
            for pid, program in programs.items()
            if (found := self.software.recognise(program)) is not None
        }
        sightings = {} if self.store is None else read_sightings(self.store, ancestry.read_place())
        if earlier is not None:
            sightings = {**sightings_of(earlier), **sightings}
        recorded = read_recorded(str(self.runtime))
        tree = ProcessTree(processes, software, sightings)
        probe = Probe(self.software.agents, read_sockets())
        software.update(find_servers_of_agents(tree, programs, probe.read_ends))
        unclaimed = choose_unclaimed(tree)
        cut_off = find_cut_off(unclaimed, tree, probe)
        software.update(find_lost_servers(cut_off, tree, programs, recorded, speaks_mcp))
        marked = set(find_marked(unclaimed, tree, probe, recorded)) | set(cut_off)
        rows = choose_rows(tree, marked)
        wrappers = choose_wrappers(tree, rows)
        details = probe.read(choose_probes(tree, rows, wrappers))
        tags = {one.run for one in details.values()} - {""}
        memory, exact = read_memory(tree, rows | wrappers)
        cwds = read_cwds(rows | wrappers)
        ours = find_ours(processes)
        # This command itself is not worth a row.
        rows -= {pid for pid in ours if tree.kind(pid) is Kind.RAMHERD}
        scene = ProcessScene(
            at_s=time.time(),
            uptime_ticks=read_uptime_ticks(),
            ticks_per_s=TICKS_PER_S,
            uid=os.getuid(),
            ours=ours,
            processes=processes,
            software=software,
            programs=programs,
            details=details,
            memory=memory,
            cwds=cwds,
            projects=read_projects(set(cwds.values())),
            sightings=sightings,
            recorded=recorded,
            runs={} if self.store is None else find_over(self.store, self.runtime, tags),
        )
        return Scan(scene, tree, judge(scene, tree, rows | wrappers, self.policy), exact)

    def scan_closely(self) -> Scan:
        """Looks again if an orphan was never seen before: it may be at work, which only its use of
        the CPU shows.
        """
        first = self.scan()
        if not any(is_new_orphan(row, first.scene) for row in first.rows):
            return first
        time.sleep(SECOND_LOOK_S)
        return self.scan(first)

    def record(self, scan: Scan, ended: Mapping[str, int] | None = None) -> None:
        """`ended` is the number of ended processes of each software."""
        if self.store is not None:
            record_sightings(self.store, self.runtime, scan)
            record_counts(self.store, scan.rows, scan.scene.at_s, ended or {})

    def record_event(self, kind: str, reason: Reason, at_s: float) -> None:
        if self.store is not None:
            add_event(self.store, Event(kind, reason, at_s, herd=""))
            self.store.commit()

    def record_warnings(self, signs: Iterable[WarningSign], at_s: float) -> list[WarningSign]:
        """Records and returns those that were not recorded within the last day."""
        known = set() if self.store is None else read_known_signs(self.store, at_s - REPEAT_S)
        news = [sign for sign in signs if (sign.sign, sign.pid) not in known]
        for sign in news:
            reason = Reason(
                Why.WARNING_SIGN, what=render_warning(sign), sign=sign.sign, pid=sign.pid
            )
            self.record_event(WARNING, reason, at_s)
        return news

    def find_growth(self, scan: Scan, ended: Mapping[str, int] | None = None) -> list[Growth]:
        """Since earlier scans, with this one as the last point."""
        at_s = scan.scene.at_s
        if self.store is None:
            return []
        earlier = [one for one in read_counts(self.store, at_s - TREND_S) if one.at_s < at_s]
        return find_growth([*earlier, *count_strays(scan.rows, at_s, ended or {})])

    def find_warnings(self, scan: Scan) -> list[WarningSign]:
        total, available = read_meminfo()
        used_percent = 100 * (1 - available / total)
        return find_warnings(scan.rows, scan.scene, self.policy, used_percent)


def read_cwds(pids: Iterable[int]) -> dict[int, str]:
    return {pid: cwd for pid in pids if (cwd := read_cwd(pid)) is not None}


def read_known_signs(store: Store, since_s: float) -> set[tuple[str, int]]:
    """The kind and process of each warning that was recorded."""
    events = read_events(store, herd="", since_s=since_s)
    reasons = (event.reason for event in events if event.kind == WARNING)
    return {(str(reason.get("sign")), int(reason.get("pid", 0))) for reason in reasons}


def sightings_of(scan: Scan) -> dict[ProcId, Sighting]:
    return {row.process.id: next_sighting(row, scan.scene) for row in scan.rows}


def is_new_orphan(row: PsRow, scene: ProcessScene) -> bool:
    """Never seen before, or so shortly before that its use of the CPU cannot be told."""
    seen = scene.sightings.get(row.process.id)
    is_new = seen is None or scene.at_s - seen.at_s < SECOND_LOOK_S
    return row.verdict is Verdict.ORPHAN and is_new


def find_marked(
    unclaimed: Iterable[int], tree: ProcessTree, probe: Probe, recorded: Mapping[ProcId, Recorded]
) -> list[int]:
    """Unknown processes without their own parent that an agent or a run of ours started."""
    return [pid for pid in unclaimed if tree.processes[pid].id in recorded or probe.is_marked(pid)]


def find_cut_off(unclaimed: Iterable[int], tree: ProcessTree, probe: Probe) -> list[int]:
    """Unknown processes without their own parent, and with nobody at the other side of their stdin
    and stdout; of npx, `sh -c` and the server below them, the server.
    """
    found = []
    for pid in unclaimed:
        ends = probe.read_ends(pid)
        if is_cut(ends):
            found.append(last_with(ends[0][1], pid, tree, probe.read_ends))
    return found


def read_recorded(runtime: str) -> dict[ProcId, Recorded]:
    """The newest record of each process wins. A server is one although a hook, which does not know
    servers, recorded it later.
    """
    found: dict[ProcId, Recorded] = {}
    all_servers: set[tuple[int, int]] = set()
    for agent, session, subagents, root, below, servers in ancestry.read_records(runtime):
        all_servers |= servers
        recorded = Recorded(agent, ProcId(*root), session, subagents)
        for one in below:
            found[ProcId(*one)] = recorded._replace(is_server=one in all_servers)
        found[ProcId(*root)] = recorded
    return found


def find_ours(processes: Mapping[int, Process]) -> frozenset[int]:
    """This process and its ancestors."""
    found, pid = set(), os.getpid()
    while pid in processes and pid not in found:
        found.add(pid)
        pid = processes[pid].ppid
    return frozenset(found)


def read_memory(tree: ProcessTree, pids: Iterable[int]) -> tuple[dict[int, int], frozenset[int]]:
    """Agents and servers before tools, and before the jobs of ramherd, which pens measure."""
    memory: dict[int, int] = {}
    exact = set()
    end_s = time.process_time() + PSS_CPU_S

    def order(pid: int) -> tuple[bool, int]:
        is_last = tree.kind(pid) in (None, Kind.RAMHERD)
        return is_last, -tree.processes[pid].resident_bytes

    for pid in sorted(pids, key=order):
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
        keep=config["stray_keep"],
    )


def record_sightings(store: Store, runtime: Path, scan: Scan) -> None:
    """Records sightings for the next scan, and the trees of agents for the time after their end."""
    scene = scan.scene
    set_sightings(store, ancestry.read_place(), sightings_of(scan), scene.at_s)
    for root, members in trees_of_agents(scan):
        below = [(proc.pid, proc.start_ticks) for proc in members]
        servers = {
            (proc.pid, proc.start_ticks) for proc in members if scan.tree.kind(proc.pid) is Kind.MCP
        }
        known = [scene.recorded.get(ProcId(*one)) for one in below]
        new_servers = servers - {
            one
            for one, seen in zip(below, known, strict=True)
            if seen is not None and seen.is_server
        }
        if None in known or new_servers:
            agent = scene.software[root.pid].name
            recorded = scene.recorded.get(root, Recorded(agent, root))
            start = (root.pid, root.start_ticks)
            line = (agent, recorded.session, recorded.subagents, start, below, servers)
            ancestry.append(str(runtime), line)


def trees_of_agents(scan: Scan) -> Iterable[tuple[ProcId, list[ProcId]]]:
    """Live agents, with all processes below them."""
    for row in scan.rows:
        if row.kind is Kind.AGENT and row.session == row.process.pid:
            below = [scan.scene.processes[pid].id for pid in scan.tree.below(row.process.pid)]
            if below and row.verdict is not Verdict.ORPHAN:
                yield row.process.id, below


def record_counts(
    store: Store, rows: Sequence[PsRow], at_s: float, ended: Mapping[str, int]
) -> None:
    if not ended and read_counts(store, at_s - COUNT_EVERY_S):
        return
    add_counts(store, count_strays(rows, at_s, ended), at_s)


def count_strays(rows: Sequence[PsRow], at_s: float, ended: Mapping[str, int]) -> list[StrayCount]:
    """For the trend: agents, servers and strays, and how many of them were ended. A scan that found
    none is a point too.
    """
    names = {row.software for row in rows if is_counted(row)} | set(ended)
    counts = [StrayCount(at_s, "", 0, 0, 0)]
    for name in sorted(names):
        own = [row for row in rows if row.software == name and is_counted(row)]
        strays = sum(row.verdict is Verdict.ORPHAN for row in own)
        counts.append(StrayCount(at_s, name, len(own), strays, ended.get(name, 0)))
    return counts


def is_counted(row: PsRow) -> bool:
    return row.kind in (Kind.AGENT, Kind.MCP) or row.verdict is Verdict.ORPHAN
