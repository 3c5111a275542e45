"""Every command that the doctor can print, by making what it is about: on made-up machines, and by
facts where a machine cannot be made up.
"""

import os
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from ramherd.core.model import Machine
from ramherd.core.units import GIB, MIB
from ramherd.doctor.check.clock import check_clock
from ramherd.doctor.check.disk import check_folders, check_state
from ramherd.doctor.check.memory import check_memory
from ramherd.doctor.check.pens import check_pens
from ramherd.doctor.check.processes import check_processes
from ramherd.doctor.check.virtual import check_virtual
from ramherd.doctor.facts import (
    Clock,
    Folder,
    MemoryFacts,
    OwnDirectory,
    Processes,
    ProcRow,
    State,
    Swap,
    Virtual,
)
from ramherd.doctor.findings import Finding, Severity
from support.roots import MEMINFO, PRESSURE, Root
from unit.doctor.test_checks import SPOILT
from unit.doctor.test_memory import PENS

MACHINE = Machine(2 * GIB, GIB)
NOW_S = 1_800_000_000.0
# Patterns of commands that are not for a fresh Debian in QEMU, and why.
ELSEWHERE = {
    r"^(docker|podman|kubectl|lxc) ": "on the host of a container",
    r"^notepad": "on Windows",
    r"update-grub$": "needs a boot loader; QEMU boots the kernel itself",
    r"^ramherd up ": "serves until it is stopped; tests/e2e/service starts it",
    r" NAME ": "the name of the user's own service",
    r"^loginctl ": "only where polkit runs, as on a desktop",
    r"/node --version$": "shows why that node does not work",
}


def find_all(top: Path) -> Iterator[Finding]:
    """Findings that are not ok, of each check and kind."""
    for finding in (*find_spoilt(top), *find_by_facts(top)):
        if finding.level is not Severity.OK:
            yield finding


def find_spoilt(top: Path) -> Iterator[Finding]:
    for number, (theme, check, _level, path, text) in enumerate(SPOILT):
        root = Root(top / str(number))
        root.write(path, text, mode=0o755 if path.startswith("bin") else None)
        yield root.find(theme, check)
    yield from find_killers(Root(top / "killers"))
    root = Root(top / "wsl")
    root.write("proc/version", "Linux version 6.6-Microsoft-standard-WSL2")
    (root.path / "run/systemd/system").mkdir(parents=True)
    yield root.find("virtual", "wsl")
    yield root.find("clis", "cli", root.host(PATH="/nowhere"))
    yield root.find("heap", "node-options", root.host(NODE_OPTIONS="--max-old-space-size=20000"))


def find_killers(root: Root) -> Iterator[Finding]:
    own = os.getpid()
    root.process(own, "tmux: server", score=900, adjusted=500)
    root.process(own + 1, "earlyoom", argv=("earlyoom",))
    root.process(own + 2, "nohang")
    root.process(own + 3, "systemd-oomd")
    scope = "user.slice/user-1000.slice/user@1000.service/app.slice/vte-spawn-1.scope"
    root.write(f"sys/fs/cgroup/{scope}/cgroup.procs", "1\n")
    root.write("proc/meminfo", MEMINFO.replace("12582912", "1000000", 1))
    root.write("proc/pressure/memory", PRESSURE.replace("0.50", "40.00").replace("0.10", "30.00"))
    yield from root.look("pressure")


def find_by_facts(top: Path) -> Iterator[Finding]:
    for pens in (
        {"has_manager": False}, {}, {"has_v2_memory": False}, {"has_systemd": False},
        {"is_root": True}, {"is_root": True, "has_systemd": False},
    ):  # fmt: skip
        yield from check_pens(replace(PENS, kind="polling", **pens))  # type: ignore[arg-type]
    for may in (True, False):
        yield from check_pens(replace(PENS, lingers=False, may_linger=may))
    for memory in memories():
        yield from check_memory(memory)
    yield from find_disk(top)
    yield from check_clock(Clock(86_400.0, True, "hpet", None))
    yield from check_clock(Clock(NOW_S, False, "tsc", None))
    rows = [ProcRow(1, "claude", "agent", 2 * GIB, growth_bytes_per_hour=GIB)]
    rows += [ProcRow(pid, "x", "mcp", MIB, "x", orphan="its client is gone") for pid in (2, 3)]
    yield from check_processes(Processes(MACHINE, tuple(rows)))
    for container in ("docker", "podman", "kubernetes", "lxc", ""):
        yield from check_virtual(
            Virtual(False, "", container, True, "xen_balloon", 0, GIB), MACHINE
        )


def memories() -> Iterator[MemoryFacts]:
    base = MemoryFacts(MACHINE, (), 0, 0, 0, None, 0, 0, 0, 0)
    for size, used in ((64 * MIB, 0), (2 * GIB, 0), (2 * GIB, GIB)):
        yield replace(base, shm_size_bytes=size, shm_used_bytes=used)
    yield replace(base, swaps=(Swap("/dev/sda2", GIB, GIB),))


def find_disk(top: Path) -> Iterator[Finding]:
    projects = top / "projects"
    projects.mkdir()
    yield from check_folders(
        [Folder(str(projects), 20 * GIB, 5, "", 0, True, False, 90 * GIB, 100 * GIB)]
    )
    place = OwnDirectory(str(projects), True, exists=True, mode=0o700, free_bytes=9 * GIB)
    changes = (
        {"is_ours": False}, {"is_ours": False, "keeps": False}, {"mode": 0o500}, {"mode": 0o755},
        {"free_bytes": MIB}, {"free_bytes": 500 * MIB}, {"file_system": "tmpfs"},
    )  # fmt: skip
    for change in changes:
        directory = replace(place, **change)
        yield from check_state(State((directory,), 0, GIB))
    yield from check_state(State((place,), 2 * GIB, GIB, store_error="not a database"))


def find_reason(command: str) -> str:
    """Why a command is not for this machine; empty if it is."""
    return next((why for words, why in ELSEWHERE.items() if re.search(words, command)), "")
