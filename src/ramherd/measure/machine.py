"""The machine's memory, as decisions use it."""

from collections.abc import Iterable

from ramherd.core.machine import Machine
from ramherd.measure.cgroups import Trees, read_limits
from ramherd.system.proc_stat import PROC, Root
from ramherd.system.procfs import read_meminfo, read_meminfo_fields


def read_machine(trees: Trees, proc: Root = PROC, herds: Iterable[tuple[int, int]] = ()) -> Machine:
    """Read again each time: virtual machines grow and shrink. `herds` are the other ramherds: (pid,
    bytes that its runs use).
    """
    total, available = read_meminfo(proc)
    others = list(herds)
    limits = tuple(read_limits(trees, others, proc))
    return Machine(total, available, limits, sum(used for _pid, used in others))


def read_free_swap(proc: Root = PROC) -> int:
    return read_meminfo_fields(proc).get("SwapFree", 0)
