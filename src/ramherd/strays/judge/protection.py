"""What protects the processes of a tree from being ended, although their owner is gone.

A process is protected while it is in use (a terminal, a display, a client), while it is at work (it
listens, used CPU since the last look, writes to a file of its own, has a connection), or because
the user wants to keep it. A tree is judged as one: a process that is at work needs the shell above
it, and the rest of its pipeline.

A stdio server without a client is not at work, whatever it does: it may spin on the end of its
stdin. Nor are its helpers because they use CPU, or talk to each other; what it started through a
shell is a job of its own.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ramherd.core.policies import StrayPolicy
from ramherd.core.procid import Process
from ramherd.core.sightings import Sighting
from ramherd.strays.judge.process_tree import STDIO, ProcessTree
from ramherd.strays.nouns import Details, Evidence, Fact, Kind, ProcessScene

NOTHING = Details(readable=False)
IN_USE = (Fact.TERMINAL, Fact.DISPLAY, Fact.CLIENTS)
WORK = (Fact.LISTENS, Fact.BUSY, Fact.WRITES, Fact.CONNECTED)
# An idle Node server was seen to use 0.1 % of a CPU for its timers.
BUSY_SHARE = 0.005
# Arguments of a server that is started for the network, not for stdio.
NETWORK_WORDS = (
    "--port", "--http", "--sse", "--host", "http", "sse", "streamableHttp", "streamable-http",
    "--transport=http", "--transport=sse", "--transport=streamable-http",
)  # fmt: skip


class Family(NamedTuple):
    """A process whose starter is gone, with all processes below it, and their sockets."""

    top: int
    members: frozenset[int]
    sockets: frozenset[int]


def find_family(top: int, scene: ProcessScene, tree: ProcessTree) -> Family:
    members = frozenset({top, *tree.below(top)})
    sockets = (scene.details.get(pid, NOTHING).sockets for pid in members)
    return Family(top, members, frozenset().union(*sockets))


def find_objections(process: Process, scene: ProcessScene, family: Family) -> list[Evidence]:
    """Why it is not ended automatically, whatever is proved. Clients in its own tree do not count:
    a browser's client is the server that started it.
    """
    details = scene.details.get(process.pid, NOTHING)
    found = []
    if process.pid in scene.ours:
        found.append(Evidence(Fact.OURS))
    if process.uid != scene.uid:
        found.append(Evidence(Fact.OTHER_USER, number=process.uid))
    if not details.readable:
        found.append(Evidence(Fact.UNREADABLE))
    if process.tty or details.on_terminal or details.keeps_terminal:
        found.append(Evidence(Fact.TERMINAL))
    if details.on_display:
        found.append(Evidence(Fact.DISPLAY))
    if clients := [inode for inode in details.clients if inode not in family.sockets]:
        found.append(Evidence(Fact.CLIENTS, number=len(clients)))
    return found


def find_kept(process: Process, scene: ProcessScene, policy: StrayPolicy) -> list[Evidence]:
    """RAMHERD_KEEP=1 in its environment, or a pattern of `stray_keep`."""
    if scene.details.get(process.pid, NOTHING).keep:
        return [Evidence(Fact.KEPT, "RAMHERD_KEEP")]
    if not policy.keep:
        return []
    from fnmatch import fnmatchcase  # noqa: PLC0415 - `re`, only for `stray_keep`

    texts = name_process(process, scene)
    hit = next((one for one in policy.keep if any(fnmatchcase(text, one) for text in texts)), None)
    return [] if hit is None else [Evidence(Fact.KEPT, f"stray_keep {hit}")]


def name_process(process: Process, scene: ProcessScene) -> list[str]:
    """What a pattern may match: names, paths, the command line, the directory."""
    found = [process.name, scene.cwds.get(process.pid, "")]
    if (known := scene.software.get(process.pid)) is not None:
        found.append(known.name)
    if (program := scene.programs.get(process.pid)) is not None:
        paths = (program.path, *program.argv[:1])
        found += [" ".join(program.argv), program.package, program.module, *paths]
        found += [path.rpartition("/")[2] for path in paths]
    return [text for text in found if text]


def find_work(pid: int, scene: ProcessScene, family: Family) -> list[Evidence]:
    """Connections within the tree are not work."""
    details = scene.details.get(pid, NOTHING)
    found = [Evidence(Fact.LISTENS, ", ".join(details.listens))] if details.listens else []
    if share := busy_share(scene.processes[pid], scene):
        found.append(Evidence(Fact.BUSY, number=100 * share))
    if details.writes:
        found.append(Evidence(Fact.WRITES, details.writes[0]))
    outside = [one.to for one in details.connections if one.peer not in family.sockets]
    if outside:
        found.append(Evidence(Fact.CONNECTED, outside[0]))
    return found


def busy_share(process: Process, scene: ProcessScene) -> float:
    """The share of a core that it used since the last look; 0.0 if that is too little to count. A
    process that is younger than the last look at its parent started from nothing.
    """
    seen = scene.sightings.get(process.id)
    parent = scene.processes.get(process.ppid)
    seen_parent = None if parent is None else scene.sightings.get(parent.id)
    if seen is None and seen_parent is not None:
        age_s = scene.age_s(process)
        if age_s <= scene.at_s - seen_parent.at_s:
            seen = seen_parent._replace(at_s=scene.at_s - age_s, cpu_ticks=0)
    if seen is None or not is_busy(seen, process.used_ticks, scene.at_s, scene.ticks_per_s):
        return 0.0
    used_s = (process.used_ticks - seen.cpu_ticks) / scene.ticks_per_s
    return used_s / max(scene.at_s - seen.at_s, 1 / scene.ticks_per_s)


def is_busy(seen: Sighting, used_ticks: int, now_s: float, ticks_per_s: int) -> bool:
    used_s = (used_ticks - seen.cpu_ticks) / ticks_per_s
    return used_s > max(BUSY_SHARE * (now_s - seen.at_s), 1 / ticks_per_s)


def find_protection(
    family: Family,
    proofs: Iterable[Evidence],
    scene: ProcessScene,
    tree: ProcessTree,
    policy: StrayPolicy,
) -> Mapping[int, list[Evidence]]:
    """The protection of each process of a tree whose first process is proved to be abandoned."""
    facts = {proof.fact for proof in proofs}
    found = {}
    for pid in family.members:
        process = scene.processes[pid]
        protection = find_objections(process, scene, family) + find_kept(process, scene, policy)
        # A run of ours ends with all its processes.
        if Fact.RUN_OVER not in facts:
            idle = exempt_work(pid, facts, family, scene, tree)
            protection += [one for one in find_work(pid, scene, family) if one.fact not in idle]
        if protection:
            found[pid] = protection
    return found


def exempt_work(
    pid: int, facts: set[Fact], family: Family, scene: ProcessScene, tree: ProcessTree
) -> tuple[Fact, ...]:
    """The facts that are not work of this process."""
    if pid == family.top and Fact.WRAPPER_GONE in facts:
        # An agent always listens for its editor, and writes its own records.
        return Fact.LISTENS, Fact.WRITES
    server = find_server(pid, family, scene, tree)
    if server == pid:
        return WORK[1:] if is_for_network(pid, scene) else WORK
    if server is None:
        # The files of its profile are not work of a browser.
        return (Fact.WRITES,) if tree.kind(pid) is Kind.BROWSER else ()
    return WORK if tree.kind(pid) is Kind.BROWSER else (Fact.BUSY,)


def find_server(pid: int, family: Family, scene: ProcessScene, tree: ProcessTree) -> int | None:
    """The stdio server that the process is, or is a helper of: not what was started by a shell."""
    if is_server(pid, scene, tree):
        return pid
    while pid != family.top:
        program = scene.programs.get(pid)
        if program is not None and program.is_shell:
            return None
        pid = scene.processes[pid].ppid
        if is_server(pid, scene, tree):
            return pid
    return None


def is_server(pid: int, scene: ProcessScene, tree: ProcessTree) -> bool:
    """A stdio server, or a process that started one and shares its stdin: npx, uvx, `sh -c`."""
    if tree.kind(pid) in STDIO:
        return True
    inode = scene.details.get(pid, NOTHING).stdin_inode
    return (
        bool(inode)
        and pid not in tree.software
        and any(
            tree.kind(child) in STDIO and scene.details.get(child, NOTHING).stdin_inode == inode
            for child in tree.below(pid)
        )
    )


def is_for_network(pid: int, scene: ProcessScene) -> bool:
    program = scene.programs.get(pid)
    return program is not None and any(
        word in NETWORK_WORDS or word.startswith(("--port=", "--http=", "--host="))
        for word in program.argv[1:]
    )
