"""The directory of a run, made completely before the keeper starts the run: a disk without space or
inodes is noticed before anything has happened.
"""

import errno
import os
import resource
from contextlib import suppress
from pathlib import Path

from ramherd.system.environ import encode
from ramherd.system.files import allocate_record

# A run whose start would leave fewer descriptors than this waits: the loop opens files of /proc and
# of cgroups, and the store opens its own files.
SPARE_DESCRIPTORS = 32
RECORDS = ("status", "meta.json")
LOGS = ("out", "err")


def make_run_directory(path: Path, stdin: str | None) -> str:
    """Returns the file for the run's stdin, or ""."""
    try:
        path.mkdir(mode=0o700)
    except FileNotFoundError:  # `runs` was removed
        path.parent.mkdir(mode=0o700, exist_ok=True)
        path.mkdir(mode=0o700)
    (path / "tmp").mkdir(mode=0o700)
    for name in RECORDS:
        allocate_record(str(path / name))
    for name in LOGS:
        make_log(path / name)
    return "" if stdin is None else write_file(path / "in", stdin)


def make_log(path: Path) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    os.close(fd)
    # The new descriptor is the lowest free number.
    if fd + SPARE_DESCRIPTORS > resource.getrlimit(resource.RLIMIT_NOFILE)[0]:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), str(path))


def remove_run_directory(path: Path) -> None:
    """Removes the files that were made, if no process of the run was there."""
    for name in (*RECORDS, *LOGS, "in"):
        with suppress(OSError):
            (path / name).unlink()
    for inner in (path / "tmp", path):
        with suppress(OSError):
            inner.rmdir()


def write_file(path: Path, text: str) -> str:
    path.touch(mode=0o600)
    path.write_bytes(encode(text))
    return str(path)
