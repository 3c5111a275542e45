"""/proc: the machine's memory and its processes.

A process that has gone is an ordinary answer (`None`, or absent from the result).
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ramherd.core.errors import RamherdError
from ramherd.core.model import ProcId
from ramherd.core.units import KIB

PROC = Path("/proc")
PAGE = os.sysconf("SC_PAGE_SIZE")
TICKS_A_S = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Proc:
    """One line of /proc/PID/stat, as far as it is asked for."""

    id: ProcId
    name: str
    state: str
    ppid: int
    pgid: int
    sid: int

    @property
    def is_alive(self) -> bool:
        return self.state not in "ZXx"


def parse_stat(text: str) -> Proc:
    """The name stands in brackets and may itself hold brackets, spaces and newlines."""
    left, right = text.index("("), text.rindex(")")
    rest = text[right + 2 :].split(maxsplit=20)
    return Proc(
        id=ProcId(int(text[:left]), int(rest[19])),
        name=text[left + 1 : right],
        state=rest[0],
        ppid=int(rest[1]),
        pgid=int(rest[2]),
        sid=int(rest[3]),
    )


def read_proc(pid: int, proc: Path = PROC) -> Proc | None:
    text = read_text(f"{proc}/{pid}/stat")
    return None if text is None else parse_stat(text)


def read_procs(proc: Path = PROC) -> Iterator[Proc]:
    """Every process there is."""
    for entry in os.listdir(proc):
        if entry.isdigit() and (found := read_proc(int(entry), proc)) is not None:
            yield found


def read_anonymous_bytes(pid: int, proc: Path = PROC) -> int:
    """What only this process holds, nearly: resident less file-backed and shared pages.

    statm is 30 times cheaper than smaps_rollup; pages shared since a fork count twice.
    """
    text = read_text(f"{proc}/{pid}/statm")
    if text is None:
        return 0
    _size, resident, shared = (int(field) for field in text.split()[:3])
    return max(resident - shared, 0) * PAGE


def read_environment_tag(pid: int, key: str, proc: Path = PROC) -> str | None:
    """The value of one variable at the start of a process; None if unreadable or not there."""
    try:
        data = (proc / str(pid) / "environ").read_bytes()
    except OSError:
        return None
    prefix = key.encode() + b"="
    for entry in data.split(b"\0"):
        if entry.startswith(prefix):
            return entry[len(prefix) :].decode(errors="replace")
    return None


def parse_kib_fields(text: str) -> dict[str, int]:
    """`Name:  123 kB` lines of meminfo and status, in bytes."""
    fields = {}
    for line in text.splitlines():
        name, _, value = line.partition(":")
        words = value.split()
        if len(words) == 2 and words[1] == "kB" and words[0].isdigit():
            fields[name] = int(words[0]) * KIB
    return fields


def read_meminfo(proc: Path = PROC) -> tuple[int, int]:
    """Total and available bytes of the machine."""
    path = proc / "meminfo"
    fields = parse_kib_fields(path.read_text())
    try:
        return fields["MemTotal"], fields["MemAvailable"]
    except KeyError as missing:
        raise RamherdError(f"{path} has no {missing.args[0]}: kernel too old") from None


def read_rss_bytes(pid: int, proc: Path = PROC) -> int:
    """What it holds now, with what it shares; 0 when it is gone."""
    text = read_text(f"{proc}/{pid}/statm")
    return int(text.split()[1]) * PAGE if text else 0


def read_peak_rss_bytes(pid: int, proc: Path = PROC) -> int:
    text = read_text(f"{proc}/{pid}/status")
    return 0 if text is None else parse_kib_fields(text).get("VmHWM", 0)


@cache
def read_boot_id(proc: Path = PROC) -> str:
    return (proc / "sys/kernel/random/boot_id").read_text().strip()


def is_same(proc_id: ProcId, proc: Path = PROC) -> bool:
    """Whether that very process is still alive."""
    found = read_proc(proc_id.pid, proc)
    return found is not None and found.id == proc_id and found.is_alive


def read_text(path: Path | str) -> str | None:
    """A file of a process, or None when the process has gone, or is none of ours (hidepid).

    Names of processes and arguments are bytes of any kind.
    """
    try:
        return read_bytes(path).decode(errors="surrogateescape")
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return None


def read_bytes(path: Path | str) -> bytes:
    """A scan reads hundreds of them: a path as text and no file object take 5 us, not 15."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        data = b""
        while more := os.read(fd, 1 << 16):
            data += more
        return data
    finally:
        os.close(fd)
