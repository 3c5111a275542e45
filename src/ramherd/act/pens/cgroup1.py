"""Pens of cgroup v1: memory is limited and counted there; freezing and killing is done on the
cgroup2 mount of a hybrid machine where there is one (its kill is atomic and works on frozen
trees), else with the v1 freezer.
"""

import os
import signal
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from ramherd.act.files import remove_dirs, try_control, write_control
from ramherd.act.pens import SpawnPart
from ramherd.errors import NoPen
from ramherd.measure.cgroups import Trees, parse_file_bytes_v1, parse_flat
from ramherd.model import PenReading, ProcId
from ramherd.units import MIB

# An agent has 1-12 processes, a browser test some 50, a parallel build some hundreds.
PIDS_MAX = 4096
# The counter is charged in batches of 64 pages a core: a kill at the limit leaves it this near.
NEAR_LIMIT_BYTES = MIB
MEMORY, PIDS, FREEZER, V2 = "memory", "pids", "freezer", "cgroup2"


class Cgroup1Pen:
    """One run's cgroups, by what they are for: `memory`, `pids`, and `cgroup2` or `freezer`."""

    def __init__(self, paths: Mapping[str, Path], limit_bytes: int | None = None) -> None:
        self._paths = dict(paths)
        self._limit = limit_bytes
        self._holder = V2 if V2 in self._paths else FREEZER
        self._files: dict[str, int] = {}
        self._peak = 0

    @classmethod
    def make(cls, parents: Mapping[str, Path], run: str, limit_bytes: int | None) -> "Cgroup1Pen":
        paths = {name: parent / run for name, parent in parents.items()}
        for path in paths.values():
            path.mkdir()
        if PIDS in paths:
            write_control(f"{paths[PIDS]}/pids.max", str(PIDS_MAX))
        if limit_bytes is not None:
            set_memory_limit(paths[MEMORY], limit_bytes)
        return cls(paths, limit_bytes)

    def spawn_part(self) -> SpawnPart:
        thaw, kill = [self._freeze_write(frozen=False)], []
        if V2 in self._paths:
            kill = [(f"{self._paths[V2]}/cgroup.kill", "1")]
        return {
            "join": [f"{path}/cgroup.procs" for path in self._paths.values()],
            "on_loss": {"thaw": thaw, "kill": kill},
            "dirs": [str(path) for path in self._paths.values()],
        }

    def note_start(self, first: ProcId) -> None:
        """Nothing to remember: the kernel does."""

    def read(self) -> PenReading:
        usage = int(self._read(MEMORY, "memory.usage_in_bytes"))
        most = int(self._read(MEMORY, "memory.max_usage_in_bytes"))
        file_bytes = parse_file_bytes_v1(self._read(MEMORY, "memory.stat"))
        used = max(usage - file_bytes, 0)
        # The kernel's peak counts page cache: less what of it is there now, it is a safe floor
        # for peaks between two looks.
        self._peak = max(self._peak, used, most - file_bytes)
        return PenReading(
            used_bytes=used,
            peak_bytes=self._peak,
            procs=len(self.pids()),
            kernel_kills=parse_flat(self._read(MEMORY, "memory.oom_control")).get("oom_kill", 0),
            limit_hit=self._limit is not None and most >= self._limit - NEAR_LIMIT_BYTES,
        )

    def pids(self) -> list[int]:
        return [int(pid) for pid in self._read(self._holder, "cgroup.procs").split()]

    def signal(self, number: int) -> int:
        """To every process in the pen; how many got it. The list is read again once the
        processes are pinned: a pid of the first list may be someone else by then.
        """
        pinned = {pid: fd for pid in self.pids() if (fd := pin(pid)) is not None}
        try:
            reached = [pid for pid in self.pids() if pid in pinned]
            for pid in reached:
                with suppress(ProcessLookupError):
                    signal.pidfd_send_signal(pinned[pid], number)
        finally:
            for fd in pinned.values():
                os.close(fd)
        return len(reached)

    def freeze(self) -> None:
        write_control(*self._freeze_write(frozen=True))

    def thaw(self) -> None:
        write_control(*self._freeze_write(frozen=False))

    def _freeze_write(self, *, frozen: bool) -> tuple[str, str]:
        if V2 in self._paths:
            return f"{self._paths[V2]}/cgroup.freeze", "1" if frozen else "0"
        return f"{self._paths[FREEZER]}/freezer.state", "FROZEN" if frozen else "THAWED"

    def kill(self) -> None:
        """Everything, whatever it forks meanwhile: at once on cgroup2; else frozen, so that
        nothing forks, then killed, which takes effect on thawing.
        """
        if V2 in self._paths:
            try_control(f"{self._paths[V2]}/cgroup.kill", "1")
            return
        self.freeze()
        for pid in self.pids():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.thaw()

    def residue_bytes(self) -> int:
        """What the run left in tmpfs: it stays charged to the fleet when the pen is gone."""
        return parse_flat(self._read(MEMORY, "memory.stat")).get("total_shmem", 0)

    def remove(self, wait_s: float = 2.0) -> bool:
        for fd in self._files.values():
            os.close(fd)
        self._files.clear()
        return remove_dirs([str(path) for path in self._paths.values()], wait_s)

    def record(self) -> dict[str, Any]:
        return {"kind": Cgroup1Fleet.kind, "paths": {n: str(p) for n, p in self._paths.items()}}

    def _read(self, tree: str, name: str) -> bytes:
        """Kept open: reading 50 pens so costs 0.05 ms instead of 0.36."""
        fd = self._files.get(name)
        if fd is None:
            path = f"{self._paths[tree]}/{name}"
            fd = self._files[name] = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        data = os.pread(fd, 1 << 16, 0)
        while data and (more := os.pread(fd, 1 << 16, len(data))):
            data += more
        return data


class Cgroup1Fleet:
    """The parents of all pens, below our own cgroups, so that an outer limit holds as well."""

    kind = "cgroup1"
    kernel_limits = True

    def __init__(self, parents: Mapping[str, Path]) -> None:
        self._parents = dict(parents)
        self._whole = Cgroup1Pen(parents)

    @classmethod
    def make(cls, trees: Trees, owner: str) -> "Cgroup1Fleet":
        parents = {name: tree / f"ramherd-{owner}" for name, tree in find_trees(trees).items()}
        made: list[str] = []
        try:
            for path in parents.values():
                path.mkdir()
                made.insert(0, str(path))
            # Kernels before 5.11 count children only when told to.
            try_control(f"{parents[MEMORY]}/memory.use_hierarchy", "1")
        except OSError as error:
            remove_dirs(made)
            raise NoPen(
                f"cannot make a cgroup at {error.filename}: {error.strerror}",
                hint="run as root, or pass --pen polling",
            ) from None
        return cls(parents)

    def add(self, run: str, limit_bytes: int | None) -> Cgroup1Pen:
        return Cgroup1Pen.make(self._parents, run, limit_bytes)

    def scan(self) -> None:
        """Nothing to look for: each pen knows its own."""

    def read(self) -> PenReading:
        return self._whole.read()

    def set_limit(self, limit_bytes: int) -> None:
        set_memory_limit(self._parents[MEMORY], limit_bytes)

    def note_keeper(self, keeper: ProcId) -> None:
        """The keeper stays outside: it is no run."""

    def dirs(self) -> list[str]:
        return [str(path) for path in self._parents.values()]

    def remove(self) -> bool:
        return self._whole.remove()

    def record(self) -> dict[str, Any]:
        return self._whole.record()


def find_trees(trees: Trees) -> dict[str, Path]:
    """The trees that pens need here: memory, pids if there, and one that freezes and kills."""
    if MEMORY not in trees.v1:
        raise NoPen("no cgroup v1 memory controller on this machine", hint="pass --pen polling")
    found = {MEMORY: trees.v1[MEMORY]}
    if PIDS in trees.v1:
        found[PIDS] = trees.v1[PIDS]
    if trees.v2 is not None and has_kill(trees.v2):
        found[V2] = trees.v2
    elif FREEZER in trees.v1:
        found[FREEZER] = trees.v1[FREEZER]
    else:
        raise NoPen("no cgroup that can freeze on this machine", hint="pass --pen polling")
    return found


def has_kill(own: Path) -> bool:
    """cgroup.kill (kernel 5.14) is in every cgroup but the root, so a root asks a child."""
    if (own / "cgroup.kill").exists():
        return True
    probe = own / f"ramherd-probe-{os.getpid()}"
    try:
        probe.mkdir()
    except OSError:
        return False
    try:
        return (probe / "cgroup.kill").exists()
    finally:
        probe.rmdir()


def set_memory_limit(path: Path, limit_bytes: int) -> None:
    """With swap accounting the sum with swap is limited too: a limit that pages out does not
    hold. The larger of the two has to be raised first.
    """
    sum_file, file = f"{path}/memory.memsw.limit_in_bytes", f"{path}/memory.limit_in_bytes"
    if not try_control(file, str(limit_bytes)):
        try_control(sum_file, str(limit_bytes))
        write_control(file, str(limit_bytes))
    try_control(sum_file, str(limit_bytes))


def pin(pid: int) -> int | None:
    try:
        return os.pidfd_open(pid)
    except OSError:
        return None
