"""Memory pressure, and the process that would be killed first when memory is short."""

import re
from collections.abc import Iterator, Sequence

from ramherd.core.model import Machine
from ramherd.core.units import format_size
from ramherd.doctor.facts import Group, Killers, MemoryFacts, OomVictim, PressureShares
from ramherd.doctor.findings import Finding, Severity

SOME_MUCH, FULL_MUCH = 10.0, 10.0
# The kernel reclaims pages only when a few percent are left.
ENOUGH_SHARE = 0.3
FIND_STALLED = "grep some $(find /sys/fs/cgroup -name memory.pressure) | sort -t= -k3 -n | tail"
# earlyoom adds this to the score for --prefer and subtracts it for --avoid.
PREFERENCE = 300
# The cgroups of a login, a tab, tmux, a terminal, an editor with a terminal.
_SESSIONS = re.compile(
    r"^(?:session-|vte-|tmux-)|[Tt]erminal|konsole|kitty|alacritty|wezterm|ghostty|code\b"
)
# A process of less than a tenth of the RAM goes first only where none is larger: on a machine that
# does nothing. A manager has an oom_score_adj of 100.
CARRIER_SHARE, CARRIER_ADJUSTED = 0.1, 300
BUSY_SHARE = 0.5
# The end of one of these also ends every process started from it.
CARRIERS = {
    "sshd", "tmux: server", "screen", "zellij", "systemd", "gnome-shell", "kwin_wayland", "Xorg",
    "plasmashell", "sway", "gnome-terminal-", "konsole", "kitty", "alacritty", "wezterm-gui",
    "ramherd", "code", "dockerd", "containerd", "postgres",
}  # fmt: skip


def check_pressure(pressure: PressureShares | None, machine: Machine) -> Iterator[Finding]:
    if pressure is None:
        yield Finding(
            "psi", Severity.HINT, "the kernel does not report pressure (PSI)",
            "a lack of memory is then noticed only when it is too late",
            "sudo sed -i 's/^GRUB_CMDLINE_LINUX=\"/&psi=1 /' /etc/default/grub && sudo update-grub",
        )  # fmt: skip
        return
    what = (
        f"tasks waited for memory {pressure.some_60:g} % of the last minute, "
        f"all of them {pressure.full_60:g} %"
    )
    numbers = {"some_60": pressure.some_60, "full_60": pressure.full_60}
    command = "cat /proc/pressure/memory; ps -eo pid,rss,comm --sort=-rss | head"
    much = pressure.full_60 >= FULL_MUCH or pressure.some_60 >= SOME_MUCH
    if much and machine.available_bytes > ENOUGH_SHARE * machine.total_bytes:
        why = "with so much available it is a cgroup at its own limit, not the machine"
        yield Finding("psi", Severity.HINT, what, why, FIND_STALLED, numbers=numbers)
    elif pressure.full_60 >= FULL_MUCH:
        why = "the machine does little else than look for memory: end something now"
        yield Finding("psi", Severity.PROBLEM, what, why, command, numbers=numbers)
    elif pressure.some_60 >= SOME_MUCH:
        why = "memory is short: another agent makes all of them slower"
        yield Finding("psi", Severity.WARNING, what, why, command, numbers=numbers)
    else:
        yield Finding("psi", Severity.OK, what, numbers=numbers)


def check_killers(killers: Killers, memory: MemoryFacts) -> Iterator[Finding]:
    machine = memory.machine
    victim = first_by_score(killers.candidates)
    yield check_victim("kernel", "the kernel", victim, likely=is_likely(victim, machine))
    for name, argv in sorted(killers.daemons.items()):
        if name == "earlyoom":
            victim = choose_earlyoom(killers.candidates, argv)
            preferred = victim is not None and matches(option(argv, "--prefer"), victim.name)
            likely = preferred or is_likely(victim, machine)
            yield check_victim("earlyoom", "earlyoom", victim, likely=likely)
        elif name == "systemd-oomd":
            yield from check_oomd(killers.groups, has_swap=bool(memory.swaps))
        else:
            yield Finding(
                name, Severity.HINT, f"{name} runs",
                "it kills processes by its own rules, agents too",
                f"systemctl status {name}",
            )  # fmt: skip


def first_by_score(candidates: Sequence[OomVictim]) -> OomVictim | None:
    return max(candidates, key=lambda found: (found.score, found.rss_bytes), default=None)


def is_likely(victim: OomVictim | None, machine: Machine) -> bool:
    """Whether it would also be the first when memory is short, and others have grown."""
    if victim is None:
        return False
    is_large = victim.rss_bytes > CARRIER_SHARE * machine.total_bytes
    is_busy = machine.available_bytes < BUSY_SHARE * machine.total_bytes
    return is_large or is_busy or victim.adjusted >= CARRIER_ADJUSTED


def check_victim(check: str, who: str, victim: OomVictim | None, *, likely: bool) -> Finding:
    check = f"oom-{check}"
    if victim is None:
        return Finding(check, Severity.OK, f"{who} would find nothing to kill")
    what = (
        f"{who} would first kill {victim.name} (pid {victim.pid}, "
        f"{format_size(victim.rss_bytes)}, oom_score {victim.score})"
    )
    numbers = {"pid": victim.pid, "score": victim.score, "rss_bytes": victim.rss_bytes}
    if victim.name not in CARRIERS or not likely:
        return Finding(check, Severity.OK, what, numbers=numbers)
    return Finding(
        check, Severity.WARNING, what, "other programs end with it or depend on it",
        f"sudo choom -p {victim.pid} -n -500", numbers=numbers,
    )  # fmt: skip


def choose_earlyoom(candidates: Sequence[OomVictim], argv: Sequence[str]) -> OomVictim | None:
    """--prefer, --avoid and --ignore are patterns of names; --sort-by-rss ignores the score. A
    pattern that does not parse matches nothing.
    """
    prefer, avoid, ignore = (option(argv, name) for name in ("--prefer", "--avoid", "--ignore"))

    def weight(found: OomVictim) -> int:
        extra = PREFERENCE * (matches(prefer, found.name) - matches(avoid, found.name))
        return found.score + extra

    left = [found for found in candidates if not matches(ignore, found.name)]
    if "--sort-by-rss" in argv:
        return max(left, key=lambda found: found.rss_bytes, default=None)
    return max(left, key=lambda found: (weight(found), found.rss_bytes), default=None)


def option(argv: Sequence[str], name: str) -> str:
    for at, word in enumerate(argv):
        if word.startswith(f"{name}="):
            return word[len(name) + 1 :]
        if word == name and at + 1 < len(argv):
            return argv[at + 1]
    return ""


def matches(pattern: str, name: str) -> bool:
    try:
        return bool(pattern) and re.search(pattern, name) is not None
    except re.error:
        return False


def choose_group(groups: Sequence[Group], *, by_swap: bool) -> Group | None:
    """At pressure the one in which most pages are scanned, which is the largest while none are; by
    swap the one that has most there. Never an omitted group, an avoided one last.
    """
    left = [
        group for group in groups
        if group.rank != "omit" and (group.by_swap if by_swap else group.by_pressure)
    ]  # fmt: skip
    return max(
        left,
        key=lambda group: (
            group.rank != "avoid",
            group.swap_bytes if by_swap else group.used_bytes,
        ),
        default=None,
    )


def check_oomd(groups: Sequence[Group], *, has_swap: bool) -> Iterator[Finding]:
    """It watches the swap of some cgroups, and the pressure in others."""
    found = {"under memory pressure": choose_group(groups, by_swap=False)}
    if has_swap:
        found["when swap is full"] = choose_group(groups, by_swap=True)
    victims = [(when, group) for when, group in found.items() if group is not None]
    if not victims:
        yield Finding("oom-systemd-oomd", Severity.OK, "systemd-oomd runs, and watches no cgroup")
    for when, group in victims:
        yield check_group(group, when)


def check_group(group: Group, when: str) -> Finding:
    is_session = _SESSIONS.search(group.path.rsplit("/", 1)[-1])
    what = f"systemd-oomd would first kill all of {group.path} {when}"
    numbers = {"swap_bytes": group.swap_bytes, "used_bytes": group.used_bytes}
    if not is_session:
        return Finding("oom-systemd-oomd", Severity.OK, what, numbers=numbers)
    return Finding(
        "oom-systemd-oomd", Severity.WARNING, what,
        "it kills whole cgroups: all agents that were started from one terminal",
        "ramherd exec -- claude   # each in a cgroup of its own; what it watches: oomctl",
        numbers=numbers,
    )  # fmt: skip
