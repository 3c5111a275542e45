"""The machine's memory as decisions see it."""

from pathlib import Path

from ramherd.measure.cgroups import Trees, read_limit_bytes
from ramherd.measure.procfs import PROC, read_meminfo
from ramherd.model import Machine


def read_machine(trees: Trees, proc: Path = PROC) -> Machine:
    """Read anew each time: virtual machines grow and shrink."""
    total, available = read_meminfo(proc)
    limit = read_limit_bytes(trees)
    return Machine(total, available, min(total, limit) if limit else total)
