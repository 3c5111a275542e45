"""The pen that works here, and how to get a better one."""

from collections.abc import Iterator

from ramherd.doctor.facts import Pens
from ramherd.doctor.findings import Finding, RunCommand, Severity

LINGER = ("loginctl", "enable-linger")
UNLINGER = ("loginctl", "disable-linger")
LINGER_AS_ROOT = "sudo loginctl enable-linger $USER"
DELEGATE = "systemd-run --user --scope -p Delegate=yes ramherd run jobs.toml"
SWITCH_TO_V2 = (
    "sudo sed -i 's/^GRUB_CMDLINE_LINUX=\"/&systemd.unified_cgroup_hierarchy=1 /' "
    "/etc/default/grub && sudo update-grub"
)


def check_pens(pens: Pens) -> Iterator[Finding]:
    yield check_kind(pens)
    if not pens.is_root and pens.lingers is not None:
        yield check_linger(pens)


def check_kind(pens: Pens) -> Finding:
    if pens.kind != "polling":
        how = " through a scope of your user manager" if pens.through_scope else ""
        return Finding("pen", Severity.OK, f"{pens.kind}{how}: the kernel enforces the limits")
    return Finding(
        "pen", Severity.WARNING, "limits are polled, not enforced",
        f"a run can grow for half a second before that is noticed; {pens.why_weaker}", better(pens),
    )  # fmt: skip


def better(pens: Pens) -> str:
    """docs/pens.md has the details. Never `sudo ramherd`: files that root makes in the state
    directory shut its owner out.
    """
    if pens.is_root:
        if pens.has_systemd:
            return "systemd-run --scope -p Delegate=yes ramherd run jobs.toml"
        return "mount -o remount,rw /sys/fs/cgroup   # a container has to be started so"
    if not pens.has_systemd:
        return ""
    if not pens.has_v2_memory:
        return SWITCH_TO_V2
    return DELEGATE if pens.has_manager else LINGER_AS_ROOT


def check_linger(pens: Pens) -> Finding:
    if pens.lingers:
        return Finding("linger", Severity.OK, "your user manager outlives your sessions")
    return Finding(
        "linger", Severity.HINT, "your user manager ends with your last session",
        "from cron, or after logout, there is no cgroup of your own, and limits are only polled",
        " ".join(LINGER) if pens.may_linger else LINGER_AS_ROOT,
        RunCommand(LINGER, UNLINGER) if pens.may_linger else None,
    )  # fmt: skip
