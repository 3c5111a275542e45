"""Paths of files: state that is kept, and runtime files that a reboot may remove."""

import os
import stat
from pathlib import Path

from ramherd.core.errors import StoreError


def state_dir() -> Path:
    """`$XDG_STATE_HOME/ramherd`: the store, and the output of runs."""
    return private_dir(state_path(), "set XDG_STATE_HOME to a directory you can write to")


def state_path() -> Path:
    """Only the path: the directory is not created."""
    base = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    return Path(base).absolute() / "ramherd"


def runtime_dir() -> Path:
    """Another directory would have another ledger, so no hint proposes one."""
    path = runtime_path()
    return private_dir(path, f"the directory must belong to you: ls -ld {path} {path.parent}")


def runtime_path() -> Path:
    """Ignores XDG_RUNTIME_DIR, which cron, sudo and hooks lack: they use the same path."""
    uid = os.getuid()
    if chosen := os.environ.get("RAMHERD_RUNTIME_DIR"):
        return Path(chosen).absolute()
    if os.access(f"/run/user/{uid}", os.W_OK):
        return Path(f"/run/user/{uid}/ramherd")
    return Path(f"/tmp/ramherd-{uid}")


def private_dir(path: Path, hint: str) -> Path:
    """Created with mode 0700, or a link to such a directory. Refused if it is another user's, since
    anyone can create it first in /tmp. If others may enter it, it gets mode 0700 if its own name
    starts with `ramherd`; otherwise it is refused.
    """
    path = path.absolute()
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        problem = find_dir_problem(path)
        mode = path.stat().st_mode
    except OSError as error:
        what = f"is a link to {os.readlink(path)}, and there is none" if is_dangling(path) else ""
        message = f"{path} {what}" if what else f"cannot make {path}: {error.strerror}"
        raise StoreError(message, hint=hint) from None
    if problem is not None:
        raise StoreError(f"{path} {problem}", hint=hint)
    if mode & 0o077:
        if not path.resolve().name.startswith("ramherd"):
            raise StoreError(f"{path} is accessible to other users", hint=f"chmod 700 {path}")
        path.chmod(0o700)
    return path


def find_dir_problem(path: Path) -> str | None:
    """Why a path is not a directory of this user. A link to one is accepted if the link is our own
    or root's: another user's link could lead to any of our directories.
    """
    link, found = path.lstat(), path.stat()
    if link.st_uid not in (os.getuid(), 0):
        return f"belongs to {name_user(link.st_uid)}, not to {name_user(os.getuid())}"
    if not stat.S_ISDIR(found.st_mode):
        return "is not a directory"
    if found.st_uid != os.getuid():
        return f"belongs to {name_user(found.st_uid)}, not to {name_user(os.getuid())}"
    return None


def name_user(uid: int) -> str:
    import pwd  # noqa: PLC0415 - only for errors

    try:
        return f"{pwd.getpwuid(uid).pw_name} (uid {uid})"
    except KeyError:
        return f"uid {uid}"


def is_dangling(path: Path) -> bool:
    return path.is_symlink() and not path.exists()
