"""Where this process stands in the cgroup trees: `measure/cgroups.py` in small."""

from __future__ import annotations

import os

V2 = "cgroup2"


def read_own_cgroups() -> dict[str, str]:
    """The directory of our own cgroup in each v1 tree by controller, and in v2."""
    mounts = parse_mounts(read("/proc/self/mountinfo"))
    found = {}
    for line in read("/proc/self/cgroup").splitlines():
        number, controllers, path = line.split(":", 2)
        for name in [V2] if number == "0" else controllers.split(","):
            if name not in mounts:
                continue
            point, root = mounts[name]
            below = path == root or path.startswith(root.rstrip("/") + "/")
            inside = path[len(root) :] if below else path
            if os.path.isdir(place := os.path.join(point, inside.lstrip("/"))):
                found[name] = place
    return found


def parse_mounts(text: str) -> dict[str, tuple[str, str]]:
    """Mount point, and its root inside of the tree. A mount point with a space in it is left
    to `measure/cgroups.py`.
    """
    mounts: dict[str, tuple[str, str]] = {}
    for line in text.split("\n"):
        left, _, right = line.partition(" - ")
        kind, _source, options = [*right.split(" ", 2), "", ""][:3]
        if kind in ("cgroup", "cgroup2") and "\\" not in left:
            root, point = left.split(" ")[3:5]
            for name in [V2] if kind == "cgroup2" else options.split(","):
                mounts.setdefault(name, (point, root))
    return mounts


def read_field(text: str, name: str) -> int:
    """Of `name value` lines; 0 where there is none."""
    _, found, rest = f"\n{text}".partition(f"\n{name} ")
    return int(rest.split(None, 1)[0]) if found else 0


def read(path: str) -> str:
    """What is gone, or not there on this machine, reads as nothing."""
    try:
        with open(path, errors="surrogateescape") as file:
            return file.read()
    except OSError:
        return ""
