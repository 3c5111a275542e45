"""MCP servers of the user's own: programs in no table, recognized by how they are connected.

An agent gives its tools /dev/null as stdin, and its stdio servers two pipes: a process below an
agent whose stdin and stdout both lead to a live process is one of its servers.
"""

from collections.abc import Callable, Iterator, Mapping

from ramherd.core.procid import ProcId
from ramherd.strays.judge.process_tree import ProcessTree
from ramherd.strays.nouns import Kind, PeerState, Recorded, RunningProgram, Software

# (the other side of a descriptor, the inode of its pipe or socket), of stdin and of stdout.
Ends = tuple[tuple[PeerState, int], tuple[PeerState, int]]
ReadEnds = Callable[[int], Ends]


def is_connected(ends: Ends) -> bool:
    return all(state is PeerState.LIVE for state, _inode in ends)


def is_cut(ends: Ends) -> bool:
    return all(state is PeerState.GONE for state, _inode in ends)


def find_servers_of_agents(
    tree: ProcessTree, programs: Mapping[int, RunningProgram], read_ends: ReadEnds
) -> dict[int, Software]:
    """Servers below live agents. npx, uvx and `sh -c` pass their stdin on: the last process that
    has it is the server. A shell alone is a hook.
    """
    found = {}
    for child in children_of_agents(tree):
        ends = read_ends(child)
        if not is_connected(ends):
            continue
        server = last_with(ends[0][1], child, tree, read_ends)
        program = programs.get(server)
        if program is not None and not program.is_shell and server not in tree.software:
            found[server] = as_server(program)
    return found


def children_of_agents(tree: ProcessTree) -> Iterator[int]:
    for pid in list(tree.software):
        if tree.kind(pid) is Kind.AGENT:
            yield from (one for one in tree.children.get(pid, ()) if one not in tree.software)


def last_with(inode: int, pid: int, tree: ProcessTree, read_ends: ReadEnds) -> int:
    """The last process of a chain that has this stdin."""
    for child in tree.children.get(pid, ()):
        if read_ends(child)[0][1] == inode:
            return last_with(inode, child, tree, read_ends)
    return pid


def find_lost_servers(
    cut_off: list[int],
    tree: ProcessTree,
    programs: Mapping[int, RunningProgram],
    recorded: Mapping[ProcId, Recorded],
    speaks_mcp: Callable[[str], bool],
) -> dict[int, Software]:
    """Servers among unknown processes that are cut off: seen as a server while their agent lived,
    or their script is one.
    """
    found = {}
    for pid in cut_off:
        program, seen = programs.get(pid), recorded.get(tree.processes[pid].id)
        if program is None or program.is_shell:
            continue
        was_server = seen is not None and seen.is_server
        if was_server or (program.is_script and speaks_mcp(program.path)):
            found[pid] = as_server(program)
    return found


def as_server(program: RunningProgram) -> Software:
    """Named after its package or module, else after its file: `weather-tools/index.js`."""
    parts = program.path.split("/")[-2 if program.is_script else -1 :]
    return Software(program.package or program.module or "/".join(parts), Kind.MCP)
