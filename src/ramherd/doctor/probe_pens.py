"""Finds the pen that works here: makes one and removes it, as a herd would."""

import os

from ramherd.act.pens import cgroup2
from ramherd.act.pens.selection import make_fleet
from ramherd.act.systemd_scope import can_start_scope, has_manager, needs_scope
from ramherd.doctor.facts import Pens
from ramherd.doctor.read.host import Host
from ramherd.measure.cgroups import Trees, read_trees
from ramherd.system.ids import new_id


def try_pens(host: Host) -> Pens:
    trees, is_root = read_trees(), host.uid == 0
    scope = not is_root and needs_scope(trees) and can_start_scope()
    kind, why = (cgroup2.KIND, "") if scope else try_fleet(trees)
    return Pens(
        kind=kind, why_weaker=why, through_scope=scope, is_root=is_root,
        has_systemd=(host.root / "run/systemd/system").is_dir(), has_manager=has_manager(),
        lingers=read_linger(host), has_v2_memory=has_v2_memory(trees),
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
    """logind keeps a file for each user who lingers; None without logind."""
    if not (host.root / "run/systemd/seats").is_dir():
        return None
    name = host.env.get("LOGNAME") or host.env.get("USER") or str(os.getuid())
    return (host.root / "var/lib/systemd/linger" / name).exists()
