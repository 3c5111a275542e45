"""macOS: the machine's memory and its processes, from the output of its own commands.

Written from their manual pages and published output, not tried on a Mac. It is not used yet: runs
on a Mac also need a keeper without epoll, splice and /proc, which is not built. A command takes at
least 5 ms, so a caller that needs it twice a second has to call it outside the loop.
"""

import re
import subprocess
import time
from dataclasses import dataclass
from enum import IntEnum

from ramherd.core.errors import RamherdError
from ramherd.core.units import GIB, KIB, MIB, TIB

_PAGE_SIZE = re.compile(r"page size of (\d+) bytes")
_PAGES = re.compile(r'^"?([^":]+)"?:\s+(\d+)\.?$', re.MULTILINE)
_SWAP = re.compile(r"(total|used|free) = ([\d.]+)([KMGT])")
_FOOTPRINT = re.compile(r"^\s*(\d+)\*?\s+(\d+)([BKMGT])[+-]?\s*$", re.MULTILINE)
_PROCESS = re.compile(r"\s*(\d+)\s+(\d+)\s+(\d+)\s+(\w+)\s+(\d+)\s+(\w{3} .{15} \d{4})\s+(.+)")
_UNITS = {"B": 1, "K": KIB, "M": MIB, "G": GIB, "T": TIB}
_STARTED = "%a %b %d %H:%M:%S %Y"

VM_STAT = ("vm_stat",)
SYSCTL = ("sysctl", "hw.memsize", "vm.swapusage", "kern.memorystatus_vm_pressure_level")
TOP = ("top", "-l", "1", "-stats", "pid,mem")
# In the C locale the start time is in English, and so of fixed width.
PS = ("env", "LC_ALL=C", "ps", "-axo", "pid,ppid,pgid,sess,rss,lstart,comm")
COMMAND_S = 10.0


class PressureLevel(IntEnum):
    """kern.memorystatus_vm_pressure_level: the pressure that the kernel reports to applications."""

    NORMAL = 1
    WARN = 2
    CRITICAL = 4


@dataclass(frozen=True, slots=True)
class Sysctl:
    memory_bytes: int
    swap_used_bytes: int
    # Older systems, and some virtual machines, do not report it.
    pressure: PressureLevel | None


@dataclass(frozen=True, slots=True)
class MacProcess:
    """A line of ps. `rss` does not include compressed memory; the footprint, from top, does."""

    pid: int
    ppid: int
    pgid: int
    session: str
    rss_bytes: int
    # In whole seconds; together with the pid, the best identity that a command reports.
    started_s: float
    name: str


def parse_vm_stat(text: str) -> dict[str, int]:
    """Bytes by name, such as `Pages free`. The counters below are also pages, since boot."""
    size = _PAGE_SIZE.search(text)
    if size is None:
        raise RamherdError("cannot parse the output of vm_stat: it has no page size")
    return {name: int(number) * int(size[1]) for name, number in _PAGES.findall(text)}


def parse_sysctl(text: str) -> Sysctl:
    fields = dict(line.split(": ", 1) for line in text.splitlines() if ": " in line)
    if "hw.memsize" not in fields:
        raise RamherdError("cannot parse the output of sysctl: it has no hw.memsize")
    swap = {
        name: int(float(number) * _UNITS[unit])
        for name, number, unit in _SWAP.findall(fields.get("vm.swapusage", ""))
    }
    level = fields.get("kern.memorystatus_vm_pressure_level", "").strip()
    known = level.isdigit() and int(level) in tuple(PressureLevel)
    return Sysctl(
        memory_bytes=int(fields["hw.memsize"]),
        swap_used_bytes=swap.get("used", 0),
        pressure=PressureLevel(int(level)) if known else None,
    )


def available_bytes(total_bytes: int, pages: dict[str, int]) -> int:
    """Total memory less the memory that Activity Monitor calls used: applications, wired, and the
    compressor's own.

    Not free + inactive: inactive pages are mostly anonymous, and freeing them means compressing or
    swapping, which ramherd exists to prevent.
    """
    try:
        applications = pages["Anonymous pages"] - pages["Pages purgeable"]
        used = applications + pages["Pages wired down"] + pages["Pages occupied by compressor"]
    except KeyError as missing:
        raise RamherdError(f"vm_stat has no {missing.args[0]!r}: macOS too old") from None
    return max(total_bytes - used, 0)


def parse_footprints(text: str) -> dict[int, int]:
    """Physical footprint by pid: resident, compressed and swapped memory of a process alone.

    A sign after the number means that it changed. Values that top may not read are `N/A`, and are
    left out.
    """
    _head, _newline, table = text.partition("\nPID")
    return {int(pid): int(number) * _UNITS[unit] for pid, number, unit in _FOOTPRINT.findall(table)}


def parse_processes(text: str) -> list[MacProcess]:
    """All lines except the heading; a name may contain spaces."""
    found = []
    for line in text.splitlines()[1:]:
        match = _PROCESS.fullmatch(line.rstrip())
        if match is None:
            raise RamherdError(f"cannot parse this line of ps: {line!r}")
        pid, ppid, pgid, session, rss, started, name = match.groups()
        started_s = time.mktime(time.strptime(started, _STARTED))
        found.append(
            MacProcess(int(pid), int(ppid), int(pgid), session, int(rss) * KIB, started_s, name)
        )
    return found


def read_memory() -> tuple[int, int]:
    """Total and available bytes of the machine."""
    total = parse_sysctl(read_command(SYSCTL)).memory_bytes
    return total, available_bytes(total, parse_vm_stat(read_command(VM_STAT)))


def read_pressure() -> PressureLevel | None:
    return parse_sysctl(read_command(SYSCTL)).pressure


def read_footprints() -> dict[int, int]:
    return parse_footprints(read_command(TOP))


def read_processes() -> list[MacProcess]:
    return parse_processes(read_command(PS))


def read_command(argv: tuple[str, ...]) -> str:
    """The output, whatever the exit status: sysctl fails if a single name is missing."""
    try:
        done = subprocess.run(argv, capture_output=True, timeout=COMMAND_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise RamherdError(f"cannot run {' '.join(argv)}: {error}") from None
    return done.stdout.decode(errors="replace")
