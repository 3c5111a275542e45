"""Reads a machine theme by theme and reports findings, good and bad.

A theme that cannot be checked is reported as a hint: one odd file must not hide the rest.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property

from ramherd.config.paths import runtime_path, state_path
from ramherd.core.errors import RamherdError
from ramherd.core.model import Machine
from ramherd.core.policies import Policy
from ramherd.doctor.check import (
    clis,
    clock,
    disk,
    limits,
    memory,
    memory_pressure,
    pens,
    processes,
    runtimes,
    virtual,
    written_lines,
)
from ramherd.doctor.facts import InstalledCli, Line, MemoryFacts, Processes, ProcRow, Variable
from ramherd.doctor.findings import Finding, Severity
from ramherd.doctor.probe_pens import try_pens
from ramherd.doctor.read.clis import read_clis
from ramherd.doctor.read.clock import read_clock
from ramherd.doctor.read.disk import read_folders, read_state
from ramherd.doctor.read.host import Host
from ramherd.doctor.read.limits import read_kernel, read_limits
from ramherd.doctor.read.memory import read_memory
from ramherd.doctor.read.memory_pressure import read_killers, read_pressure
from ramherd.doctor.read.processes import read_running
from ramherd.doctor.read.runtimes import read_nodes, read_variables
from ramherd.doctor.read.virtual import read_virtual
from ramherd.doctor.read.written_lines import read_agent_units, read_written


class HostFacts:
    """The facts of one machine. Facts that several themes need are read once."""

    def __init__(
        self, host: Host, logs_keep_bytes: int = Policy().log_total_bytes,
        read_rows: Callable[[], Iterable[ProcRow]] = read_running,
    ) -> None:  # fmt: skip
        self.host = host
        self.logs_keep_bytes = logs_keep_bytes
        self.read_rows = read_rows

    @cached_property
    def memory(self) -> MemoryFacts:
        return read_memory(self.host)

    @property
    def machine(self) -> Machine:
        return self.memory.machine

    @cached_property
    def written(self) -> list[Line]:
        return read_written(self.host)

    @cached_property
    def variables(self) -> list[Variable]:
        return read_variables(self.host, self.written)

    @cached_property
    def clis(self) -> list[InstalledCli]:
        return read_clis(self.host)


def examine(facts: HostFacts) -> Iterator[Finding]:
    for theme, check in THEMES.items():
        yield from check_theme(theme, check, facts)


def check_theme(theme: str, check: "Check", facts: HostFacts) -> list[Finding]:
    try:
        return list(check(facts))
    # A file is missing, or has an unknown format.
    except (RamherdError, OSError, ArithmeticError, LookupError, TypeError, ValueError) as error:
        why = f"{type(error).__name__}: {error}"
        return [Finding(theme, Severity.HINT, f"{theme} could not be checked", why)]


def check_heap(facts: HostFacts) -> Iterator[Finding]:
    yield from runtimes.check_nodes(read_nodes(facts.host), facts.machine)
    bun = {cli.name for cli in facts.clis if cli.runtime == "bun"}
    yield from runtimes.check_variables(facts.variables, facts.machine, bun)


def check_limits(facts: HostFacts) -> Iterator[Finding]:
    yield from limits.check_kernel(read_kernel(facts.host), facts.memory)
    yield from limits.check_limits(read_limits(facts.host))


def check_pressure(facts: HostFacts) -> Iterator[Finding]:
    yield from memory_pressure.check_pressure(read_pressure(facts.host), facts.machine)
    yield from memory_pressure.check_killers(read_killers(facts.host), facts.memory)


def check_written(facts: HostFacts) -> Iterator[Finding]:
    yield from written_lines.check_wrong(facts.written)
    yield from written_lines.check_units(read_agent_units(facts.written))


def check_clis(facts: HostFacts) -> Iterator[Finding]:
    names = {variable.name for variable in facts.variables}
    yield from clis.check_clis(facts.clis, names)


def check_state(facts: HostFacts) -> Iterator[Finding]:
    keep = facts.logs_keep_bytes
    yield from disk.check_state(read_state(facts.host, state_path(), runtime_path(), keep))


def check_processes(facts: HostFacts) -> Iterator[Finding]:
    rows = tuple(facts.read_rows())
    yield from processes.check_processes(Processes(facts.machine, rows))


Check = Callable[[HostFacts], Iterable[Finding]]
THEMES: dict[str, Check] = {
    "memory": lambda facts: memory.check_memory(facts.memory),
    "virtual": lambda facts: virtual.check_virtual(read_virtual(facts.host), facts.machine),
    "limits": check_limits,
    "pens": lambda facts: pens.check_pens(try_pens(facts.host)),
    "pressure": check_pressure,
    "heap": check_heap,
    "clis": check_clis,
    "processes": check_processes,
    "written": check_written,
    "folders": lambda facts: disk.check_folders(read_folders(facts.host)),
    "state": check_state,
    "clock": lambda facts: clock.check_clock(read_clock(facts.host, state_path())),
}
