"""Memory pressure (PSI), and the programs that end processes when memory is short."""

import os
import re
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from ramherd.doctor.facts import Group, Killers, OomVictim, PressureShares
from ramherd.doctor.read.host import Host
from ramherd.measure.pressure import parse_percentages
from ramherd.system.procfs import (
    read_cmdline,
    read_oom_score,
    read_processes,
    read_rss_bytes,
    read_text,
)
from ramherd.system.procfs import read_pressure as read_pressure_file

DAEMONS = ("earlyoom", "systemd-oomd", "oomd", "nohang", "low-memory-monitor")
XATTRS = ("omit", "avoid")
NEVER_KILLED = -1000
ANSWER_S = 1.0
_PATH = re.compile(r"^\s*Path: (\S+)\s*$", re.MULTILINE)


def read_pressure(host: Host) -> PressureShares | None:
    text = read_pressure_file("memory", host.proc)
    return pressure_of(text) if text else None


def pressure_of(text: str) -> PressureShares:
    rows = parse_percentages(text)
    some, full = rows["some"], rows.get("full", {})
    return PressureShares(some["avg10"], some["avg60"], full.get("avg60", 0.0))


def read_killers(host: Host) -> Killers:
    daemons: dict[str, tuple[str, ...]] = {}
    candidates = []
    for proc in read_processes(host.proc):
        pid = proc.id.pid
        # The kernel cuts names at 15 bytes.
        if name := next((name for name in DAEMONS if name[:15] == proc.name), ""):
            daemons[name] = tuple(filter(None, read_cmdline(pid, host.proc) or ()))
        if (found := read_candidate(pid, proc.name, host.proc)) is not None:
            candidates.append(found)
    candidates.sort(key=lambda found: (-found.score, found.pid))
    groups = tuple(read_groups(host)) if "systemd-oomd" in daemons else ()
    return Killers(daemons, tuple(candidates), groups)


def read_candidate(pid: int, name: str, proc: Path) -> OomVictim | None:
    """None for a process that must not be killed (-1000), or has no memory (a kernel thread)."""
    scores = read_oom_score(pid, proc)
    if scores is None or scores[1] == NEVER_KILLED or pid == 1:
        return None
    rss = read_rss_bytes(pid, proc)
    return OomVictim(pid, name, scores[0], rss, scores[1]) if rss else None


def read_groups(host: Host) -> Iterator[Group]:
    """The cgroups that systemd-oomd may kill: below a cgroup that it watches, those without cgroups
    of their own, and those that are killed as one (memory.oom.group).
    """
    watched = parse_oomctl(ask_oomctl()) if host.root == Path("/") else None
    by_swap, by_pressure = watched or find_defaults(host)
    top = host.root / "sys/fs/cgroup"
    for path, below, _files in os.walk(top):
        group, name = Path(path), f"/{path[len(str(top)) :].strip('/')}"
        if (read_text(group / "memory.oom.group") or "").strip() == "1":
            below.clear()
        if below or not (read_text(group / "cgroup.procs") or "").strip():
            continue
        yield Group(
            name, read_size(group / "memory.swap.current"), read_size(group / "memory.current"),
            read_rank(path), by_swap=is_below(name, by_swap),
            by_pressure=is_below(name, by_pressure),
        )  # fmt: skip


def ask_oomctl() -> str:
    """What the daemon watches, as it reports it itself."""
    try:
        done = subprocess.run(
            ["oomctl"], capture_output=True, timeout=ANSWER_S, check=False,
            stdin=subprocess.DEVNULL, env={**os.environ, "PAGER": "cat", "SYSTEMD_PAGER": "cat"},
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode(errors="replace") if done.returncode == 0 else ""


Watched = tuple[list[str], list[str]]


def parse_oomctl(text: str) -> Watched | None:
    """The cgroups whose swap and whose pressure it watches; None if it did not answer."""
    _before, found, rest = text.partition("Swap Monitored CGroups:")
    if not found:
        return None
    swap, _found, pressure = rest.partition("Memory Pressure Monitored CGroups:")
    return _PATH.findall(swap), _PATH.findall(pressure)


def find_defaults(host: Host) -> Watched:
    """As distributions set it: the swap of the machine, the pressure of each user's manager."""
    users = (host.root / "sys/fs/cgroup/user.slice").glob("user-*.slice/user@*.service")
    return ["/"], [f"/user.slice/{path.parent.name}/{path.name}" for path in users]


def is_below(path: str, tops: Sequence[str]) -> bool:
    return any(path == top or path.startswith(f"{top.rstrip('/')}/") for top in tops)


def read_size(path: Path) -> int:
    text = (read_text(path) or "").strip()
    return int(text) if text.isdigit() else 0


def read_rank(path: str) -> str:
    """ManagedOOMPreference= of its unit."""
    for rank in XATTRS:
        for space in ("user", "trusted"):
            try:
                if os.getxattr(path, f"{space}.oomd_{rank}") == b"1":
                    return rank
            except OSError:
                continue
    return ""
