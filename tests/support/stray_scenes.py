"""Scenes of processes for decisions on strays, written in a line each."""

from collections.abc import Mapping
from typing import Any

from ramherd.core.model import ProcId
from ramherd.core.policies import StrayPolicy
from ramherd.core.procid import Process
from ramherd.core.sightings import Sighting
from ramherd.strays.judge.orphan_proofs import is_cut_off
from ramherd.strays.judge.process_tree import (
    ProcessTree,
    choose_rows,
    choose_unclaimed,
    choose_wrappers,
)
from ramherd.strays.judge.software import SoftwareTable
from ramherd.strays.judge.verdict import judge
from ramherd.strays.nouns import Details, PeerState, ProcessScene, PsRow, Recorded, RunningProgram

NOW = 100_000.0
UPTIME_TICKS = 1_000_000
UID = 1000
CUT_OFF = Details(stdin=PeerState.GONE, stdout=PeerState.GONE, stderr=PeerState.NONE, stdin_inode=7)
TALKING = Details(stdin=PeerState.LIVE, stdout=PeerState.LIVE, stderr=PeerState.NONE, stdin_inode=8)
ALONE = Details(stdin=PeerState.NONE, stdout=PeerState.NONE, stderr=PeerState.NONE)
INIT = "/sbin/init"


def process(pid: int, ppid: int = 1, **changes: Any) -> Process:
    """In a session of its own, on no terminal, started in the order of pids."""
    made = Process(ProcId(pid, pid), f"p{pid}", "S", ppid, pid, pid, 0, UID, 0, 0)
    return made._replace(**changes)


class Machine:
    """Processes with what they run: `add(7, "gopls", CUT_OFF)`."""

    def __init__(self) -> None:
        self.processes: dict[int, Process] = {}
        self.programs: dict[int, RunningProgram] = {}
        self.details: dict[int, Details] = {}
        self.sightings: dict[ProcId, Sighting] = {}
        self.recorded: dict[ProcId, Recorded] = {}
        self.runs: dict[str, bool] = {}
        self.memory: dict[int, int] = {}
        self.cwds: dict[int, str] = {}
        self.ours: frozenset[int] = frozenset()
        self.add(1, "init", ppid=0, uid=0)

    def add(
        self, pid: int, program: str, details: Details = ALONE, ppid: int = 1, **changes: Any
    ) -> Process:
        self.processes[pid] = process(pid, ppid, name=program[:15], **changes)
        self.programs[pid] = RunningProgram(f"/usr/bin/{program}", (program,))
        self.details[pid] = details
        return self.processes[pid]

    def seen(self, pid: int, **changes: Any) -> None:
        old = self.processes[pid]
        made = Sighting(NOW - 100, NOW - 100, old.ppid, old.cpu_ticks, NOW - 100, 0)
        self.sightings[old.id] = made._replace(**changes)

    def look(self, policy: StrayPolicy | None = None) -> Mapping[int, PsRow]:
        scene, tree = self.scene(), self.tree()
        marked = {pid for pid, one in self.details.items() if one.marks or one.run}
        marked |= {pid for pid in choose_unclaimed(tree) if is_cut_off(self.details[pid])}
        marked |= {proc.pid for proc in self.recorded if proc.pid in self.processes}
        rows = choose_rows(tree, marked)
        pids = rows | choose_wrappers(tree, rows)
        return {row.process.pid: row for row in judge(scene, tree, pids, policy or StrayPolicy())}

    def tree(self) -> ProcessTree:
        return ProcessTree(self.processes, self.software(), self.sightings)

    def software(self) -> dict[int, Any]:
        known = SoftwareTable()
        found = {pid: known.recognise(program) for pid, program in self.programs.items()}
        return {pid: one for pid, one in found.items() if one is not None}

    def scene(self) -> ProcessScene:
        return ProcessScene(
            at_s=NOW, uptime_ticks=UPTIME_TICKS, ticks_per_s=100, uid=UID, ours=self.ours,
            processes=self.processes, software=self.software(), programs=self.programs,
            details=self.details, memory=self.memory, sightings=self.sightings,
            recorded=self.recorded, runs=self.runs, cwds=self.cwds,
        )  # fmt: skip


def facts(row: PsRow) -> list[str]:
    return [one.fact.value for one in row.evidence]


def spared(row: PsRow) -> list[str]:
    return [one.fact.value for one in row.spared]
