"""ramherd's own directories and its store; nothing is made by looking."""

import os
import sqlite3
import stat
from contextlib import closing
from itertools import islice
from pathlib import Path

from ramherd.doctor.facts import OwnDirectory, State
from ramherd.doctor.read.folders import read_file_system, walk
from ramherd.doctor.read.host import Host

SQLITE_S = 0.5
# More take too long to count; then the sum is a part of it.
MOST_FILES = 50_000


def read_state(host: Host, state: Path, runtime: Path, logs_keep_bytes: int) -> State:
    return State(
        places=(
            read_place(state, host, keeps=True),
            read_place(runtime, host, keeps=False),
        ),
        logs_bytes=sum(size for _path, size in islice(walk(state / "runs"), MOST_FILES)),
        logs_keep_bytes=logs_keep_bytes,
        store_error=read_store_error(state / "ramherd.db"),
    )


def read_place(path: Path, host: Host, *, keeps: bool) -> OwnDirectory:
    above = next(parent for parent in (path, *path.parents) if parent.exists())
    disk = os.statvfs(above)
    kind, free = read_file_system(host, above), disk.f_bavail * disk.f_frsize
    writable = os.access(above, os.W_OK | os.X_OK)
    if above != path:
        return OwnDirectory(
            str(path), keeps, exists=False, is_writable=writable, file_system=kind, free_bytes=free
        )
    found = path.lstat()
    return OwnDirectory(
        str(path), keeps, exists=True,
        is_ours=stat.S_ISDIR(found.st_mode) and found.st_uid == host.uid,
        mode=found.st_mode & 0o777, is_writable=writable, file_system=kind, free_bytes=free,
    )  # fmt: skip


def read_store_error(path: Path) -> str:
    """Read-only, and only the first page: a whole check of a large store takes seconds."""
    if not path.exists():
        return ""
    try:
        with closing(
            sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=SQLITE_S)
        ) as db:
            db.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.Error as error:
        return str(error)
    return ""
