"""Finds the pen that works here: makes one and removes it, as a herd would."""

from pathlib import Path

from ramherd.act.pens import cgroup2
from ramherd.act.pens.selection import make_fleet
from ramherd.act.systemd_scope import can_start_scope, has_manager, needs_scope
from ramherd.doctor.facts import Pens
from ramherd.doctor.read.host import Host
from ramherd.measure.cgroups import Trees, read_trees
from ramherd.strays.render import user_name
from ramherd.system.ids import new_id
from ramherd.system.unix_socket import connect

SYSTEM_BUS = "run/dbus/system_bus_socket"
POLKIT = "usr/share/dbus-1/system-services/org.freedesktop.PolicyKit1.service"
ANSWER_S = 1.0


def try_pens(host: Host) -> Pens:
    trees, is_root = read_trees(), host.uid == 0
    scope = not is_root and needs_scope(trees) and can_start_scope()
    kind, why = (cgroup2.KIND, "") if scope else try_fleet(trees)
    return Pens(
        kind=kind, why_weaker=why, through_scope=scope, is_root=is_root,
        has_systemd=(host.root / "run/systemd/system").is_dir(), has_manager=has_manager(),
        lingers=read_linger(host) if is_answering(host.root / SYSTEM_BUS) else None,
        may_linger=(host.root / POLKIT).exists(), has_v2_memory=has_v2_memory(trees),
    )  # fmt: skip


def try_fleet(trees: Trees) -> tuple[str, str]:
    fleet, why = make_fleet("auto", trees, new_id())
    fleet.remove()
    return fleet.kind, why


def has_v2_memory(trees: Trees) -> bool:
    if trees.v2 is None:
        return False
    try:
        return "memory" in (trees.v2 / "cgroup.controllers").read_text().split()
    except OSError:
        return False


def read_linger(host: Host) -> bool | None:
    """logind keeps a file for each user who lingers; None without logind. The environment may name
    another user: su keeps it.
    """
    if not (host.root / "run/systemd/seats").is_dir():
        return None
    return (host.root / "var/lib/systemd/linger" / user_name(host.uid)).exists()


def is_answering(path: Path) -> bool:
    """Whether a program accepts connections on this socket."""
    try:
        connect(path, ANSWER_S).close()
    except OSError:
        return False
    return True
