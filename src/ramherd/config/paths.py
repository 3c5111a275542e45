"""Where files are: state that is kept, and runtime files that a reboot may take."""

import os
import stat
from pathlib import Path

from ramherd.core.errors import StoreError


def state_dir() -> Path:
    """`$XDG_STATE_HOME/ramherd`: the store, and what runs printed."""
    return private_dir(state_path(), "XDG_STATE_HOME")


def state_path() -> Path:
    """The path alone: the directory is not made."""
    base = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    return Path(base).absolute() / "ramherd"


def runtime_dir() -> Path:
    return private_dir(runtime_path(), "RAMHERD_RUNTIME_DIR")


def runtime_path() -> Path:
    """The same from cron, sudo and hooks, which have no XDG_RUNTIME_DIR: it is not used."""
    uid = os.getuid()
    if chosen := os.environ.get("RAMHERD_RUNTIME_DIR"):
        return Path(chosen).absolute()
    if os.access(f"/run/user/{uid}", os.W_OK):
        return Path(f"/run/user/{uid}/ramherd")
    return Path(f"/tmp/ramherd-{uid}")


def private_dir(path: Path, variable: str) -> Path:
    """Made with mode 0700; refused if it is another user's, since anyone can make it first in /tmp.
    If others may enter it, it gets mode 0700 if its name starts with `ramherd`, else it is refused.
    """
    path = path.absolute()
    hint = f"set {variable} to a directory you can write to"
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = path.lstat()
    except OSError as error:
        raise StoreError(f"cannot make {path}: {error.strerror}", hint=hint) from None
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        raise StoreError(f"{path} is not a directory of ours", hint=hint)
    if found.st_mode & 0o077:
        if not path.name.startswith("ramherd"):
            raise StoreError(f"{path} is open to others", hint=f"chmod 700 {path}, or {hint}")
        path.chmod(0o700)
    return path
