"""macOS, from what its commands print: output written after their manuals, not from a Mac."""

import time

import pytest

from ramherd.core.errors import RamherdError
from ramherd.core.units import GIB, KIB, MIB
from ramherd.measure import darwin
from ramherd.measure.darwin import (
    PressureLevel,
    Sysctl,
    available_bytes,
    parse_footprints,
    parse_processes,
    parse_sysctl,
    parse_vm_stat,
)

PAGE = 16384
VM_STAT = """\
Mach Virtual Memory Statistics: (page size of 16384 bytes)
Pages free:                               20000.
Pages active:                            300000.
Pages inactive:                          290000.
Pages speculative:                         5000.
Pages throttled:                              0.
Pages wired down:                        130000.
Pages purgeable:                          10000.
"Translation faults":                 574921966.
Pages copy-on-write:                   38671927.
Pages zero filled:                    320571840.
Pages reactivated:                     75978152.
Pages purged:                          16666917.
File-backed pages:                       195000.
Anonymous pages:                         400000.
Pages stored in compressor:              900000.
Pages occupied by compressor:            250000.
Decompressions:                        73011127.
Compressions:                          92304380.
Pageins:                                7854456.
Pageouts:                                320741.
Swapins:                                 470789.
Swapouts:                                929703.
"""
SYSCTL = """\
hw.memsize: 17179869184
vm.swapusage: total = 2048.00M  used = 1017.25M  free = 1030.75M  (encrypted)
kern.memorystatus_vm_pressure_level: 2
"""
TOP = """\
Processes: 512 total, 3 running, 509 sleeping, 2871 threads \n\
2026/03/01 12:00:01
Load Avg: 2.11, 2.30, 2.45 \n\
CPU usage: 8.82% user, 11.76% sys, 79.41% idle \n\
SharedLibs: 512M resident, 100M data, 40M linkedit.
MemRegions: 310000 total, 5000M resident, 300M private, 1700M shared.
PhysMem: 15G used (2031M wired, 3906M compressor), 312M unused.
VM: 220T vsize, 4914M framework vsize, 470789(0) swapins, 929703(0) swapouts.
Networks: packets: 9000000/9G in, 5000000/2G out.
Disks: 7000000/100G read, 5000000/90G written.

PID    MEM  \n\
97301  3217K+
97300* 1180M
812    2G-
411    N/A
0      512B
"""
PS = """\
  PID  PPID  PGID   SESS    RSS STARTED                      COMM
    1     0     1      0  21312 Sun Mar  1 09:10:11 2026     /sbin/launchd
  812     1   812      0 998304 Sun Mar  1 11:00:00 2026     /Applications/Some App.app/Some App
97301   812 97301 1a2b3c   3217 Thu Feb 26 12:00:00 2026     node
"""


def test_pages_in_bytes() -> None:
    """By the page size that stands in the heading; quoted names too."""
    pages = parse_vm_stat(VM_STAT)
    assert pages["Pages free"] == 20000 * PAGE
    assert pages["Pages occupied by compressor"] == 250000 * PAGE
    assert "Translation faults" in pages
    assert len(pages) == 22


def test_available_is_what_activity_monitor_does_not_call_used() -> None:
    """Applications without what can be purged, wired, compressor."""
    used = (400000 - 10000 + 130000 + 250000) * PAGE
    assert available_bytes(16 * GIB, parse_vm_stat(VM_STAT)) == 16 * GIB - used
    assert available_bytes(GIB, parse_vm_stat(VM_STAT)) == 0


def test_the_machine_in_one_sysctl() -> None:
    """Memory, swap in use, the kernel's own word for pressure."""
    assert parse_sysctl(SYSCTL) == Sysctl(16 * GIB, int(1017.25 * MIB), PressureLevel.WARN)


@pytest.mark.parametrize("level", ["", "3", "x"])
def test_a_pressure_that_is_not_told(level: str) -> None:
    """Unknown is not the same as normal."""
    line = f"kern.memorystatus_vm_pressure_level: {level}\n" if level else ""
    assert parse_sysctl(f"hw.memsize: 1073741824\n{line}") == Sysctl(GIB, 0, None)


def test_footprints_by_pid() -> None:
    """With and without the signs of change; the lines above the table are no processes."""
    assert parse_footprints(TOP) == {
        97301: 3217 * KIB,
        97300: 1180 * MIB,
        812: 2 * GIB,
        0: 512,
    }


def test_processes_with_spaces_in_their_names() -> None:
    """Identity is pid and start."""
    launchd, app, node = parse_processes(PS)
    assert (launchd.pid, launchd.ppid, launchd.rss_bytes) == (1, 0, 21312 * KIB)
    assert app.name == "/Applications/Some App.app/Some App"
    assert (node.pgid, node.session) == (97301, "1a2b3c")
    assert time.localtime(node.started_s)[:6] == (2026, 2, 26, 12, 0, 0)


@pytest.mark.parametrize(
    ("parse", "text", "message"),
    [
        (parse_vm_stat, "what?", "the output of vm_stat: it has no page size"),
        (parse_sysctl, "sysctl: unknown oid", "the output of sysctl: it has no hw.memsize"),
        (parse_processes, "PID\nwhat?", "cannot parse this line of ps: 'what?'"),
        (lambda text: available_bytes(1, parse_vm_stat(text)), VM_STAT[:200], "macOS too old"),
    ],
)
def test_what_is_not_understood_is_an_error(parse: object, text: str, message: str) -> None:
    """Never a wrong number."""
    assert callable(parse)
    with pytest.raises(RamherdError, match=message.replace("?", r"\?")):
        parse(text)


def test_reading_is_running_and_parsing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each reader asks the command whose output it parses."""
    texts = {darwin.VM_STAT: VM_STAT, darwin.SYSCTL: SYSCTL, darwin.TOP: TOP, darwin.PS: PS}
    monkeypatch.setattr(darwin, "read_command", texts.__getitem__)
    total, available = darwin.read_memory()
    assert (total, available < total) == (16 * GIB, True)
    assert darwin.read_pressure() is PressureLevel.WARN
    assert 97301 in darwin.read_footprints()
    assert darwin.read_processes()[0].pid == 1


def test_a_command_that_is_not_there() -> None:
    """One line with the command."""
    with pytest.raises(RamherdError, match="cannot run ramherd-no-such-command -x"):
        darwin.read_command(("ramherd-no-such-command", "-x"))
