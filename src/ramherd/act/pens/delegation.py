"""Where on cgroup v2 a fleet may live: a cgroup whose controllers we may hand to children.

A cgroup with processes in it cannot do so ("no internal processes"), so whoever is in it moves
to a leaf first. Three places are tried: our own cgroup, when only we are in it (a scope, a
service with Delegate=yes) or when we are root of a container; and, as root, beside our own
cgroup. Never beside a cgroup that has a memory limit: that limit is meant for us.
"""

import errno
import os
from pathlib import Path
from typing import NamedTuple

from ramherd.act.pens.cgroup import refuse_read_only
from ramherd.core.errors import NoPen
from ramherd.measure.cgroups import read_limit_v2
from ramherd.system.files import remove_dirs, try_control, write_control

LEAF = "ramherd-leaf"
HINT = "run `systemd-run --user --scope -p Delegate=yes ramherd ...`, or pass --pen polling"


class Home(NamedTuple):
    parent: Path
    # What is written to subtree_control: `+memory +pids`.
    enable: str
    # Those who were in `parent` are in its leaf now.
    moved: bool = False


def find_home(own: Path) -> Home:
    controllers = (own / "cgroup.controllers").read_text().split()
    if "memory" not in controllers:
        raise NoPen(f"the cgroup {own} has no memory controller", hint="pass --pen polling")
    refuse_read_only(own)
    enable = "+memory +pids" if "pids" in controllers else "+memory"
    for home in (try_own, try_beside, try_moving):
        if (found := home(own, enable)) is not None:
            return found
    raise NoPen(f"the cgroup {own} is not ours to divide", hint=HINT)


def try_own(own: Path, enable: str) -> Home | None:
    """Enabled already, or empty but for us."""
    if can_enable(own, enable):
        return Home(own, enable)
    if set(read_pids(own)) <= {os.getpid()}:
        return move_to_leaf(own, enable)
    return None


def try_beside(own: Path, enable: str) -> Home | None:
    """As root, next to our own cgroup, where its parent hands out controllers."""
    parent = own.parent
    if os.getuid() != 0 or not (parent / "cgroup.procs").exists() or read_limit_v2(own):
        return None
    return Home(parent, enable) if can_enable(parent, enable) else None


def try_moving(own: Path, enable: str) -> Home | None:
    """As root of a container: its own cgroup is the top, and all in it move to a leaf."""
    return move_to_leaf(own, enable) if os.getuid() == 0 else None


def can_enable(path: Path, enable: str) -> bool:
    return try_control(f"{path}/cgroup.subtree_control", enable)


def move_to_leaf(own: Path, enable: str) -> Home | None:
    try:
        (own / LEAF).mkdir(exist_ok=True)
        move_all(own, own / LEAF)
        write_control(f"{own}/cgroup.subtree_control", enable)
    except OSError:
        undo_move(own)
        return None
    return Home(own, enable, moved=True)


def leave_home(home: Home) -> None:
    """Everybody back to where they were, once no other ramherd needs the controllers."""
    others = any(path.name != LEAF for path in home.parent.glob("ramherd-*"))
    if not home.moved or others:
        return
    try_control(f"{home.parent}/cgroup.subtree_control", home.enable.replace("+", "-"))
    undo_move(home.parent)


def undo_move(own: Path) -> None:
    if (own / LEAF).is_dir():
        move_all(own / LEAF, own)
        remove_dirs([str(own / LEAF)], 0.2)


def move_all(source: Path, target: Path) -> None:
    """Again and again, because they fork meanwhile; what has gone needs no moving."""
    for _round in range(100):
        pids = read_pids(source)
        if not pids:
            return
        for pid in pids:
            try:
                write_control(f"{target}/cgroup.procs", str(pid))
            except ProcessLookupError:
                continue
    raise OSError(errno.EBUSY, "processes keep coming", str(source))


def read_pids(path: Path) -> list[int]:
    return [int(pid) for pid in (path / "cgroup.procs").read_text().split()]
