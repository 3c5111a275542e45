"""/proc: the machine's memory and its processes. Only the package `system/` opens /proc, and one
function here opens each file (/proc/PID/stat and children: `system/proc_stat.py`).

A process that is gone, or that we may not read, is not an error (`None`, or absent from the
result). `proc` is a directory that looks like /proc: tests have their own.

Nothing here imports pathlib or dataclasses: the hook and `exec` load it at each start.
"""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING

from ramherd.core.errors import RamherdError
from ramherd.core.procid import Process, ProcId
from ramherd.core.units import KIB
from ramherd.system.proc_stat import (
    CSTIME,
    CUTIME,
    FLAGS,
    GONE,
    PGID,
    PPID,
    PROC,
    RSS,
    SID,
    START,
    STATE,
    STIME,
    TTY,
    UTIME,
    Root,
    read_children,
    read_stat,
    read_stats,
    split_stat,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = os.sysconf("SC_PAGE_SIZE")
FIRST_NAMESPACES = {"uts": 4026531838, "ipc": 4026531839, "pid": 4026531836}
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
PF_KTHREAD = 0x00200000
# At most this much of an environment is read.
ENVIRON_BYTES = 1 << 20
# Below these are devices and interfaces of the kernel, not files with content.
DEVICES = ("/dev/", "/proc/", "/sys/")
# No agent has more: a larger tree is not read to its end.
MOST_DESCENDANTS = 512


# Processes


def parse_stat(text: bytes, uid: int = 0) -> Process:
    """A line of /proc/PID/stat; `uid` is the owner of the file."""
    name, rest = split_stat(text)
    return Process(
        ProcId(int(text[: text.index(b"(")]), int(rest[START])),
        name.decode(errors="surrogateescape"),
        rest[STATE].decode(),
        int(rest[PPID]),
        int(rest[PGID]),
        int(rest[SID]),
        int(rest[TTY]),
        uid,
        int(rest[UTIME]) + int(rest[STIME]),
        int(rest[RSS]) * PAGE,
        bool(int(rest[FLAGS]) & PF_KTHREAD),
        int(rest[CUTIME]) + int(rest[CSTIME]),
    )


def read_process(pid: int, proc: Root = PROC) -> Process | None:
    """Includes zombies: check `is_alive`."""
    found = read_stat(pid, proc)
    return None if found is None else parse_stat(*found)


def read_processes(proc: Root = PROC) -> Iterator[Process]:
    """Every process, including zombies and kernel threads."""
    for _pid, text, uid in read_stats(proc):
        yield parse_stat(text, uid)


def read_table(proc: Root = PROC) -> dict[int, Process]:
    """Living processes by pid, without kernel threads: 13 ms of CPU for 1000 processes."""
    return {
        process.id.pid: process
        for process in read_processes(proc)
        if process.is_alive and not process.is_kernel_thread
    }


def is_running(proc_id: ProcId, proc: Root = PROC) -> bool:
    """Whether this process is still alive, and its pid was not reused."""
    found = read_process(proc_id.pid, proc)
    return found is not None and found.id == proc_id and found.is_alive


def read_own_id() -> ProcId:
    """The identity of this process."""
    found = read_process(os.getpid())
    return found.id if found is not None else ProcId(os.getpid(), 0)


def read_descendants(root: int, proc: Root = PROC) -> list[int]:
    """All descendants of a process, by the kernel's lists of children: cheap for a small tree, and
    empty on a kernel without such lists. `system/descendants.py` finds them in the whole table.
    """
    found: list[int] = []
    edge = [root]
    while edge and len(found) < MOST_DESCENDANTS:
        edge = [child for pid in edge for child in read_children(pid, proc) or ()]
        found += edge
    return found[:MOST_DESCENDANTS]


def read_statm(pid: int | str, proc: Root = PROC) -> tuple[int, int]:
    """(resident bytes, the part that is shared or file-backed); zeros if the process is gone."""
    text = read_bytes_of(f"{proc}/{pid}/statm")
    if not text:
        return 0, 0
    _size, resident, shared = text.split(maxsplit=3)[:3]
    return int(resident) * PAGE, int(shared) * PAGE


def read_anonymous_bytes(pid: int | str, proc: Root = PROC) -> int:
    """Approximately the memory of this process alone: resident minus file-backed and shared pages.

    statm is 30 times cheaper than smaps_rollup; pages shared since a fork count twice.
    """
    resident, shared = read_statm(pid, proc)
    return max(resident - shared, 0)


def read_rss_bytes(pid: int, proc: Root = PROC) -> int:
    """The resident memory, including shared pages; 0 if the process is gone."""
    return read_statm(pid, proc)[0]


def read_pss_bytes(pid: int, proc: Root = PROC) -> int | None:
    """The proportional set size; None if we may not read it. 13 ms for 500 MB."""
    text = read_bytes_of(f"{proc}/{pid}/smaps_rollup") or b""
    at = text.find(b"\nPss:")
    return int(text[at + 5 :].split(None, 1)[0]) * KIB if at >= 0 else None


def read_status(pid: int, proc: Root = PROC) -> str:
    return read_text(f"{proc}/{pid}/status") or ""


def read_peak_rss_bytes(pid: int, proc: Root = PROC) -> int:
    return parse_kib_fields(read_status(pid, proc)).get("VmHWM", 0)


def ignores_signal(pid: int, number: int, proc: Root = PROC) -> bool:
    """Whether the process ignores a signal, as with nohup and SIGHUP."""
    _before, found, rest = read_status(pid, proc).partition("\nSigIgn:")
    return bool(found) and bool(int(rest.split(None, 1)[0], 16) & 1 << (number - 1))


def read_environ(pid: int, proc: Root = PROC) -> dict[str, str] | None:
    """The variables that the process was started with; the first of two with the same name counts,
    as for getenv(3). None if we may not read them.
    """
    data = read_bytes_of(f"{proc}/{pid}/environ", ENVIRON_BYTES)
    if data is None:
        return None
    pairs = (entry.partition("=") for entry in data.decode(errors="replace").split("\0")[::-1])
    return {key: value for key, equals, value in pairs if equals}


def read_variable(pid: int, key: str, proc: Root = PROC) -> str | None:
    """One variable; None if it is unreadable or not set."""
    data = read_bytes_of(f"{proc}/{pid}/environ", ENVIRON_BYTES)
    _before, found, rest = b"".join((b"\0", data or b"")).partition(f"\0{key}=".encode())
    return rest.split(b"\0", 1)[0].decode(errors="replace") if found else None


def read_cmdline(pid: int, proc: Root = PROC, most_bytes: int = 1 << 20) -> tuple[str, ...] | None:
    """The arguments of the process, or the text that replaced them; empty for a zombie."""
    data = read_bytes_of(f"{proc}/{pid}/cmdline", most_bytes)
    if data is None:
        return None
    return tuple(data.rstrip(b"\0").decode(errors="surrogateescape").split("\0"))


def read_exe(pid: int, proc: Root = PROC) -> str | None:
    """The path of its binary, even if the file was replaced meanwhile."""
    path = read_link(f"{proc}/{pid}/exe")
    return None if path is None else path.removesuffix(" (deleted)")


def read_cwd(pid: int, proc: Root = PROC) -> str | None:
    return read_link(f"{proc}/{pid}/cwd")


def read_namespaces(pid: int | str, proc: Root = PROC) -> tuple[str, ...]:
    """Its network and pid namespaces; empty if we may not read them."""
    links = [read_link(f"{proc}/{pid}/ns/{kind}") for kind in ("net", "pid")]
    return tuple(link for link in links if link is not None) if None not in links else ()


def read_pid_namespace(proc: Root = PROC) -> str:
    """Our own. A pid and its start time identify a process within a namespace and a boot id."""
    return os.readlink(f"{proc}/self/ns/pid")


def is_in_first_namespaces(proc: Root = PROC) -> bool:
    """Whether we are in the namespaces that the kernel made at boot, so in no container. Their
    numbers are constants of the kernel (include/linux/proc_ns.h).
    """
    try:
        return all(
            os.readlink(f"{proc}/self/ns/{name}") == f"{name}:[{number}]"
            for name, number in FIRST_NAMESPACES.items()
        )
    except OSError:
        return False


def read_descriptors(pid: int | str, proc: Root = PROC) -> dict[int, str] | None:
    """The target of each descriptor; None if we may not read them."""
    found = {}
    try:
        for fd in os.listdir(f"{proc}/{pid}/fd"):
            try:
                found[int(fd)] = os.readlink(f"{proc}/{pid}/fd/{fd}")
            except FileNotFoundError:  # closed meanwhile
                continue
    except OSError:
        return None
    return found


def read_descriptor(pid: int, fd: int, proc: Root = PROC) -> str:
    """The target of one descriptor; empty if it is closed, or we may not read it."""
    return read_link(f"{proc}/{pid}/fd/{fd}") or ""


def is_written(pid: int, fd: int, proc: Root = PROC) -> bool:
    """Whether a descriptor of a process is open for writing."""
    text = read_bytes_of(f"{proc}/{pid}/fdinfo/{fd}") or b""
    _before, found, rest = text.partition(b"flags:")
    return bool(found) and int(rest.split(None, 1)[0], 8) & os.O_ACCMODE != os.O_RDONLY


def list_own_descriptors() -> list[int]:
    """The numbers of our open files, including the one used for this list."""
    return [int(fd) for fd in os.listdir(f"{PROC}/self/fd")]


def read_open_file(path: str, most_bytes: int) -> bytes | None:
    """The first bytes of a file that this process has open, through its existing descriptor:
    opening and closing another would drop all locks on the file (fcntl).
    """
    links = read_descriptors("self") or {}
    fd = next((fd for fd, link in links.items() if link == path), None)
    return None if fd is None else os.pread(fd, most_bytes, 0)


def open_descriptor(pid: int, fd: int, flags: int, proc: Root = PROC) -> int:
    """Opens a pipe, socket or file of another process again. OSError if that fails."""
    return os.open(f"{proc}/{pid}/fd/{fd}", flags | os.O_CLOEXEC)


def read_oom_score(pid: int, proc: Root = PROC) -> tuple[int, int] | None:
    """(oom_score, oom_score_adj): how likely the kernel is to kill it, and the adjustment."""
    texts = [read_text(f"{proc}/{pid}/{name}") for name in ("oom_score", "oom_score_adj")]
    score, added = (text or "" for text in texts)
    return (int(score), int(added)) if score and added else None


def read_cgroup(pid: int | str = "self", proc: Root = PROC) -> str:
    """The cgroups of a process; `measure/cgroups.py` parses the lines."""
    return read_text(f"{proc}/{pid}/cgroup") or ""


def read_ulimits(proc: Root = PROC) -> str:
    """The ulimits of this process, as a table."""
    return read_text(f"{proc}/self/limits") or ""


# The machine


@cache
def read_boot_id(proc: Root = PROC) -> str:
    """A new id after each boot: records from before are void."""
    return read_bytes(f"{proc}/sys/kernel/random/boot_id").decode().strip()


def read_meminfo_fields(proc: Root = PROC) -> dict[str, int]:
    """Bytes by name: MemTotal, MemAvailable, CommitLimit ..."""
    return parse_kib_fields(read_bytes(f"{proc}/meminfo").decode())


def read_meminfo(proc: Root = PROC) -> tuple[int, int]:
    """Total and available bytes of the machine."""
    fields = read_meminfo_fields(proc)
    try:
        return fields["MemTotal"], fields["MemAvailable"]
    except KeyError as missing:
        raise RamherdError(f"{proc}/meminfo has no {missing.args[0]}: kernel too old") from None


def read_uptime_ticks(proc: Root = PROC) -> int:
    """The uptime, on the clock of start times."""
    return int(float(read_bytes(f"{proc}/uptime").split()[0]) * TICKS_PER_S)


def read_vmstat(proc: Root = PROC) -> dict[str, int]:
    """Counters since boot: pswpin, oom_kill, balloon pages ..."""
    lines = (read_text(f"{proc}/vmstat") or "").splitlines()
    return {name: int(value) for name, value in map(str.split, lines)}


def read_pressure(kind: str, proc: Root = PROC) -> str:
    """`memory`, `cpu` or `io`. Kernels without pressure information (before 4.20, or disabled) have
    no such files, or refuse to read them.
    """
    try:
        return read_text(f"{proc}/pressure/{kind}") or ""
    except OSError:
        return ""


def read_mountinfo(proc: Root = PROC) -> str:
    """A line for each mount, ended by \\n alone; `measure/cgroups.py` parses them."""
    return read_text(f"{proc}/self/mountinfo") or ""


def read_mounts(proc: Root = PROC) -> list[tuple[str, str]]:
    """(mount point, type of the file system) of each mount."""
    mounts = []
    for line in read_mountinfo(proc).split("\n"):
        left, dash, right = line.partition(" - ")
        if dash:
            mounts.append((unescape(left.split(" ")[4]), right.split(" ", 1)[0]))
    return mounts


def read_swap_areas(proc: Root = PROC) -> list[str]:
    """A line for each swap area: path, type, size and use in KiB."""
    return (read_text(f"{proc}/swaps") or "").splitlines()[1:]


def read_locks(proc: Root = PROC) -> str:
    """A line for each lock on a file; `system/file_locks.py` parses them."""
    return read_text(f"{proc}/locks") or ""


def read_version(proc: Root = PROC) -> str:
    """The version line of the kernel."""
    return read_text(f"{proc}/version") or ""


def read_boot_options(proc: Root = PROC) -> str:
    """The options with which the kernel was booted."""
    return read_text(f"{proc}/cmdline") or ""


def sysctl_path(name: str, proc: Root = PROC) -> str:
    """The file of a value such as `vm.overcommit_memory`."""
    return f"{proc}/sys/{name.replace('.', '/')}"


def read_sysctl(name: str, proc: Root = PROC) -> str:
    """Empty if the kernel has no such value."""
    return (read_text(sysctl_path(name, proc)) or "").strip()


def read_net(name: str, proc: Root = PROC) -> list[str]:
    """The rows of `tcp`, `tcp6` or `unix` in our own network namespace, without the heading; none
    if the kernel lacks the protocol.
    """
    return (read_text(f"{proc}/net/{name}") or "").splitlines()[1:]


def has_procfs(proc: Root = PROC) -> bool:
    """Whether this is a system with a /proc."""
    return os.path.isdir(f"{proc}/self")


# Text


def parse_kib_fields(text: str) -> dict[str, int]:
    """`Name:  123 kB` lines of meminfo and status, in bytes."""
    fields = {}
    for line in text.splitlines():
        name, _, value = line.partition(":")
        words = value.split()
        if len(words) == 2 and words[1] == "kB" and words[0].isdigit():
            fields[name] = int(words[0]) * KIB
    return fields


def unescape(text: str) -> str:
    """mountinfo and swaps write a space in a path as \\040, byte by byte."""
    if "\\" not in text:
        return text
    import re  # noqa: PLC0415 - rarely used

    return re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), text)


def read_text(path: Root) -> str | None:
    """A file of a process, or None if the process is gone, or hidden from us (hidepid).

    Names of processes and arguments can be any bytes.
    """
    data = read_bytes_of(path)
    return None if data is None else data.decode(errors="surrogateescape")


def read_bytes_of(path: Root, most_bytes: int | None = None) -> bytes | None:
    try:
        return read_bytes(path, most_bytes)
    except GONE:
        return None


def read_bytes(path: Root, most_bytes: int | None = None) -> bytes:
    """A scan reads hundreds of files: without Path and file object each takes 5 us, not 15."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        data = b""
        while more := os.read(fd, 1 << 16):
            data += more
            if most_bytes is not None and len(data) >= most_bytes:
                return data[:most_bytes]
        return data
    finally:
        os.close(fd)


def read_link(path: str) -> str | None:
    try:
        return os.readlink(path)
    except OSError:
        return None
