"""Finds programs in PATH, as a shell does. `shutil` would cost 1 MB for compression."""

import os
from collections.abc import Iterator


def find_executable(name: str, path: str) -> str | None:
    """The file of a program name; a name with a slash is a path already."""
    if "/" in name:
        return name if is_executable(name) else None
    return next(filter(is_executable, candidates(name, path)), None)


def is_hidden(name: str, path: str) -> bool:
    """Whether no directory of PATH has a visible file of this name: `execvp` reports EACCES if it
    may not search one of them, or if one has a directory of this name.
    """
    return "/" not in name and not any(map(os.path.isfile, candidates(name, path)))


def candidates(name: str, path: str) -> Iterator[str]:
    for directory in path.split(os.pathsep):
        yield os.path.join(directory or os.curdir, name)


def is_executable(file: str) -> bool:
    return os.access(file, os.X_OK) and not os.path.isdir(file)
