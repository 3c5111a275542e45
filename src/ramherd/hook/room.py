"""The machine's memory as `decide/budget.py` wants it: sizes and what is used of them."""

from __future__ import annotations

import os

from ramherd.exec.own_cgroups import V2, read, read_field, read_own_cgroups
from ramherd.exec.room import BUDGET_SHARE, NO_LIMIT
from ramherd.store.subagent_rows import Size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

V1 = "memory"
KERNEL_PARTS = ("slab", "kernel_stack", "pagetables", "percpu", "sock")


def read_sizes() -> list[Size]:
    lines = read("/proc/meminfo").replace(":", " ")
    total, available = (read_field(lines, name) << 10 for name in ("MemTotal", "MemAvailable"))
    own = read_own_cgroups()
    return [Size(total, total - available), *read_limits(own, read_paths("self"))]


def read_limits(own: Mapping[str, str], paths: Mapping[str, str]) -> list[Size]:
    """Of our own cgroups and all above them; usage without page cache."""
    found = []
    for at, path in upwards(own.get(V1, ""), paths.get(V1, ""), "memory.limit_in_bytes"):
        limit = read_number(f"{at}/memory.limit_in_bytes")
        if 0 < limit < NO_LIMIT:
            stat = read(f"{at}/memory.stat")
            names = ("total_active_file", "total_inactive_file")
            cache = sum(read_field(stat, name) for name in names)
            used = read_number(f"{at}/memory.usage_in_bytes") - cache
            found.append(Size(limit, max(used, 0), V1, path))
    for at, path in upwards(own.get(V2, ""), paths.get(V2, ""), "cgroup.procs"):
        if limit := read_number(f"{at}/memory.max"):
            found.append(Size(limit, used_v2(read(f"{at}/memory.stat")), V2, path))
    return found


def read_paths(pid: int | str) -> dict[str, str]:
    """Where a process is in the trees that count memory."""
    found = {}
    for line in read(f"/proc/{pid}/cgroup").splitlines():
        number, controllers, path = line.split(":", 2)
        for name in [V2] if number == "0" else controllers.split(","):
            found[name] = path
    return found


def is_below(pid: int, size: Size) -> bool:
    """Whether what that process holds is counted by this limit."""
    path = read_paths(pid).get(size.tree, "")
    return path == size.path or path.startswith(size.path.rstrip("/") + "/")


def used_v2(stat: str) -> int:
    kernel = read_field(stat, "kernel") or sum(read_field(stat, part) for part in KERNEL_PARTS)
    return read_field(stat, "anon") + read_field(stat, "shmem") + kernel


def upwards(at: str, path: str, mark: str) -> Iterator[tuple[str, str]]:
    """Each directory with its path in the tree."""
    while at and os.path.exists(f"{at}/{mark}"):
        yield at, path
        at, path = os.path.dirname(at), os.path.dirname(path)


def read_number(path: str) -> int:
    text = read(path).strip()
    return int(text) if text.isdigit() else 0


def largest_bytes(sizes: Sequence[Size], cap_bytes: int | None) -> int:
    """What there could be with nothing else on the machine."""
    whole = int(BUDGET_SHARE * min(size.bytes for size in sizes))
    return min(whole, cap_bytes) if cap_bytes is not None else whole
