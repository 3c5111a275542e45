"""Whether a session may start: at once when there is plenty, else as `decide/admission.py` says.

The quick answer is yes or "ask": it never turns anybody away.
"""

from __future__ import annotations

import os

from ramherd.exec.own_cgroups import V2, read, read_field

TYPE_CHECKING = False  # `typing` costs 4 ms
if TYPE_CHECKING:
    from collections.abc import Mapping

# Policy.budget_share; a test holds the two together.
BUDGET_SHARE = 0.80
NO_LIMIT = 1 << 60


class Memory:
    """The machine's memory as `model.Machine` has it."""

    def __init__(self, total_bytes: int, available_bytes: int, limit_bytes: int) -> None:
        self.total_bytes = total_bytes
        self.available_bytes = available_bytes
        self.limit_bytes = limit_bytes


def read_memory(own: Mapping[str, str]) -> Memory:
    lines = read("/proc/meminfo").replace(":", " ")
    total, available = (read_field(lines, name) << 10 for name in ("MemTotal", "MemAvailable"))
    return Memory(total, available, min([total, *read_limits(own)]))


def read_limits(own: Mapping[str, str]) -> list[int]:
    """Of our own cgroups and all above them."""
    limits = []
    if "memory" in own:
        stat = read(f"{own['memory']}/memory.stat")
        limits.append(read_field(stat, "hierarchical_memory_limit"))
    at = own.get(V2, "")
    while at and os.path.exists(f"{at}/cgroup.procs"):
        text = read(f"{at}/memory.max").strip()
        limits.append(int(text) if text.isdigit() else 0)
        at = os.path.dirname(at)
    return [limit for limit in limits if 0 < limit < NO_LIMIT]


def is_plenty(need_bytes: int, memory: Memory) -> bool:
    """The rule of `decide/admission.py` for one job and no runs, where no limit is above us."""
    if memory.limit_bytes < memory.total_bytes:
        return False
    outside = max(memory.total_bytes - memory.available_bytes, 0)
    budget = int(BUDGET_SHARE * memory.limit_bytes) - outside
    return need_bytes <= min(budget, memory.available_bytes)


def most_bytes(memory: Memory) -> int:
    """What a session without a limit of its own may hold, as a whole herd may."""
    return int(BUDGET_SHARE * memory.limit_bytes) + (256 << 20)
