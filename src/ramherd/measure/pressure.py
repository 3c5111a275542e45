"""Signs that memory or the CPUs are short: the kernel's pressure files, and swapping in."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ramherd.measure.cgroups import Trees
from ramherd.system.proc_stat import PROC, Root
from ramherd.system.procfs import PAGE, read_pressure, read_text, read_vmstat


@dataclass(frozen=True, slots=True)
class Pressure:
    """Shares of the last ten seconds, from 0 to 1, and bytes per second read back from swap."""

    memory: float = 0.0
    cpu: float = 0.0
    swap_in_bytes_per_s: float = 0.0


def parse_percentages(text: str) -> dict[str, dict[str, float]]:
    """`some avg10=1.50 avg60=0.00 avg300=0.00 total=589610`, then the same for `full`."""
    return {
        kind: {name: float(value) for name, _, value in (part.partition("=") for part in fields)}
        for kind, *fields in (line.split() for line in text.splitlines())
    }


def parse_pressure(text: str) -> float:
    """The share of the last ten seconds in which some process had to wait."""
    return parse_percentages(text).get("some", {}).get("avg10", 0.0) / 100


def swapped_in_bytes(vmstat: Mapping[str, int]) -> int:
    """Bytes read back from swap since boot; the kernel counts pages."""
    return vmstat.get("pswpin", 0) * PAGE


@dataclass
class PressureGauge:
    """Swapping in is a rate, from two readings. In a full container the machine may have plenty of
    memory: the higher pressure of the two counts.
    """

    trees: Trees
    proc: Root = PROC
    _swapped_in: tuple[float, int] | None = field(default=None, repr=False)

    def read(self, at_s: float) -> Pressure:
        own = self.trees.v2 / "memory.pressure" if self.trees.v2 is not None else None
        memory = read_share(own) if own is not None and own.exists() else 0.0
        memory = max(memory, parse_pressure(read_pressure("memory", self.proc)))
        cpu = parse_pressure(read_pressure("cpu", self.proc))
        return Pressure(memory, cpu, self._swap_in(at_s))

    def _swap_in(self, at_s: float) -> float:
        now = swapped_in_bytes(read_vmstat(self.proc))
        before, self._swapped_in = self._swapped_in, (at_s, now)
        if before is None or at_s <= before[0]:
            return 0.0
        return (now - before[1]) / (at_s - before[0])


def read_share(path: Path) -> float:
    """0 on kernels without pressure files (before 4.20, or disabled), and if the files exist but
    cannot be read.
    """
    try:
        return parse_pressure(read_text(path) or "")
    except OSError:
        return 0.0
