"""Ends every descendant of a process, where no cgroup holds them together.

Used by the keeper, so it imports only small modules. The keeper is a subreaper: a process below it
that double-forks or calls setsid becomes its child in the end, so its descendants include all
processes of its runs.
"""

import os
import signal

from ramherd.system.proc_stat import read_children, read_parents


def find_descendants(root: int) -> set[int]:
    """All living processes below `root`, without `root`."""
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
    """Whether a child of ours is not the first process of a run: then some run has left it behind.
    When a process ends, its living children become ours.
    """
    children = read_children(os.getpid())
    return children is None or not firsts.issuperset(children)


def has_children() -> bool:
    """Whether any process is left; exact, because a subreaper inherits all orphans."""
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
    """STOP until no new process appears, then KILL: a stopped process cannot fork."""
    stopped: set[int] = set()
    while fresh := find_descendants(root).union(read_children(os.getpid()) or ()) - stopped:
        signal_all(fresh, signal.SIGSTOP)
        stopped |= fresh
    signal_all(stopped, signal.SIGKILL)
