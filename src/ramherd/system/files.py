"""Small writes that must be atomic or must report errors. Used by the keeper: small imports."""

from __future__ import annotations

import errno
import os
import stat
import time

TYPE_CHECKING = False  # the keeper avoids the 1 MB that `typing` costs
if TYPE_CHECKING:
    from typing import Any

# A disk writes a sector of this size atomically.
RECORD_BYTES = 512


def open_private(path: str, flags: int) -> int:
    """Opens a plain file of this user, made with mode 0600. Does not follow a link. Anything else
    at the path is an OSError whose text names it.
    """
    problem = find_foreign(path)
    if problem is not None:
        raise PermissionError(errno.EPERM, problem, path)
    return os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)


def find_foreign(path: str) -> str | None:
    """Why a path is not a plain file of this user; None for one that does not exist yet.

    No other user can change the path between this check and the open: our files are in directories
    of this user with mode 0700. O_NOFOLLOW and this check are for files that existed before.
    """
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return None
    if stat.S_ISLNK(found.st_mode):
        return f"it is a symbolic link to {os.readlink(path)}, which is not followed"
    if not stat.S_ISREG(found.st_mode):
        return "it is not a plain file"
    if found.st_uid != os.getuid():
        return f"it belongs to uid {found.st_uid}, not to uid {os.getuid()}"
    return None


def write_json(path: str, value: Any) -> None:
    """Writes atomically: a reader never sees an incomplete file."""
    import json  # noqa: PLC0415 - 8 ms for `ramherd exec`, which starts a program first

    data = json.dumps(value).encode()
    fd = open_private(f"{path}.new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    try:
        while data:
            data = data[os.write(fd, data) :]
    except OSError:
        os.unlink(f"{path}.new")
        raise
    finally:
        os.close(fd)
    os.rename(f"{path}.new", path)


def allocate_record(path: str) -> None:
    """Allocates the disk space of a record now, so that writing it cannot fail on a full disk."""
    fd = open_private(path, os.O_WRONLY | os.O_CREAT)
    try:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(fd, 0, RECORD_BYTES)
        else:
            os.pwrite(fd, bytes(RECORD_BYTES), 0)
    finally:
        os.close(fd)


def write_record(path: str, value: Any) -> None:
    """Overwrites the allocated space, in one write of one sector that ends in a newline: an
    incomplete record does not end in one.
    """
    import json  # noqa: PLC0415 - see write_json

    data = json.dumps(value, separators=(",", ":")).encode()
    if len(data) >= RECORD_BYTES:
        raise OSError(errno.EFBIG, "longer than a record")
    fd = open_private(path, os.O_WRONLY | os.O_CREAT)
    try:
        os.pwrite(fd, data.ljust(RECORD_BYTES - 1) + b"\n", 0)
    finally:
        os.close(fd)


def parse_record(data: bytes) -> Any:
    """None for space that is only allocated, and for an incomplete record. The output of
    `write_json` is a record as well.
    """
    import json  # noqa: PLC0415 - see write_json

    try:
        return json.loads(data) if data.endswith((b"\n", b"}")) else None
    except ValueError:
        return None


def write_control(path: str, value: str) -> None:
    """For a cgroup or proc file. os.write, because open().write() hides EACCES until close."""
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, value.encode())
    finally:
        os.close(fd)


def try_control(path: str, value: str) -> bool:
    """The same, but False if the file is gone or not ours."""
    try:
        write_control(path, value)
    except OSError:
        return False
    return True


def remove_dirs(paths: list[str], wait_s: float = 2.0) -> bool:
    """cgroups stay busy for a moment after their last process is gone."""
    deadline = time.monotonic() + wait_s
    removed = [remove_dir(path, deadline) for path in paths]
    return all(removed)


def remove_dir(path: str, deadline: float) -> bool:
    while True:
        try:
            os.rmdir(path)
        except FileNotFoundError:
            return True
        except OSError:
            if not remove_below(path) and time.monotonic() >= deadline:
                return False
        else:
            return True


def remove_below(path: str) -> bool:
    """A run may have made cgroups of its own; another process may be removing them too. Returns
    whether any was removed; if none was, the directory is busy, and this waits a moment.
    """
    found = False
    for inner, dirs, _files in os.walk(path, topdown=False):
        for name in dirs:
            try:
                os.rmdir(f"{inner}/{name}")
                found = True
            except OSError:
                continue
    if not found:
        time.sleep(0.005)
    return found
