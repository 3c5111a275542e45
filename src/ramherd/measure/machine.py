"""The machine's memory as decisions see it."""

from pathlib import Path

from ramherd.measure.cgroups import Trees, read_limits
from ramherd.measure.procfs import PROC, read_meminfo
from ramherd.model import Machine


def read_machine(trees: Trees, proc: Path = PROC) -> Machine:
    """Read anew each time: virtual machines grow and shrink."""
    total, available = read_meminfo(proc)
    return Machine(total, available, tuple(read_limits(trees)))
