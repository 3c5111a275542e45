"""Pens of cgroup v2: one directory per run, with memory and pids in it; and where a fleet may live.

A fleet lives in a cgroup that may enable controllers for its children. A cgroup with processes in
it cannot ("no internal processes"), so its processes move to a leaf first. Three places are tried:
our own cgroup, when only we are in it (a scope, a service with Delegate=yes) or when we are root of
a container; and, as root, beside our own cgroup. Never beside a cgroup that has a memory limit:
that limit is meant for us.
"""

import errno
import os
from functools import partial
from pathlib import Path
from typing import NamedTuple

from ramherd.act.pens.cgroup import (
    CgroupFiles,
    CgroupFleet,
    CgroupPen,
    CgroupProcesses,
    refuse_read_only,
)
from ramherd.core.errors import NoPen
from ramherd.core.model import PenReading
from ramherd.measure.cgroups import Trees, parse_flat, read_limit_v2, used_bytes_v2
from ramherd.system.files import remove_dirs, try_control, write_control
from ramherd.system.wait import NEWS, Poller

KIND = "cgroup2"
LEAF = "ramherd-leaf"
RECLAIM, SWAPPED = "memory.reclaim", "memory.swap.current"
HINT = "run `systemd-run --user --scope -p Delegate=yes ramherd ...`, or pass --pen polling"


class Home(NamedTuple):
    parent: Path
    # What is written to subtree_control: `+memory +pids`.
    enable: str
    # The processes that were in `parent` were moved to its leaf.
    moved: bool = False


class Cgroup2Memory:
    """`may_swap` is set for a parent: each of its pens has its own limit."""

    def __init__(self, path: Path, *, may_swap: bool = False) -> None:
        self._path = path
        self._may_swap = may_swap
        self._files = CgroupFiles(path)
        self._has_peak = (path / "memory.peak").exists()
        # Some of its memory may be in swap.
        self._has_reclaimed = False
        self._peak = 0
        self._limit: int | None = None
        self._most: int | None = None
        self._poller: Poller | None = None

    def read(self, procs: int) -> PenReading:
        stat = parse_flat(self._files.read("memory.stat"))
        used = used_bytes_v2(stat)
        most = int(self._files.read("memory.peak")) if self._has_peak else used  # kernel 5.19
        self._peak = max(self._peak, used)
        events = parse_flat(self._files.read("memory.events.local"))
        cache = max(stat.get("file", 0) - stat.get("shmem", 0), 0)
        # An OOM at the backstop of a grant is a failure of the fleet, not of the job's own limit.
        limit_hit = events["oom"] > 0 and self._most in (None, self._limit)
        swapped = int(self._files.read(SWAPPED)) if self._has_reclaimed else 0
        return PenReading(
            used, self._peak, procs, events["oom_kill"], limit_hit, most, cache, swapped
        )

    def set_limit(self, limit_bytes: int) -> None:
        """Forbids swap: a run could exceed its limit by paging out. `memory.oom.group` is not set:
        a tool child over the limit is killed alone, and the agent continues.
        """
        self._limit = limit_bytes
        write_control(f"{self._path}/memory.max", str(limit_bytes))
        self._forbid_swap()

    def _forbid_swap(self) -> None:
        """Memory already in swap stays there until it is used."""
        if not self._may_swap:
            try_control(f"{self._path}/memory.swap.max", "0")

    def set_grant(self, mark_bytes: int, most_bytes: int) -> None:
        """Above `memory.high` the kernel drops page cache, then slows the run down to a crawl, and
        counts an event. The file of events is always readable: only EPOLLPRI reports a change, so
        the file has its own poller, and callers wait for the descriptor of the poller.
        """
        own_limit = self._limit is not None and most_bytes >= self._limit
        self._set_backstop(self._limit if own_limit and self._limit is not None else most_bytes)
        write_control(f"{self._path}/memory.high", str(mark_bytes))
        if self._poller is None:
            self._poller = Poller()
            self._poller.add(self._files.fd("memory.events"), NEWS)

    def _set_backstop(self, most_bytes: int) -> None:
        """Never lowered below the charged memory: the kernel would kill at once."""
        lower = self._most is not None and most_bytes < self._most
        if lower and int(self._files.read("memory.current")) > most_bytes:
            return
        if most_bytes != self._most:
            write_control(f"{self._path}/memory.max", str(most_bytes))
            self._forbid_swap()
            self._most = most_bytes

    def grant_fd(self) -> int | None:
        return None if self._poller is None else self._poller.fileno()

    def clear_event(self) -> None:
        """The file is reported as changed until it is read."""
        if self._poller is not None and self._poller.wait(0):
            self._files.read("memory.events")

    def arm(self) -> int | None:
        """Not needed: setting the grant arms the mark."""
        return None

    def set_event(self, event: int) -> None:
        """Not needed: all grants share one event."""

    def trim(self, to_bytes: int) -> None:
        """Nothing to do: above `memory.high` the kernel drops page cache by itself."""

    @property
    def can_reclaim(self) -> bool:
        """Kernel 5.19, with swap accounting."""
        return all((self._path / name).exists() for name in (RECLAIM, SWAPPED))

    def reclaim(self, most_bytes: int) -> None:
        """Moves at most `most_bytes` of the coldest memory to swap. The pen may use swap only
        during this call: at its grant a run is held, it does not page out. The kernel takes some
        milliseconds for each megabyte, so this is called in a thread. Without cold memory or swap,
        nothing happens.
        """
        try:
            in_swap = int(self._files.read(SWAPPED))
            write_control(f"{self._path}/memory.swap.max", str(in_swap + most_bytes))
            self._has_reclaimed = True
            self._write_reclaim(most_bytes)
        except OSError:  # the run has ended, or we may not write the file
            pass
        finally:
            self._forbid_swap()

    def _write_reclaim(self, most_bytes: int) -> None:
        """Kernels before 6.9 always reclaim page cache as well."""
        try:
            write_control(f"{self._path}/{RECLAIM}", f"{most_bytes} swappiness=200")
        except OSError as error:
            if error.errno == errno.EINVAL:
                try_control(f"{self._path}/{RECLAIM}", str(most_bytes))

    def residue_bytes(self) -> int:
        return parse_flat(self._files.read("memory.stat")).get("shmem", 0)

    def close(self) -> None:
        if self._poller is not None:
            self._poller.close()
            self._poller = None
        self._files.close()


def make_fleet(trees: Trees, owner: str) -> CgroupFleet:
    if trees.v2 is None:
        raise NoPen("no cgroup v2 on this machine", hint="pass --pen polling")
    home = find_home(trees.v2)
    path = home.parent / f"ramherd-{owner}"
    return fleet_at(path, home)


def fleet_at(path: Path, home: Home) -> CgroupFleet:
    """Makes the cgroup of the fleet if it is missing."""
    try:
        return CgroupFleet(
            partial(make_parent, path, home), partial(make_pen, path), partial(leave_home, home)
        )
    except OSError as error:
        leave_home(home)
        raise NoPen(
            f"cannot create a cgroup at {path}: {error.strerror}", hint="pass --pen polling"
        ) from None


def make_parent(path: Path, home: Home) -> CgroupPen:
    path.mkdir(exist_ok=True)
    write_control(f"{path}/cgroup.subtree_control", home.enable)
    return pen_at(path, may_swap=True)


def make_pen(parent: Path, run: str) -> CgroupPen:
    path = parent / run
    path.mkdir()
    return pen_at(path)


def pen_at(path: Path, *, may_swap: bool = False) -> CgroupPen:
    memory = Cgroup2Memory(path, may_swap=may_swap)
    return CgroupPen(KIND, {KIND: path}, memory, CgroupProcesses(path))


def find_home(own: Path) -> Home:
    controllers = (own / "cgroup.controllers").read_text().split()
    if "memory" not in controllers:
        raise NoPen(f"the cgroup {own} has no memory controller", hint="pass --pen polling")
    refuse_read_only(own)
    enable = "+memory +pids" if "pids" in controllers else "+memory"
    for home in (try_own, try_beside, try_moving):
        if (found := home(own, enable)) is not None:
            return found
    raise NoPen(f"the cgroup {own} cannot be divided by this user", hint=HINT)


def try_own(own: Path, enable: str) -> Home | None:
    """Usable if the controllers are enabled already, or if only we are in the cgroup."""
    if can_enable(own, enable):
        return Home(own, enable)
    if set(read_pids(own)) <= {os.getpid()}:
        return move_to_leaf(own, enable)
    return None


def try_beside(own: Path, enable: str) -> Home | None:
    """As root, next to our own cgroup, if its parent enables controllers for its children."""
    parent = own.parent
    if os.getuid() != 0 or not (parent / "cgroup.procs").exists() or read_limit_v2(own):
        return None
    return Home(parent, enable) if can_enable(parent, enable) else None


def try_moving(own: Path, enable: str) -> Home | None:
    """As root of a container: its own cgroup is the top; all processes in it move to a leaf."""
    return move_to_leaf(own, enable) if os.getuid() == 0 else None


def can_enable(path: Path, enable: str) -> bool:
    return try_control(f"{path}/cgroup.subtree_control", enable)


def move_to_leaf(own: Path, enable: str) -> Home | None:
    try:
        (own / LEAF).mkdir(exist_ok=True)
        move_all(own, own / LEAF)
        write_control(f"{own}/cgroup.subtree_control", enable)
    except OSError:
        undo_move(own)
        return None
    return Home(own, enable, moved=True)


def leave_home(home: Home) -> None:
    """Moves the processes back, once no other ramherd needs the controllers."""
    others = any(path.name != LEAF for path in home.parent.glob("ramherd-*"))
    if not home.moved or others:
        return
    try_control(f"{home.parent}/cgroup.subtree_control", home.enable.replace("+", "-"))
    undo_move(home.parent)


def undo_move(own: Path) -> None:
    if (own / LEAF).is_dir():
        move_all(own / LEAF, own)
        remove_dirs([str(own / LEAF)], 0.2)


def move_all(source: Path, target: Path) -> None:
    """Repeats, because processes fork meanwhile; processes that have ended are skipped."""
    for _round in range(100):
        pids = read_pids(source)
        if not pids:
            return
        for pid in pids:
            try:
                write_control(f"{target}/cgroup.procs", str(pid))
            except ProcessLookupError:
                continue
    raise OSError(errno.EBUSY, "processes keep coming", str(source))


def read_pids(path: Path) -> list[int]:
    return [int(pid) for pid in (path / "cgroup.procs").read_text().split()]
