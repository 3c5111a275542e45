"""Pens of cgroup v1, which limits and counts memory. Freezing and killing use the cgroup2 mount of
a hybrid machine if there is one, else the v1 freezer.
"""

import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from ramherd.act.pens.cgroup import (
    CgroupFiles,
    CgroupFleet,
    CgroupPen,
    CgroupProcesses,
    refuse_read_only,
)
from ramherd.core.errors import NoPen
from ramherd.core.model import PenReading
from ramherd.core.units import MIB
from ramherd.measure.cgroups import Trees, parse_file_bytes_v1, parse_flat
from ramherd.system.files import remove_dirs, try_control, write_control
from ramherd.system.wait import clear_event, open_event

# The counter is charged in batches of 64 pages per core: at a kill it is this close to the limit.
NEAR_LIMIT_BYTES = MIB
KIND = "cgroup1"
MEMORY, PIDS, FREEZER, V2 = "memory", "pids", "freezer", "cgroup2"


class Cgroup1Memory:
    def __init__(self, path: Path, limit_bytes: int | None = None) -> None:
        self._path = path
        self._limit = limit_bytes
        self._files = CgroupFiles(path)
        self._peak = 0
        self._event: int | None = None
        # The limit that the kernel enforces: the run's own, or the lower backstop of its grant.
        self._most: int | None = None
        self._mark = 0

    def read(self, procs: int) -> PenReading:
        usage = int(self._files.read("memory.usage_in_bytes"))
        most = int(self._files.read("memory.max_usage_in_bytes"))
        cache = parse_file_bytes_v1(self._files.read("memory.stat"))
        used = max(usage - cache, 0)
        self._peak = max(self._peak, used)
        kills = parse_flat(self._files.read("memory.oom_control")).get("oom_kill", 0)
        limit_hit = self._limit is not None and most >= self._limit - NEAR_LIMIT_BYTES
        return PenReading(used, self._peak, procs, kills, limit_hit, most, cache)

    def set_limit(self, limit_bytes: int) -> None:
        self._limit = limit_bytes
        self._write_limit(limit_bytes)

    def _write_limit(self, limit_bytes: int) -> None:
        """With swap accounting, the sum of memory and swap is limited too: a run could exceed its
        limit by paging out. The larger of the two has to be raised first.
        """
        own, both = (f"{self._path}/memory.{name}limit_in_bytes" for name in ("", "memsw."))
        if not try_control(own, str(limit_bytes)):
            try_control(both, str(limit_bytes))
            write_control(own, str(limit_bytes))
        try_control(both, str(limit_bytes))

    def set_grant(self, mark_bytes: int, most_bytes: int) -> None:
        self._set_backstop(most_bytes)
        self._mark = mark_bytes

    def _set_backstop(self, most_bytes: int) -> None:
        """At the backstop a run sleeps in the kernel; at its own limit it is killed. To lower a
        limit below the page cache, the kernel has to drop the page cache, which is slow: left to
        `trim`.
        """
        own_limit = self._limit is not None and most_bytes >= self._limit
        most = self._limit if own_limit and self._limit is not None else most_bytes
        if most == self._most:
            return
        lower = self._most is not None and most < self._most
        if lower and int(self._files.read("memory.usage_in_bytes")) > most:
            return
        self._write_limit(most)
        if self._most is None or own_limit or self._most == self._limit:
            write_control(f"{self._path}/memory.oom_control", "0" if own_limit else "1")
        self._most = most

    def arm(self) -> int | None:
        """Each grant has its own threshold. The same event reports a stop at the backstop. The
        kernel takes 16 ms (it waits until no reader uses its list).
        """
        event = open_event()
        marks = (("memory.usage_in_bytes", self._mark), ("memory.oom_control", ""))
        try:
            for name, argument in marks:
                line = f"{event} {self._files.fd(name)} {argument}"
                write_control(f"{self._path}/cgroup.event_control", line)
        except OSError:  # the run has ended
            os.close(event)
            return None
        return event

    def set_event(self, event: int) -> None:
        """Replaces the event; closing the old event removes its threshold."""
        self._close_event()
        self._event = event

    def trim(self, to_bytes: int) -> None:
        """Sets a lower limit for a moment: the kernel drops the coldest page cache until the run
        fits. It may not fit (dirty pages, or the run has grown): the next reading shows that. Also
        called in a thread, so the grant may have changed meanwhile: the current grant is set at the
        end.
        """
        oom = f"{self._path}/memory.oom_control"
        try_control(oom, "1")  # a run that grows meanwhile sleeps, even if near its own limit
        try_control(f"{self._path}/memory.limit_in_bytes", str(to_bytes))
        for _ in range(2):
            if (most := self._most) is not None:
                try_control(f"{self._path}/memory.limit_in_bytes", str(most))
        try_control(oom, "0" if self._most == self._limit else "1")

    can_reclaim = False

    def reclaim(self, most_bytes: int) -> None:
        """Not supported: `memory.force_empty` reclaims all, and the limit counts swap as well."""

    def grant_fd(self) -> int | None:
        return self._event

    def clear_event(self) -> None:
        if self._event is not None:
            clear_event(self._event)

    def _close_event(self) -> None:
        if self._event is not None:
            os.close(self._event)
            self._event = None

    def residue_bytes(self) -> int:
        return parse_flat(self._files.read("memory.stat")).get("total_shmem", 0)

    def close(self) -> None:
        self._close_event()
        self._files.close()


def make_fleet(trees: Trees, owner: str) -> CgroupFleet:
    """Makes the fleet below our own cgroups, so that an outer limit applies as well."""
    return fleet_at(
        {name: tree / f"ramherd-{owner}" for name, tree in find_trees(trees).items()}
    )  # fmt: skip


def fleet_at(parents: Mapping[str, Path]) -> CgroupFleet:
    """Makes the cgroups that are missing."""
    try:
        return CgroupFleet(
            partial(make_parents, parents), partial(make_pen, parents), lambda: None
        )  # fmt: skip
    except OSError as error:
        raise NoPen(
            f"cannot create a cgroup at {error.filename}: {error.strerror}",
            hint="run as root, or pass --pen polling",
        ) from None


def make_parents(parents: Mapping[str, Path]) -> CgroupPen:
    made: list[str] = []
    try:
        for path in parents.values():
            if not path.exists():
                path.mkdir()
                made.insert(0, str(path))
    except OSError:
        remove_dirs(made)
        raise
    # Kernels before 5.11 count children only with this setting.
    try_control(f"{parents[MEMORY]}/memory.use_hierarchy", "1")
    return pen_at(parents)


def make_pen(parents: Mapping[str, Path], run: str) -> CgroupPen:
    paths = {name: parent / run for name, parent in parents.items()}
    try:
        for path in paths.values():
            path.mkdir()
    except OSError:
        remove_dirs([str(path) for path in paths.values()], 0.0)
        raise
    return pen_at(paths)


def pen_at(paths: Mapping[str, Path]) -> CgroupPen:
    """`paths` has the directory for each purpose: `memory`, `pids`, and `cgroup2` or `freezer`."""
    processes = (
        CgroupProcesses(paths[V2]) if V2 in paths else CgroupProcesses(paths[FREEZER], freezer=True)
    )
    return CgroupPen(KIND, paths, Cgroup1Memory(paths[MEMORY]), processes)


def find_trees(trees: Trees) -> dict[str, Path]:
    """The trees that pens need: memory, pids if present, and one that freezes and kills."""
    if MEMORY not in trees.v1:
        raise NoPen("no cgroup v1 memory controller on this machine", hint="pass --pen polling")
    refuse_read_only(trees.v1[MEMORY])
    found = {MEMORY: trees.v1[MEMORY]}
    if PIDS in trees.v1:
        found[PIDS] = trees.v1[PIDS]
    if trees.v2 is not None and has_kill(trees.v2):
        found[V2] = trees.v2
    elif FREEZER in trees.v1:
        found[FREEZER] = trees.v1[FREEZER]
    else:
        raise NoPen("this machine has no cgroup freezer", hint="pass --pen polling")
    return found


def has_kill(own: Path) -> bool:
    """cgroup.kill (kernel 5.14) is in every cgroup but the root; for a root, a child is checked."""
    if (own / "cgroup.kill").exists():
        return os.access(own, os.W_OK)
    probe = own / f"ramherd-probe-{os.getpid()}"
    try:
        probe.mkdir()
    except OSError:
        return False
    try:
        return (probe / "cgroup.kill").exists()
    finally:
        probe.rmdir()
