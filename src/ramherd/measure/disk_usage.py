"""The free space of a disk, the space that files use, and the ballast of the state directory."""

import os
from pathlib import Path

from ramherd.core.state_disk import DiskState

BALLAST = "ballast"


def read_free_bytes(path: Path) -> int:
    disk = os.statvfs(path)
    return disk.f_bavail * disk.f_frsize


def read_disk(state: Path) -> DiskState:
    """A released ballast keeps its size but has no blocks: all ramherds can see that."""
    free_bytes = read_free_bytes(state)
    try:
        ballast = os.lstat(state / BALLAST)
    except FileNotFoundError:
        return DiskState(free_bytes)
    return DiskState(free_bytes, ballast.st_size, min(ballast.st_blocks * 512, ballast.st_size))


def read_tree_bytes(path: Path) -> int:
    """The disk space that the files use: a log may have holes."""
    return sum(
        read_file_bytes(os.path.join(root, name))
        for root, _dirs, files in os.walk(path)
        for name in files
    )


def read_file_bytes(path: str) -> int:
    try:
        return os.lstat(path).st_blocks * 512
    except OSError:  # the file is gone
        return 0
