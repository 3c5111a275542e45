"""The cgroups of this process, their limits, and the memory files of both cgroup versions."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from ramherd.core.machine import Limit
from ramherd.system.proc_stat import PROC, Root
from ramherd.system.procfs import read_cgroup, read_mountinfo, read_text, unescape

# "No limit" in v1 is the largest page-aligned 64-bit number.
NO_LIMIT = 1 << 60


class Trees(NamedTuple):
    """The directories of our own cgroups: v1 by controller, v2 (alone or hybrid) separately."""

    v1: Mapping[str, Path]
    v2: Path | None


def parse_own_cgroups(text: str) -> tuple[dict[str, str], str | None]:
    """/proc/self/cgroup: `4:memory:/a/b` is v1, `0::/a/b` is v2."""
    v1: dict[str, str] = {}
    v2 = None
    for line in text.splitlines():
        number, controllers, path = line.split(":", 2)
        if number == "0" and not controllers:
            v2 = path
        else:
            v1.update(dict.fromkeys(controllers.split(","), path))
    return v1, v2


def parse_mounts(text: str) -> tuple[dict[str, tuple[str, str]], tuple[str, str] | None]:
    """/proc/self/mountinfo: (mount point, its root inside the cgroup tree) by v1 controller, and
    the same for v2. In a container the root is the container's own cgroup.
    """
    v1: dict[str, tuple[str, str]] = {}
    v2 = None
    for line in text.split("\n"):
        left, _, right = line.partition(" - ")
        kind, *_source_and_options = right.split(" ") if right else ("",)
        if kind not in ("cgroup", "cgroup2"):
            continue
        root, point = left.split(" ")[3:5]
        place = (unescape(point), unescape(root))
        if kind == "cgroup2":
            v2 = v2 or place
        else:
            for name in ",".join(right.split(" ")[2:]).split(","):
                v1.setdefault(name, place)
    return v1, v2


def read_trees(proc: Root = PROC, pid: int | str = "self") -> Trees:
    """The cgroups of this process, or of another process as visible from this one."""
    own_v1, own_v2 = parse_own_cgroups(read_cgroup(pid, proc))
    mounts_v1, mount_v2 = parse_mounts(read_mountinfo(proc))
    v1 = {
        name: directory
        for name, path in own_v1.items()
        if name in mounts_v1 and (directory := place(mounts_v1[name], path)).is_dir()
    }
    v2 = place(mount_v2, own_v2) if mount_v2 and own_v2 is not None else None
    return Trees(v1, v2 if v2 is not None and v2.is_dir() else None)


def place(mount: tuple[str, str], path: str) -> Path:
    """A cgroup's directory: its path below the mount, without the part where the mount starts."""
    point, root = mount
    below = path == root or path.startswith(root.rstrip("/") + "/")
    inside = path[len(root) :] if below else path
    return Path(point) / inside.lstrip("/")


def parse_file_bytes_v1(stat: bytes) -> int:
    """Page cache in a v1 memory.stat. It is part of usage but not of `used`: a run that writes its
    log holds no memory by that. Only these two of fifty lines are parsed.
    """
    return sum(_field(stat, name) for name in (b"\ntotal_active_file ", b"\ntotal_inactive_file "))


def _field(stat: bytes, name: bytes) -> int:
    at = stat.find(name)
    return int(stat[at + len(name) :].split(b"\n", 1)[0]) if at >= 0 else 0


def used_bytes_v2(stat: Mapping[str, int]) -> int:
    """Without page cache. `kernel` (5.18) is the sum of the parts that older kernels report."""
    parts = ("slab", "kernel_stack", "pagetables", "percpu", "sock")
    kernel = stat.get("kernel", sum(stat.get(part, 0) for part in parts))
    return stat.get("anon", 0) + stat.get("shmem", 0) + kernel


def read_limits(
    trees: Trees, herds: Sequence[tuple[int, int]] = (), proc: Root = PROC
) -> Iterator[Limit]:
    """Every visible memory limit from our own cgroups upward, with the memory that other ramherds
    (pid, used bytes) use within it, if they are below it too.
    """
    others = [(read_trees(proc, pid), used) for pid, used in herds]
    for directory in ancestors(trees.v1.get("memory"), "memory.limit_in_bytes"):
        limit = _read_number(directory / "memory.limit_in_bytes")
        usage = _read_number(directory / "memory.usage_in_bytes")
        if limit is not None and usage is not None and limit < NO_LIMIT:
            cache = parse_file_bytes_v1((directory / "memory.stat").read_bytes())
            inside = sum(used for at, used in others if is_below(at.v1.get("memory"), directory))
            yield Limit(limit, max(usage - cache, 0), inside)
    for directory in ancestors(trees.v2, "cgroup.procs"):
        if (limit := read_limit_v2(directory)) is not None:
            stat = parse_flat((directory / "memory.stat").read_text())
            inside = sum(used for at, used in others if is_below(at.v2, directory))
            yield Limit(limit, used_bytes_v2(stat), inside)


def is_below(path: Path | None, directory: Path) -> bool:
    return path is not None and path.is_relative_to(directory)


def ancestors(own: Path | None, mark: str) -> Iterator[Path]:
    """From our own cgroup up to the mount, while the directories look like cgroups."""
    while own is not None and (own / mark).exists():
        yield own
        own = own.parent


def read_limit_v2(path: Path) -> int | None:
    return _read_number(path / "memory.max")


def _read_number(path: Path) -> int | None:
    """`max` is not a number, so there is no limit."""
    text = read_text(path)
    return int(text) if text is not None and text.strip().isdigit() else None


def parse_flat(text: str | bytes) -> dict[str, int]:
    """`name value` lines: memory.stat, memory.events, cgroup.events."""
    if isinstance(text, bytes):
        text = text.decode()
    return {name: int(value) for name, value in (line.split() for line in text.splitlines())}
