"""The state and runtime directories, where they are as they should be; else `config/paths.py`."""

from __future__ import annotations

import os
import stat


class Place:
    """The directories of one session."""

    def __init__(self, run: str) -> None:
        self.state, self.runtime = state_dir(), runtime_dir()
        self.owners = f"{self.runtime}/owners"
        self.run = f"{self.state}/runs/{run}"
        self.tmp = f"{self.run}/tmp"


def state_dir() -> str:
    base = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    return checked(f"{base}/ramherd", "state_dir")


def runtime_dir() -> str:
    uid = os.getuid()
    if chosen := os.environ.get("RAMHERD_RUNTIME_DIR"):
        return checked(chosen, "runtime_dir")
    if os.access(f"/run/user/{uid}", os.W_OK):
        return checked(f"/run/user/{uid}/ramherd", "runtime_dir")
    return checked(f"/tmp/ramherd-{uid}", "runtime_dir")


def checked(path: str, which: str) -> str:
    """A directory of ours that nobody else can look into needs no more questions."""
    if is_private(path):
        return path
    import ramherd.config.paths  # noqa: PLC0415

    return str(getattr(ramherd.config.paths, which)())


def is_private(path: str) -> bool:
    try:
        found = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077
