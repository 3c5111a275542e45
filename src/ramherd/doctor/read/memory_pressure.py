"""Memory pressure (PSI), and the programs that end processes when memory is short."""

import os
from collections.abc import Iterator
from pathlib import Path

from ramherd.doctor.facts import Group, Killers, OomVictim, PressureShares
from ramherd.doctor.read.host import Host
from ramherd.measure.cgroups import parse_flat
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
    return OomVictim(pid, name, scores[0], rss) if rss else None


def read_groups(host: Host) -> Iterator[Group]:
    """The cgroups with processes below user.slice, which systemd-oomd monitors."""
    top = host.root / "sys/fs/cgroup"
    for path, _dirs, _files in os.walk(top / "user.slice"):
        group = Path(path)
        if (read_text(group / "cgroup.procs") or "").strip():
            swap = (read_text(group / "memory.swap.current") or "").strip()
            stat = parse_flat(read_text(group / "memory.stat") or "")
            yield Group(
                f"/{group.relative_to(top)}",
                int(swap) if swap.isdigit() else 0,
                stat.get("pgscan", 0),
                read_rank(path),
            )


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
