"""Live, idle, suspect or orphan: a verdict for each process, with its evidence, as a row of `ps`.

A process whose starter is gone is judged with all processes below it (`protection.py`): they
are orphans together, or one that is at work makes all of them suspect. A process with a living
parent has an owner.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from ramherd.core.policies import StrayPolicy
from ramherd.core.procid import Process
from ramherd.strays.judge.orphan_proofs import find_proofs, is_cut_off
from ramherd.strays.judge.process_tree import STDIO, ProcessTree
from ramherd.strays.judge.protection import (
    IN_USE,
    NOTHING,
    Family,
    find_family,
    find_kept,
    find_objections,
    find_protection,
    find_work,
    is_server,
)
from ramherd.strays.nouns import (
    Details,
    Evidence,
    Fact,
    Kind,
    Origin,
    PeerState,
    ProcessScene,
    PsRow,
    Verdict,
)

COMMAND_CHARS = 200
HOLDERS = (Kind.APPLICATION, Kind.RAMHERD)
RAMHERD = "ramherd"


class Judgement(NamedTuple):
    """`spared` has the reasons why it is not ended automatically."""

    verdict: Verdict
    evidence: list[Evidence]
    spared: list[Evidence]
    origin: Origin = Origin.HAND


def judge(
    scene: ProcessScene, tree: ProcessTree, pids: Iterable[int], policy: StrayPolicy
) -> list[PsRow]:
    """`pids` are rows and their wrappers; a wrapper that is not an orphan gets no row."""
    one_scan = Judge(scene, tree, policy, find_duplicates(scene, tree, pids))
    rows = []
    for pid in sorted(pids, key=lambda pid: (depth(pid, tree), pid)):
        row = make_row(pid, scene, tree, one_scan.judge(pid))
        if row.kind is not Kind.WRAPPER or row.verdict is Verdict.ORPHAN:
            rows.append(row)
    return rows


def depth(pid: int, tree: ProcessTree) -> int:
    return sum(1 for _above in tree.above(pid))


@dataclass(frozen=True)
class Judge:
    """The input shared by all judgements of one scan, and the judgements of first processes."""

    scene: ProcessScene
    tree: ProcessTree
    policy: StrayPolicy
    duplicates: Mapping[int, int]
    tops: dict[int, Judgement] = field(default_factory=dict)
    families: dict[int, Family] = field(default_factory=dict)
    protected: dict[int, Mapping[int, list[Evidence]]] = field(default_factory=dict)

    def judge(self, pid: int) -> Judgement:
        if self.tree.kind(pid) is Kind.RAMHERD:
            ours = [Evidence(Fact.RAMHERD)]
            return Judgement(self.quiet(pid), ours, ours, Origin.RAMHERD)
        top = self.tree.top(pid)
        holds = self.tree.kind(top) in HOLDERS or top not in self.scene.details
        if holds or not self.tree.is_inherited(top):
            return self.judge_owned(pid)
        found = self.judge_top(top)
        if pid == top:
            return found
        if found.verdict is Verdict.ORPHAN:
            return self.judge_below_orphan(pid)
        if found.verdict is Verdict.SUSPECT and found.origin is Origin.LEFT:
            return self.judge_below_suspect(pid, top, found)
        owned = self.judge_owned(pid)
        return owned if owned.origin is Origin.RAMHERD else owned._replace(origin=found.origin)

    def judge_top(self, top: int) -> Judgement:
        if top not in self.tops:
            self.tops[top] = self.judge_inherited(top)
        return self.tops[top]

    def family(self, top: int) -> Family:
        if top not in self.families:
            self.families[top] = find_family(top, self.scene, self.tree)
        return self.families[top]

    def judge_inherited(self, pid: int) -> Judgement:
        """None of its starters is left: it is an orphan, or only looks like one."""
        process, details = self.scene.processes[pid], self.scene.details.get(pid, NOTHING)
        if self.scene.runs.get(details.run) is False:
            live = [Evidence(Fact.RUN_LIVE, details.run)]
            return Judgement(Verdict.LIVE, live, [], Origin.RAMHERD)
        if self.is_supervisor(pid):
            return Judgement(self.quiet(pid), [Evidence(Fact.SUPERVISOR)], [])
        family = self.family(pid)
        if proofs := find_proofs(pid, self.scene, self.tree):
            return self.judge_proved(family, proofs)
        origin = self.find_origin(pid, details)
        spared = find_objections(process, self.scene, family)
        signs = [Evidence(Fact.CUT_OFF)] if is_cut_off(details) else []
        signs += self.find_signs(pid)
        in_use = [one for one in spared if one.fact in IN_USE]
        if in_use:
            return Judgement(self.quiet(pid), in_use, spared, origin)
        idle_s = find_idle(process, self.scene) or 0.0
        if self.tree.kind(pid) is Kind.AGENT and idle_s < self.policy.suspect_s:
            return Judgement(self.quiet(pid), signs, spared, origin)
        spared += find_kept(process, self.scene, self.policy)
        spared += find_work(pid, self.scene, family) + find_nohup(details, origin)
        if len(family.members) > 1 and not spared:
            spared += self.find_below(family)
        return Judgement(Verdict.SUSPECT, signs + self.idle(pid), spared, origin)

    def judge_proved(self, family: Family, proofs: list[Evidence]) -> Judgement:
        """The protection of any process of the tree spares all of it."""
        pid = family.top
        details = self.scene.details.get(pid, NOTHING)
        origin = self.find_origin(pid, details, proofs)
        protected = find_protection(family, proofs, self.scene, self.tree, self.policy)
        self.protected[pid] = protected
        spared = protected.get(pid, [])
        facts = {proof.fact for proof in proofs}
        if not facts & {Fact.RUN_OVER, Fact.STDIN_GONE}:
            spared = spared + find_nohup(details, origin)
        if not is_spared(spared):
            spared = spared + self.find_protected(pid, protected)
        return Judgement(verdict_of_proved(spared), proofs + self.find_signs(pid), spared, origin)

    def find_protected(self, pid: int, protected: Mapping[int, list[Evidence]]) -> list[Evidence]:
        """Another process of the same tree that must not be ended."""
        others = (one for one in sorted(protected) if one != pid and is_spared(protected[one]))
        return [Evidence(Fact.IN_TREE, self.name(one), one) for one in others][:1]

    def find_below(self, family: Family) -> list[Evidence]:
        """A process at work below one of which nothing is proved."""
        below = (one for one in sorted(family.members - {family.top}))
        at_work = (one for one in below if find_work(one, self.scene, family))
        return [Evidence(Fact.IN_TREE, self.name(one), one) for one in at_work][:1]

    def judge_below_orphan(self, pid: int) -> Judgement:
        process = self.scene.processes[pid]
        evidence = Evidence(Fact.CHILD_OF_ORPHAN, self.name(process.ppid), process.ppid)
        other = process.uid != self.scene.uid
        spared = [Evidence(Fact.OTHER_USER, number=process.uid)] if other else []
        return Judgement(Verdict.ORPHAN, [evidence], spared, Origin.LEFT)

    def judge_below_suspect(self, pid: int, top: int, found: Judgement) -> Judgement:
        """What an agent left: suspect with the first process of its tree."""
        family = self.family(top)
        process, parent = self.scene.processes[pid], self.scene.processes[pid].ppid
        protected = self.protected.get(top)
        if protected is None:
            spared = find_kept(process, self.scene, self.policy)
            spared += find_objections(process, self.scene, family)
            spared += find_work(pid, self.scene, family)
        else:
            spared = protected.get(pid) or self.find_protected(pid, protected)
        owner = Evidence(Fact.OWNER, self.name(parent), parent)
        in_use = [one for one in spared if one.fact in IN_USE]
        if in_use and protected is None:
            return Judgement(self.quiet(pid), in_use, spared, found.origin)
        return Judgement(Verdict.SUSPECT, [owner, *self.idle(pid)], spared or [owner], found.origin)

    def name(self, pid: int) -> str:
        known = self.scene.software.get(pid)
        return known.name if known is not None else self.scene.processes[pid].name

    def find_origin(self, pid: int, details: Details, proofs: Iterable[Evidence] = ()) -> Origin:
        """Left by an agent or a client of it, by a mark, a record or a proof; else by hand."""
        by_proof = any(proof.fact is not Fact.WRAPPER_GONE for proof in proofs)
        recorded = self.scene.processes[pid].id in self.scene.recorded
        is_agent = self.tree.kind(pid) is Kind.AGENT
        is_left = by_proof or details.marks or details.run or (recorded and not is_agent)
        return Origin.LEFT if is_left else Origin.HAND

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
        if (supervisor := self.find_supervisor(pid)) is not None:
            return self.judge_retained(pid, supervisor)
        is_run = any(self.tree.kind(above) is Kind.RAMHERD for above in self.tree.above(pid))
        origin = Origin.RAMHERD if is_run else Origin.HAND
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
            return Judgement(Verdict.SUSPECT, found + spared, spared, origin)
        return Judgement(self.quiet(pid), spared + self.idle(pid), spared, origin)

    def judge_retained(self, pid: int, supervisor: int) -> Judgement:
        """A session in the background of an agent's own supervisor: suspect once it is idle, unless
        a user is attached to it. Its terminal is one that the supervisor made.
        """
        retained = Evidence(Fact.RETAINED, self.name(supervisor), supervisor)
        family = self.family(supervisor)
        # The user is attached to the host of the session's terminal, its parent.
        hosts = (pid, self.scene.processes[pid].ppid, *self.tree.below(pid))
        attached = [
            one
            for host in hosts
            for one in find_objections(self.scene.processes[host], self.scene, family)
            if one.fact is Fact.CLIENTS
        ]
        kept = find_kept(self.scene.processes[pid], self.scene, self.policy)
        if attached or kept:
            return Judgement(self.quiet(pid), [*attached[:1], *kept, retained], [*attached, *kept])
        idle, below = self.idle(pid), self.tree.below(pid)
        if idle and self.tree.kind(pid) is Kind.AGENT and all(map(self.idle, below)):
            return Judgement(Verdict.SUSPECT, [retained, *idle], [retained])
        return Judgement(self.quiet(pid), [retained, *idle], [retained])

    def is_supervisor(self, pid: int) -> bool:
        known, program = self.scene.software.get(pid), self.scene.programs.get(pid)
        if known is None or program is None or not known.supervisor:
            return False
        return program.argv[1 : 1 + len(known.supervisor)] == known.supervisor

    def find_supervisor(self, pid: int) -> int | None:
        return next((above for above in self.tree.above(pid) if self.is_supervisor(above)), None)

    def quiet(self, pid: int) -> Verdict:
        return Verdict.IDLE if self.idle(pid) else Verdict.LIVE

    def idle(self, pid: int) -> list[Evidence]:
        idle_s = find_idle(self.scene.processes[pid], self.scene)
        if idle_s is None or idle_s < self.policy.idle_s:
            return []
        return [Evidence(Fact.IDLE, number=idle_s)]


def find_nohup(details: Details, origin: Origin) -> list[Evidence]:
    """Who starts a process by hand with nohup wants it to stay; an agent's habit proves nothing."""
    return [Evidence(Fact.NOHUP)] if details.nohup and origin is Origin.HAND else []


def is_spared(spared: Iterable[Evidence]) -> bool:
    return any(one.fact is not Fact.OTHER_USER for one in spared)


def verdict_of_proved(spared: list[Evidence]) -> Verdict:
    """Another user's process is still an orphan; one in use, or meant to stay, may not be."""
    return Verdict.SUSPECT if is_spared(spared) else Verdict.ORPHAN


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
    session, cwd = find_session(pid, tree), scene.cwds.get(pid, "")
    is_session = session and found.verdict is not Verdict.ORPHAN
    return PsRow(
        process=process,
        software=known.name if known is not None else process.name,
        kind=known.kind if known is not None else find_kind(pid, scene, tree),
        verdict=found.verdict,
        evidence=tuple(found.evidence),
        spared=tuple(found.spared),
        session=session,
        application=find_application(pid, scene, tree),
        memory_bytes=memory,
        age_s=scene.age_s(process),
        idle_s=find_idle(process, scene),
        growth_bytes=None if seen is None else memory - seen.bytes,
        orphan_s=find_orphan_s(process, scene) if found.verdict is Verdict.ORPHAN else None,
        command=" ".join(program.argv)[:COMMAND_CHARS] if program is not None else "",
        origin=Origin.SESSION if is_session else found.origin,
        cwd=cwd,
        project=scene.projects.get(cwd, ""),
        listens=scene.details.get(pid, NOTHING).listens,
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
    if any(is_of_agent(one, scene, tree) for one in (pid, *tree.above(pid))):
        return Kind.TOOL
    return Kind.OTHER if is_cut_off(details) and tree.is_inherited(pid) else Kind.WRAPPER


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
    applications = (above for above in tree.above(pid) if tree.kind(above) in HOLDERS)
    first = next(applications, None)
    return "" if first is None else tree.software[first].name
