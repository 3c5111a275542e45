"""Live, idle, suspect or orphan: a verdict for each process, with its evidence, as a row of `ps`.

Parents are judged before their children: a child of an orphan is an orphan too, and a process with
a living parent has an owner.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from ramherd.core.policies import StrayPolicy
from ramherd.core.procid import Process
from ramherd.strays.judge.orphan_proofs import (
    IN_USE,
    NOTHING,
    find_intent,
    find_objections,
    find_proofs,
    is_server,
)
from ramherd.strays.judge.process_tree import STDIO, ProcessTree
from ramherd.strays.nouns import (
    Evidence,
    Fact,
    Kind,
    PeerState,
    ProcessScene,
    PsRow,
    Verdict,
)

COMMAND_CHARS = 200
RAMHERD = "ramherd"


class Judgement(NamedTuple):
    """`spared` has the reasons why it is not ended automatically."""

    verdict: Verdict
    evidence: list[Evidence]
    spared: list[Evidence]


def judge(
    scene: ProcessScene, tree: ProcessTree, pids: Iterable[int], policy: StrayPolicy
) -> list[PsRow]:
    """`pids` are rows and their wrappers; a wrapper that is not an orphan gets no row."""
    one_scan = Judge(scene, tree, policy, find_duplicates(scene, tree, pids))
    judged: dict[int, PsRow] = {}
    for pid in sorted(pids, key=lambda pid: (depth(pid, tree), pid)):
        found = one_scan.judge(pid, judged.get(scene.processes[pid].ppid))
        row = make_row(pid, scene, tree, found)
        if row.kind is not Kind.WRAPPER or row.verdict is Verdict.ORPHAN:
            judged[pid] = row
    return list(judged.values())


def depth(pid: int, tree: ProcessTree) -> int:
    return sum(1 for _above in tree.above(pid))


@dataclass(frozen=True)
class Judge:
    """The input shared by all judgements of one scan."""

    scene: ProcessScene
    tree: ProcessTree
    policy: StrayPolicy
    duplicates: Mapping[int, int]

    def judge(self, pid: int, parent: PsRow | None) -> Judgement:
        if self.tree.is_inherited(pid):
            return self.judge_inherited(pid)
        if parent is not None and parent.verdict is Verdict.ORPHAN:
            return self.judge_child(pid, parent)
        return self.judge_owned(pid)

    def judge_child(self, pid: int, parent: PsRow) -> Judgement:
        evidence = [Evidence(Fact.CHILD_OF_ORPHAN, parent.software, parent.process.pid)]
        family = {pid, *self.tree.above(pid), *self.tree.below(pid)}
        spared = find_objections(self.scene.processes[pid], self.scene, family)
        # A process that ignores hangups, below one that does not, was started so on purpose.
        nohup = self.scene.details.get(parent.process.pid, NOTHING).nohup
        if self.scene.details.get(pid, NOTHING).nohup and not nohup:
            spared.append(Evidence(Fact.NOHUP))
        return Judgement(verdict_of_proved(spared), evidence, spared)

    def judge_inherited(self, pid: int) -> Judgement:
        """None of its starters is left: it is an orphan, or only looks like one."""
        process, details = self.scene.processes[pid], self.scene.details.get(pid, NOTHING)
        if self.scene.runs.get(details.run) is False:
            return Judgement(Verdict.LIVE, [Evidence(Fact.RUN_LIVE, details.run)], [])
        signs = self.find_signs(pid)
        spared = find_objections(process, self.scene, {pid, *self.tree.below(pid)})
        if proofs := find_proofs(pid, self.scene, self.tree):
            spared += find_intent(details, proofs)
            return Judgement(verdict_of_proved(spared), proofs + signs, spared)
        in_use = [one for one in spared if one.fact in IN_USE]
        if in_use:
            return Judgement(self.quiet(pid), in_use, spared)
        idle_s = find_idle(process, self.scene) or 0.0
        if self.tree.kind(pid) is Kind.AGENT and idle_s < self.policy.suspect_s:
            return Judgement(self.quiet(pid), signs, spared)
        return Judgement(Verdict.SUSPECT, signs + self.idle(pid), spared)

    def find_signs(self, pid: int) -> list[Evidence]:
        process, details = self.scene.processes[pid], self.scene.details.get(pid, NOTHING)
        parent = self.scene.processes[process.ppid]
        signs = [Evidence(Fact.REPARENTED, parent.name, parent.pid)]
        if self.tree.is_leader_gone(process):
            signs.append(Evidence(Fact.LEADER_GONE, number=process.sid))
        return signs + [Evidence(Fact.MARK, name) for name in details.marks]

    def judge_owned(self, pid: int) -> Judgement:
        """A process that may need it is running: it is never ended automatically."""
        process, details = self.scene.processes[pid], self.scene.details.get(pid, NOTHING)
        owner = self.scene.processes.get(process.ppid)
        spared = [] if owner is None else [Evidence(Fact.OWNER, owner.name, owner.pid)]
        if process.tty:
            spared.append(Evidence(Fact.TERMINAL))
        found = []
        if self.tree.kind(pid) in STDIO:
            if details.stdin is PeerState.GONE:
                found.append(Evidence(Fact.STDIN_CLOSED))
            if pid in self.duplicates:
                found.append(Evidence(Fact.DUPLICATE, number=self.duplicates[pid]))
            found += [one for one in self.idle(pid) if one.number >= self.policy.suspect_s]
        if found:
            return Judgement(Verdict.SUSPECT, found + spared, spared)
        return Judgement(self.quiet(pid), spared + self.idle(pid), spared)

    def quiet(self, pid: int) -> Verdict:
        return Verdict.IDLE if self.idle(pid) else Verdict.LIVE

    def idle(self, pid: int) -> list[Evidence]:
        idle_s = find_idle(self.scene.processes[pid], self.scene)
        if idle_s is None or idle_s < self.policy.idle_s:
            return []
        return [Evidence(Fact.IDLE, number=idle_s)]


def verdict_of_proved(spared: list[Evidence]) -> Verdict:
    """Another user's process is still an orphan; one in use, or meant to stay, may not be."""
    is_orphan = all(one.fact is Fact.OTHER_USER for one in spared)
    return Verdict.ORPHAN if is_orphan else Verdict.SUSPECT


def find_duplicates(scene: ProcessScene, tree: ProcessTree, pids: Iterable[int]) -> dict[int, int]:
    """Servers that have a younger twin with the same parent and command line -> its pid."""
    youngest: dict[tuple[int, tuple[str, ...]], int] = {}
    found: dict[int, int] = {}
    for pid in sorted(pids, key=lambda pid: scene.processes[pid].id.start_ticks):
        if tree.kind(pid) is not Kind.MCP or tree.is_inherited(pid):
            continue
        key = (scene.processes[pid].ppid, scene.programs[pid].argv)
        if key in youngest:
            found[youngest[key]] = pid
        youngest[key] = pid
    return found


def make_row(pid: int, scene: ProcessScene, tree: ProcessTree, found: Judgement) -> PsRow:
    process, known = scene.processes[pid], scene.software.get(pid)
    memory, seen = scene.memory.get(pid, 0), scene.sightings.get(process.id)
    program = scene.programs.get(pid)
    return PsRow(
        process=process,
        software=known.name if known is not None else process.name,
        kind=known.kind if known is not None else find_kind(pid, scene, tree),
        verdict=found.verdict,
        evidence=tuple(found.evidence),
        spared=tuple(found.spared),
        session=find_session(pid, tree),
        application=find_application(pid, scene, tree),
        memory_bytes=memory,
        age_s=scene.age_s(process),
        idle_s=find_idle(process, scene),
        growth_bytes=None if seen is None else memory - seen.bytes,
        orphan_s=find_orphan_s(process, scene) if found.verdict is Verdict.ORPHAN else None,
        command=" ".join(program.argv)[:COMMAND_CHARS] if program is not None else "",
    )


def find_orphan_s(process: Process, scene: ProcessScene) -> float:
    """The epoch time of its first sighting as an orphan. Without a record, its start."""
    seen = scene.sightings.get(process.id)
    if seen is None:
        return scene.at_s - scene.age_s(process)
    return scene.at_s if seen.orphan_s is None else seen.orphan_s


def find_idle(process: Process, scene: ProcessScene) -> float | None:
    """The time since it last used the CPU, as far as it was recorded."""
    seen = scene.sightings.get(process.id)
    return None if seen is None else max(scene.at_s - seen.active_s, 0.0)


def find_kind(pid: int, scene: ProcessScene, tree: ProcessTree) -> Kind:
    """The kind of an unknown program: a tool of an agent, or a wrapper in between."""
    details = scene.details.get(pid, NOTHING)
    if details.stdin_inode and is_server(pid, scene, tree):
        return Kind.WRAPPER
    is_tool = any(is_of_agent(one, scene, tree) for one in (pid, *tree.above(pid)))
    return Kind.TOOL if is_tool else Kind.WRAPPER


def is_of_agent(pid: int, scene: ProcessScene, tree: ProcessTree) -> bool:
    """Known software, or a process with its mark."""
    if tree.kind(pid) not in (None, Kind.APPLICATION, Kind.REAPER):
        return True
    details = scene.details.get(pid, NOTHING)
    return bool(details.marks or details.run) or scene.processes[pid].id in scene.recorded


def find_session(pid: int, tree: ProcessTree) -> int:
    agents = [above for above in (pid, *tree.above(pid)) if tree.kind(above) is Kind.AGENT]
    return agents[-1] if agents else 0


def find_application(pid: int, scene: ProcessScene, tree: ProcessTree) -> str:
    if scene.details.get(pid, NOTHING).run:
        return RAMHERD
    applications = (above for above in tree.above(pid) if tree.kind(above) is Kind.APPLICATION)
    first = next(applications, None)
    return "" if first is None else tree.software[first].name
