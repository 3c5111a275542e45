"""Making a session's pen without delay, and removing it when nothing is in it.

What takes long or is rare (reading, signalling, killing) is done by the pens of `act/pens`, which
are made again from `record`. A machine on which the short way does not work gets `make_fleet`.
"""

from __future__ import annotations

import os

from ramherd.exec.own_cgroups import V2, read, read_field
from ramherd.system.files import remove_dirs, try_control, write_control
from ramherd.system.proc_stat import read_children, read_start_ticks

TYPE_CHECKING = False  # `typing` costs 4 ms
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ramherd.act.pens.selection import Fleet

POLLING = {"kind": "polling"}
# cgroup.kill came with this kernel; the root cgroup does not show it.
KILL_SINCE = (5, 14)
# As act/pens/cgroup1.py has it.
PIDS_MAX = 4096


class SessionPen:
    """`join` are the files that take in a process, and tell who is inside."""

    def __init__(self, record: dict[str, Any], join: list[str], dirs: list[str]) -> None:
        self.record = record
        self.join = join
        self.dirs = dirs
        # More to keep on record: (id, what) of the fleet around it.
        self.fleet: dict[str, Any] | None = None
        self.why_weaker = ""
        # The fleet that it is in, if that takes more to leave than removing its directories.
        self.made_by: Fleet | None = None

    @property
    def kind(self) -> str:
        return str(self.record["kind"])

    def make(self, limit_bytes: int) -> None:
        """With swap accounting the sum with swap is limited too."""
        for path in self.dirs:
            os.mkdir(path)
        paths = self.record.get("paths", {})
        if "pids" in paths:
            write_control(f"{paths['pids']}/pids.max", str(PIDS_MAX))
        if "memory" in paths:
            try_control(f"{paths['memory']}/memory.use_hierarchy", "1")
            write_control(f"{paths['memory']}/memory.limit_in_bytes", str(limit_bytes))
            try_control(f"{paths['memory']}/memory.memsw.limit_in_bytes", str(limit_bytes))

    def is_empty(self, guard: int) -> bool:
        """Without cgroups: whatever lost its parent is our child, and so is the guard."""
        if self.join:
            return not any(read(path).strip() for path in self.join)
        return read_children(os.getpid()) == [guard]

    def note_start(self, first: int) -> None:
        """Without cgroups the first process is what can be told."""
        if not self.join:
            self.record["first"] = [first, read_start_ticks(first)]

    def used_bytes(self) -> int:
        """Without page cache; 0 where nobody counts it."""
        paths = self.record.get("paths", {})
        if "memory" not in paths:
            return 0
        try:
            usage = int(read(f"{paths['memory']}/memory.usage_in_bytes") or 0)
            stat = read(f"{paths['memory']}/memory.stat")
        except OSError:
            return 0
        cache = (read_field(stat, f"total_{kind}_file") for kind in ("active", "inactive"))
        return max(usage - sum(cache), 0)

    def peak_bytes(self) -> int | None:
        """The largest single process: the kernel's own peak counts page cache."""
        if "memory" not in self.record.get("paths", {}):
            return None
        import resource  # noqa: PLC0415

        path = self.record["paths"]["memory"]
        largest = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss << 10
        return min(int(read(f"{path}/memory.max_usage_in_bytes") or 0), largest)

    def remove(self) -> bool:
        removed = remove_dirs(self.dirs)
        return self.made_by.remove() if self.made_by is not None else removed


def plan_pen(kind: str, own: Mapping[str, str], owner: str, run: str) -> SessionPen | None:
    """What is to be made; None where it takes `make_fleet`."""
    if kind == "polling" or (kind == "auto" and has_no_right(own)):
        pen = SessionPen({**POLLING, "run": run, "first": None}, [], [])
        pen.why_weaker = "" if kind == "polling" else f"{own['memory']} is not writable"
        return pen
    if kind not in ("auto", "cgroup1") or "memory" not in own or not has_kill(own):
        return None
    paths = {name: f"{own[name]}/ramherd-{owner}" for name in ("memory", "pids", V2) if name in own}
    if not all(os.access(own[name], os.W_OK) for name in paths):
        return None
    join = [f"{path}/cgroup.procs" for path in paths.values()]
    return SessionPen({"kind": "cgroup1", "paths": paths}, join, list(paths.values()))


def has_no_right(own: Mapping[str, str]) -> bool:
    return "memory" in own and not os.access(own["memory"], os.W_OK)


def has_kill(own: Mapping[str, str]) -> bool:
    if V2 not in own:
        return False
    release = os.uname().release.split(".")
    return os.path.exists(f"{own[V2]}/cgroup.kill") or tuple(map(int, release[:2])) >= KILL_SINCE
