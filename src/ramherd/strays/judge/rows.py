"""A row of `ramherd ps`: a judged process, where it belongs, and what was seen of it before."""

from typing import NamedTuple

from ramherd.core.procid import Process
from ramherd.strays.judge.process_tree import ProcessTree
from ramherd.strays.judge.proofs import NOTHING, is_server
from ramherd.strays.nouns import Evidence, Kind, ProcessScene, PsRow, Verdict

COMMAND_CHARS = 200
RAMHERD = "ramherd"


class Judgement(NamedTuple):
    """`spared` says why nobody ends it by itself."""

    verdict: Verdict
    evidence: list[Evidence]
    spared: list[Evidence]


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
    """Since when it was seen to be one. If nothing was recorded, all that is known is its age."""
    seen = scene.sightings.get(process.id)
    if seen is None:
        return scene.at_s - scene.age_s(process)
    return scene.at_s if seen.orphan_s is None else seen.orphan_s


def find_idle(process: Process, scene: ProcessScene) -> float | None:
    """Since it last used the CPU, as far as anybody looked."""
    seen = scene.sightings.get(process.id)
    return None if seen is None else max(scene.at_s - seen.active_s, 0.0)


def find_kind(pid: int, scene: ProcessScene, tree: ProcessTree) -> Kind:
    """Of an unknown program: a tool of an agent, else what stands between."""
    details = scene.details.get(pid, NOTHING)
    if details.stdin_inode and is_server(pid, scene, tree):
        return Kind.WRAPPER
    is_tool = any(is_of_agent(one, scene, tree) for one in (pid, *tree.above(pid)))
    return Kind.TOOL if is_tool else Kind.WRAPPER


def is_of_agent(pid: int, scene: ProcessScene, tree: ProcessTree) -> bool:
    """Known software, or what bears its mark."""
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
