"""Ending every descendant of a process, where no cgroup holds them together.

Used by the keeper, so os only. The keeper is a subreaper: whatever double-forks or calls
setsid below it becomes its child in the end, so its descendants are all there is to find.
"""

import os
import signal

from ramherd.system.proc_stat import read_children, read_parents


def find_descendants(root: int) -> set[int]:
    """All living processes below `root`, itself not among them."""
    children: dict[int, list[int]] = {}
    for pid, ppid in read_parents().items():
        children.setdefault(ppid, []).append(pid)
    found: set[int] = set()
    edge = [root]
    while edge:
        edge = [child for pid in edge for child in children.get(pid, ()) if child not in found]
        found.update(edge)
    return found


def has_orphans(firsts: set[int]) -> bool:
    """Whether a child of ours is none of the first processes of runs: then some run has left
    it behind. What lives below a process that has ended becomes our child with its end.
    """
    children = read_children(os.getpid())
    return children is None or not firsts.issuperset(children)


def has_children() -> bool:
    """Whether anything is left at all; exact, because a subreaper inherits them all."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def signal_all(pids: set[int], number: int) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except (ProcessLookupError, PermissionError):  # gone, or root's by a setuid program
            pass


def kill_descendants(root: int) -> None:
    """STOP until nobody new appears, then KILL: a stopped process cannot fork any more."""
    stopped: set[int] = set()
    while fresh := find_descendants(root).union(read_children(os.getpid()) or ()) - stopped:
        signal_all(fresh, signal.SIGSTOP)
        stopped |= fresh
    signal_all(stopped, signal.SIGKILL)
