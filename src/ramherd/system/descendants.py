"""Ending every descendant of a process, where no cgroup holds them together.

Used by the keeper, so os only. The keeper is a subreaper: whatever double-forks or calls
setsid below it becomes its child in the end, so its descendants are all there is to find.
"""

import os
import signal


def read_parents() -> dict[int, int]:
    """pid -> ppid of every process that is not a zombie."""
    parents = {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            fd = os.open(f"/proc/{entry}/stat", os.O_RDONLY)
        except OSError:
            continue
        try:
            text = os.read(fd, 4096)
        except OSError:
            continue
        finally:
            os.close(fd)
        state, ppid = text[text.rindex(b")") + 2 :].split(maxsplit=2)[:2]
        if state not in (b"Z", b"X"):
            parents[int(entry)] = int(ppid)
    return parents


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


def read_children() -> set[int] | None:
    """Our own children as the kernel lists them: a process that forks and exits in a chain is
    seldom found by looking through /proc. None from a kernel that does not list them.
    """
    try:
        with open(f"/proc/self/task/{os.getpid()}/children", "rb") as file:
            return {int(pid) for pid in file.read().split()}
    except OSError:
        return None


def has_orphans(firsts: set[int]) -> bool:
    """Whether a child of ours is none of the first processes of runs: then some run has left
    it behind. What lives below a process that has ended becomes our child with its end.
    """
    children = read_children()
    return children is None or not children <= firsts


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
    while fresh := (find_descendants(root) | (read_children() or set())) - stopped:
        signal_all(fresh, signal.SIGSTOP)
        stopped |= fresh
    signal_all(stopped, signal.SIGKILL)
