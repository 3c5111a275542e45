"""Memory, what stands between us and the hardware, pens, pressure and those who kill."""

import os
import socket
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from ramherd.core.units import GIB, MIB
from ramherd.doctor.check.memory import check_shm
from ramherd.doctor.check.memory_pressure import check_oomd, choose_earlyoom, choose_group
from ramherd.doctor.check.pens import check_pens
from ramherd.doctor.facts import Group, OomVictim, Pens
from ramherd.doctor.probe_pens import is_answering, read_linger, try_pens
from ramherd.doctor.read.host import Host
from ramherd.doctor.read.memory import read_memory, read_shm
from ramherd.doctor.read.memory_pressure import parse_oomctl
from ramherd.system.procfs import FIRST_NAMESPACES
from support.roots import MEMINFO, PRESSURE, SWAPS, VMSTAT, Root

XEN = "sys/devices/system/xen_memory/xen_memory0"
PENS = Pens(
    kind="cgroup2", why_weaker="", through_scope=True, is_root=False, has_systemd=True,
    has_manager=True, lingers=True, may_linger=True, has_v2_memory=True,
)  # fmt: skip
# As `oomctl` prints it on Debian 12.
OOMCTL = """\
Dry Run: no
Swap Used Limit: 90.00%
Default Memory Pressure Limit: 60.00%
Default Memory Pressure Duration: 20s
System Context:
\tMemory: Used: 171.6M Total: 972.0M
\tSwap: Used: 0B Total: 1023.9M
Swap Monitored CGroups:
\tPath: /
\t\tSwap Usage: (see System Context)
Memory Pressure Monitored CGroups:
\tPath: /user.slice/user-1000.slice/user@1000.service
\t\tMemory Pressure Limit: 50.00%
\t\tPressure: Avg10: 0.00 Avg60: 0.00 Avg300: 0.00 Total: 0
\t\tCurrent Memory Usage: 4.5M
"""


@pytest.mark.parametrize(("some", "full", "level"), [
    ("5.00", "2.00", "ok"), ("25.00", "2.00", "warning"), ("40.00", "30.00", "problem"),
])  # fmt: skip
def test_pressure_where_memory_is_short(root: Root, some: str, full: str, level: str) -> None:
    """With much available, as on a healthy machine, it is a cgroup that is at its own limit."""
    root.write("proc/meminfo", MEMINFO.replace("12582912", "1000000", 1))
    root.write("proc/pressure/memory", PRESSURE.replace("0.50", some).replace("0.10", full))

    assert root.find("pressure", "psi").level == level


def test_a_swap_file_that_others_can_read(root: Root) -> None:
    """A warning with a fix; 0600 is quiet."""
    assert root.find("memory", "swap-file").level == "ok"
    (root.path / "swapfile").chmod(0o644)

    found = root.find("memory", "swap-file")

    assert found.level == "warning"
    assert found.fix is not None
    assert (found.fix.step, found.fix.undo) == ("chmod 600 /swapfile", "chmod 644 /swapfile")


@pytest.mark.parametrize(("size", "used", "level"), [
    (8 * GIB, 10 * MIB, "ok"),
    (8 * GIB, 2 * GIB, "warning"),
    (64 * MIB, 0, "warning"),
    (16 * GIB, 0, "hint"),
    (None, 0, "ok"),
])  # fmt: skip
def test_shared_memory(root: Root, size: int | None, used: int, level: str) -> None:
    """Much in it is RAM gone; a small one crashes browsers; a large one adds nothing."""
    memory = replace(read_memory(root.host()), shm_size_bytes=size, shm_used_bytes=used)

    assert check_shm(memory).level == level


def test_shared_memory_is_measured_where_it_is_mounted(root: Root) -> None:
    """Of a machine without it nothing is said."""
    assert read_shm(root.host()) == (None, 0)
    root.write("proc/self/mountinfo", "21 20 0:5 / /dev/shm rw - tmpfs tmpfs rw,size=1k\n")
    (root.path / "dev/shm").mkdir(parents=True)

    size, used = read_shm(root.host())

    assert size is not None
    assert 0 <= used <= size


def test_a_limit_around_us(root: Root) -> None:
    """It is where the budget comes from; a small one is a warning."""
    group = root.path / "sys/fs/cgroup/box"
    root.write("proc/self/cgroup", "0::/box\n")
    root.write("proc/self/mountinfo", f"30 20 0:26 / {group.parent} rw - cgroup2 cgroup2 rw\n")
    for name, text in (("cgroup.procs", ""), ("memory.stat", "anon 1000\n")):
        root.write(f"sys/fs/cgroup/box/{name}", text)
    levels = []
    for limit in ("max", str(8 * GIB), str(512 * MIB)):
        root.write("sys/fs/cgroup/box/memory.max", f"{limit}\n")
        levels.append(root.find("virtual", "limit").level.value)

    assert levels == ["ok", "ok", "warning"]


def test_wsl_with_systemd_is_only_a_hint(root: Root) -> None:
    """Its share of Windows' memory is worth knowing."""
    root.write("proc/version", "Linux version 6.6-Microsoft-standard-WSL2")
    (root.path / "run/systemd/system").mkdir(parents=True)

    assert root.find("virtual", "wsl").level == "hint"


@pytest.mark.parametrize(("inflated", "level"), [(0, "ok"), (1 << 20, "warning")])
def test_a_balloon_that_took_memory(root: Root, inflated: int, level: str) -> None:
    """Pages that the host holds; a driver with no device bound to it takes none."""
    driver = root.path / "sys/bus/virtio/drivers/virtio_balloon"
    driver.mkdir(parents=True)
    root.write("proc/vmstat", VMSTAT.replace("inflate 0", f"inflate {inflated}"))
    assert root.find("virtual", "balloon").what == "no memory balloon"
    (driver / "virtio0").symlink_to(root.path)

    assert root.find("virtual", "balloon").level == level


@pytest.mark.parametrize(("target", "level"), [(4194304, "ok"), (3145728, "warning")])
def test_xen_asks_for_memory_back(root: Root, target: int, level: str) -> None:
    """What is above its target has to be given up; Qubes is Xen with a name of its own."""
    root.write("proc/meminfo", "MemTotal: 4194304 kB\nMemAvailable: 3145728 kB\n")
    root.write(f"{XEN}/target_kb", f"{target}\n")
    root.write(f"{XEN}/info/current_kb", "4194304\n")
    assert root.find("virtual", "balloon").level == level
    assert root.find("virtual", "machine").what == "a virtual machine (Xen)"
    root.write("usr/share/qubes/marker-vm", "")

    found = root.find("virtual", "balloon")

    assert "Qubes OS, xen_balloon" in found.what
    assert root.find("virtual", "machine").what == "a virtual machine (Qubes OS)"


@pytest.mark.parametrize(("files", "name"), [
    ({}, "no known hypervisor"),
    ({"proc/cmdline": "console=ttyS0 reboot=k panic=1 pci=off\n"}, "Firecracker"),
    ({"sys/firmware/acpi/tables/DSDT": "DSDT\1\2\3\4\2wFIRECK"}, "Firecracker"),
    ({"sys/class/dmi/id/sys_vendor": "QEMU\n"}, "QEMU"),
    ({"sys/class/dmi/id/sys_vendor": "Microsoft Corporation\n",
      "sys/class/dmi/id/product_name": "Virtual Machine\n"}, "Hyper-V"),
    ({"sys/class/dmi/id/sys_vendor": "LENOVO\n", "proc/cmdline": "reboot=k panic=1"},
     "no known hypervisor"),
])  # fmt: skip
def test_virtual_machines_by_name(root: Root, files: dict[str, str], name: str) -> None:
    """From the firmware; Firecracker has none, and names itself in ACPI or by its boot words."""
    for path, text in files.items():
        root.write(path, text)

    assert name in root.find("virtual", "machine").what


@pytest.mark.parametrize(("marks", "name"), [
    ((".dockerenv",), "docker"),
    (("run/.containerenv",), "podman"),
    ((".dockerenv", "run/.containerenv"), "podman"),
    (("run/.containerenv", "run/secrets/kubernetes.io/token"), "kubernetes"),
])  # fmt: skip
def test_containers_by_name(root: Root, marks: tuple[str, ...], name: str) -> None:
    """An image of docker run by podman has both marks, a pod of CRI-O that of podman."""
    for mark in marks:
        root.write(mark, "")

    assert f"in a container ({name})" in root.find("virtual", "limit").what


def test_a_machine_made_from_an_image_is_no_container(root: Root) -> None:
    """In the namespaces of the boot there is none, whatever files the disk has."""
    root.write(".dockerenv", "")
    for name, number in FIRST_NAMESPACES.items():
        path = root.path / "proc/self/ns" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(f"{name}:[{number}]")

    assert root.find("virtual", "limit").what == "no container and no limit around us"


@pytest.mark.parametrize(("change", "level", "command"), [
    ({}, "ok", ""),
    ({"kind": "polling"}, "warning", "systemd-run --user --scope"),
    ({"kind": "polling", "has_manager": False}, "warning", "enable-linger $USER"),
    ({"kind": "polling", "is_root": True}, "warning", "systemd-run --scope"),
    ({"kind": "polling", "is_root": True, "has_systemd": False}, "warning", "mount -o remount"),
    ({"kind": "polling", "has_v2_memory": False}, "warning", "unified_cgroup_hierarchy=1"),
    ({"kind": "polling", "has_systemd": False}, "warning", ""),
])  # fmt: skip
def test_a_better_pen(change: dict[str, object], level: str, command: str) -> None:
    """What works is fine; polling says how to get more, and never to run agents as root."""
    found, *_linger = check_pens(replace(PENS, **change))  # type: ignore[arg-type]

    assert found.level == level
    assert command in found.command
    assert "sudo ramherd" not in found.command
    assert "sudo -E" not in found.command


def test_a_manager_that_ends_with_the_session() -> None:
    """Linger is a hint that can be fixed and undone; where nobody lingers it is not asked."""
    _kind, found = check_pens(replace(PENS, lingers=False))
    _kind, quiet = check_pens(PENS)

    assert found.fix is not None
    assert (found.fix.step, found.fix.undo) == (
        "loginctl enable-linger", "loginctl disable-linger",
    )  # fmt: skip
    assert (found.level, quiet.level) == ("hint", "ok")
    assert len(list(check_pens(replace(PENS, lingers=None)))) == 1


def test_linger_needs_root_where_there_is_no_polkit() -> None:
    """logind refuses the user, so no fix is offered: the command has sudo."""
    _kind, found = check_pens(replace(PENS, lingers=False, may_linger=False))

    assert found.fix is None
    assert found.command == "sudo loginctl enable-linger $USER"


def test_linger_is_a_file(root: Root) -> None:
    """By the name of the user, whatever the environment says; None without logind."""
    host = root.host(uid=4321, LOGNAME="root")
    assert read_linger(host) is None
    (root.path / "run/systemd/seats").mkdir(parents=True)
    assert read_linger(host) is False
    root.write("var/lib/systemd/linger/root", "")
    assert read_linger(host) is False
    root.write("var/lib/systemd/linger/4321", "")
    assert read_linger(host) is True


def test_linger_is_not_asked_for_where_no_bus_answers(tmp_path: Path) -> None:
    """A socket that was left behind is no bus."""
    path = tmp_path / "bus"
    with socket.socket(socket.AF_UNIX) as bus:
        bus.bind(str(path))
        assert not is_answering(path)
        bus.listen()
        assert is_answering(path)
    assert not is_answering(tmp_path / "none")


def test_a_pen_is_found_by_doing() -> None:
    """On this machine, whatever it has; nothing is left of the trial."""
    pens = try_pens(Host())

    assert pens.kind in ("cgroup2", "cgroup1", "polling")
    assert bool(pens.why_weaker) == (pens.kind == "polling")


EDITOR = OomVictim(1, "editor", 700, 100)
CLAUDE = OomVictim(2, "claude", 600, 300)
SSHD = OomVictim(3, "sshd", 650, 50)


@pytest.mark.parametrize(("argv", "first"), [
    ((), EDITOR),
    (("--prefer", "^claude$"), CLAUDE),
    (("--prefer=^(claude|node)$", "--avoid", "x"), CLAUDE),
    (("--avoid", "^editor$"), SSHD),
    (("--ignore", "editor|sshd"), CLAUDE),
    (("--sort-by-rss",), CLAUDE),
    (("--prefer", "("), EDITOR),
])  # fmt: skip
def test_whom_earlyoom_takes(argv: tuple[str, ...], first: OomVictim) -> None:
    """The highest score, 300 more where preferred, 300 less where avoided."""
    assert choose_earlyoom([EDITOR, CLAUDE, SSHD], argv) == first


def test_who_is_killed_first(root: Root) -> None:
    """By the kernel: the highest score; never pid 1, nor one that must not be killed."""
    root.process(1, "systemd", score=999)
    root.process(41, "safe", score=998, adjusted=-1000)
    root.process(42, "kthread", score=997, pages=0)
    root.process(43, "claude", score=800)

    found = root.find("pressure", "oom-kernel")

    assert found.level == "ok"
    assert "claude (pid 43" in found.what


def test_a_victim_that_takes_others_along(root: Root) -> None:
    """A multiplexer is worth a warning, if it is large or raised its own score."""
    root.process(43, "tmux: server", score=800, pages=1 << 20)
    assert root.find("pressure", "oom-kernel").level == "warning"
    root.process(43, "tmux: server", score=900, adjusted=500)
    assert root.find("pressure", "oom-kernel").level == "warning"


def test_a_small_manager_goes_first_only_where_nothing_runs(root: Root) -> None:
    """`systemd --user` has a score of 733 on an idle machine; when memory is short it counts."""
    root.process(43, "systemd", score=733, adjusted=100)
    idle = root.find("pressure", "oom-kernel")
    root.write("proc/meminfo", MEMINFO.replace("12582912", "4000000", 1))
    busy = root.find("pressure", "oom-kernel")

    assert (idle.level, busy.level) == ("ok", "warning")


def test_earlyoom_is_asked_for_its_preferences(root: Root) -> None:
    """From the command line of the one that runs; without it there is no such line."""
    assert "oom-earlyoom" not in [finding.check for finding in root.look("pressure")]
    root.process(50, "earlyoom", argv=("/usr/bin/earlyoom", "--prefer", "^sshd$"))
    root.process(51, "sshd", score=20)
    root.process(52, "claude", score=250)

    found = root.find("pressure", "oom-earlyoom")

    assert found.level == "warning"
    assert "sshd (pid 51" in found.what


def test_systemd_oomd_takes_what_it_watches(root: Root) -> None:
    """Under pressure a cgroup of the user's manager, not a login session; by swap any of them."""
    root.process(60, "systemd-oomd")
    manager = "user.slice/user-1000.slice/user@1000.service/app.slice"
    for path, used, swap in (
        ("user.slice/user-1000.slice/session-1.scope", 900, 500),
        (f"{manager}/app-firefox.scope", 100, 90),
        (f"{manager}/tmux-spawn-1.scope", 300, 80),
        ("system.slice/postgres.service", 800, 100),
    ):
        root.write(f"sys/fs/cgroup/{path}/cgroup.procs", "1\n")
        root.write(f"sys/fs/cgroup/{path}/memory.current", f"{used}\n")
        root.write(f"sys/fs/cgroup/{path}/memory.swap.current", f"{swap}\n")

    found = [one for one in root.look("pressure") if one.check == "oom-systemd-oomd"]

    assert [one.level.value for one in found] == ["warning", "warning"]
    assert f"kill all of /{manager}/tmux-spawn-1.scope under memory pressure" in found[0].what
    assert "/session-1.scope when swap is full" in found[1].what
    root.write("proc/swaps", SWAPS.splitlines()[0] + "\n")
    assert sum(one.check == "oom-systemd-oomd" for one in root.look("pressure")) == 1


def test_systemd_oomd_kills_a_group_of_processes_as_one(root: Root) -> None:
    """A cgroup with memory.oom.group, not one of those below it."""
    root.process(60, "systemd-oomd")
    top = "user.slice/user-1000.slice/user@1000.service/session.slice/box.service"
    root.write(f"sys/fs/cgroup/{top}/memory.oom.group", "1\n")
    root.write(f"sys/fs/cgroup/{top}/cgroup.procs", "1\n")
    root.write(f"sys/fs/cgroup/{top}/inner/cgroup.procs", "2\n")

    found = root.find("pressure", "oom-systemd-oomd")

    assert found.what.startswith(f"systemd-oomd would first kill all of /{top} ")


def test_what_systemd_oomd_watches_is_its_own_report() -> None:
    """Swap of the machine, pressure of a user's manager; no answer is none."""
    assert parse_oomctl(OOMCTL) == (["/"], ["/user.slice/user-1000.slice/user@1000.service"])
    assert parse_oomctl("") is None


def test_preferences_of_units_count() -> None:
    """Avoided ones last, omitted ones never."""
    groups = [
        Group("/a", 9, 9, "omit", by_pressure=True),
        Group("/b", 8, 8, "avoid", by_pressure=True),
        Group("/c", 1, 1, by_pressure=True),
        Group("/d", 7, 7, by_swap=True),
    ]

    assert choose_group(groups, by_swap=False) == groups[2]
    assert choose_group(groups[:2], by_swap=False) == groups[1]
    assert choose_group(groups, by_swap=True) == groups[3]
    (quiet,) = check_oomd(groups[:1], has_swap=True)
    assert quiet.level == "ok"


def test_a_daemon_of_other_rules_is_named(root: Root) -> None:
    """What it would do is not guessed."""
    root.process(61, "nohang")

    assert root.find("pressure", "nohang").level == "hint"


def test_a_pipe_where_a_file_should_be_is_not_waited_for(root: Root) -> None:
    """A start file that never answers stops nobody."""
    os.mkfifo(root.home / ".zshrc")
    os.mkfifo(root.path / "opt")
    root.write("etc/crontab", "0 * * * * me /opt\n")
    reader = threading.Thread(target=root.look, args=("heap",), daemon=True)
    reader.start()
    reader.join(10)

    assert not reader.is_alive()


def test_an_odd_machine_is_told_and_hides_nothing_else(root: Root, tmp_path: Path) -> None:
    """A theme that cannot be looked at is a hint with its reason."""
    root.write("proc/meminfo", "nonsense\n")

    found = root.find("memory", "memory")

    assert (found.level, found.what) == ("hint", "memory could not be checked")
    assert "MemTotal" in found.why
    assert root.find("clock", "clock").level == "ok"
