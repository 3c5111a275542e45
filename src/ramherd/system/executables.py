"""Programs in PATH, as a shell finds them. `shutil` would do, with 1 MB for compression."""

import os


def find_executable(name: str, path: str) -> str | None:
    """The file that a program name means; one with a slash is a path already."""
    if "/" in name:
        return name if is_executable(name) else None
    for directory in path.split(os.pathsep):
        file = os.path.join(directory or os.curdir, name)
        if is_executable(file):
            return file
    return None


def is_executable(file: str) -> bool:
    return os.access(file, os.X_OK) and not os.path.isdir(file)
