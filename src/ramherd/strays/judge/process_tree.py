"""Parents and children, and the processes that only inherited a child: init, or a subreaper."""

from collections.abc import Iterator, Mapping
from functools import cached_property

from ramherd.core.procid import Process, ProcId
from ramherd.core.sightings import Sighting
from ramherd.strays.nouns import Kind, Software

SHOWN = (
    Kind.AGENT, Kind.MCP, Kind.LANGUAGE, Kind.LINTER, Kind.WATCHER, Kind.DEV_SERVER, Kind.BROWSER,
    Kind.RAMHERD,
)  # fmt: skip
STDIO = (Kind.MCP, Kind.LANGUAGE)
INIT = 1


class ProcessTree:
    def __init__(
        self,
        processes: Mapping[int, Process],
        software: Mapping[int, Software],
        sightings: Mapping[ProcId, Sighting],
    ) -> None:
        self.processes, self.software, self._sightings = processes, software, sightings

    @cached_property
    def children(self) -> Mapping[int, list[int]]:
        found: dict[int, list[int]] = {}
        for process in self.processes.values():
            found.setdefault(process.ppid, []).append(process.pid)
        return found

    def kind(self, pid: int) -> Kind | None:
        known = self.software.get(pid)
        return None if known is None else known.kind

    def below(self, root: int) -> Iterator[int]:
        """The descendants, parents first."""
        edge = [root]
        while edge:
            edge = [child for pid in edge for child in self.children.get(pid, ())]
            yield from edge

    def above(self, pid: int) -> Iterator[int]:
        """The ancestors, the nearest first."""
        while (pid := self.processes[pid].ppid) in self.processes:
            yield pid

    def is_inherited(self, pid: int) -> bool:
        """Whether the parent did not start it."""
        child = self.processes[pid]
        parent = self.processes.get(child.ppid)
        if parent is None:
            return False
        kind = self.kind(parent.pid)
        # In a container the agent itself may be process 1.
        if kind is not None and kind is not Kind.REAPER:
            return False
        if parent.pid == INIT or kind is Kind.REAPER:
            return True
        return self._was_adopted(child, parent)

    def _was_adopted(self, child: Process, parent: Process) -> bool:
        """Whether an unknown subreaper adopted it: a child is younger than its parent, keeps its
        parent, and is in its parent's session unless it made its own.
        """
        if parent.id.start_ticks > child.id.start_ticks:
            return True
        seen = self._sightings.get(child.id)
        if seen is not None and seen.ppid != child.ppid:
            return True
        return child.sid != parent.sid and self.is_leader_gone(child)

    def is_leader_gone(self, process: Process) -> bool:
        """Session 0 belongs to the kernel, or to another namespace."""
        return process.sid not in (0, process.pid) and process.sid not in self.processes

    def top(self, pid: int) -> int:
        """The outermost process above it, or itself, whose starter no longer exists."""
        while not self.is_inherited(pid) and self.processes[pid].ppid in self.processes:
            pid = self.processes[pid].ppid
        return pid


def choose_unclaimed(tree: ProcessTree) -> list[int]:
    """Inherited processes of no known software: their environment may name their owner."""
    return [pid for pid in tree.processes if pid not in tree.software and tree.is_inherited(pid)]


def choose_rows(tree: ProcessTree, marked: set[int]) -> set[int]:
    """Known software and marked processes, each with all processes that it started."""
    seeds = {pid for pid in tree.software if tree.kind(pid) in SHOWN} | marked
    rows = set(seeds)
    for pid in seeds:
        rows.update(tree.below(pid))
    return {pid for pid in rows if tree.kind(pid) not in (Kind.APPLICATION, Kind.REAPER)}


def choose_wrappers(tree: ProcessTree, rows: set[int]) -> set[int]:
    """Unknown processes between a row and the heir of its tree: npx, uvx, `sh -c`."""
    found = set()
    for pid in rows:
        while not tree.is_inherited(pid):
            pid = tree.processes[pid].ppid  # noqa: PLW2901
            if pid not in tree.processes or pid in tree.software or pid in rows:
                break
            found.add(pid)
    return found


def choose_probes(tree: ProcessTree, rows: set[int], wrappers: set[int]) -> set[int]:
    """Processes that may be strays: all of an inherited tree, servers on a pipe, and servers with a
    port to show. A process in a running application has an owner.
    """
    candidates = rows | wrappers
    inherited = {pid for pid in candidates if tree.top(pid) in candidates}
    servers = {pid for pid in rows if tree.kind(pid) in (*STDIO, Kind.DEV_SERVER)}
    return inherited | servers
