"""The project of a directory: the nearest directory at or above it that has a repository."""

import os
from collections.abc import Iterable
from functools import cache

REPOSITORIES = (".git", ".hg", ".jj")


def read_projects(directories: Iterable[str]) -> dict[str, str]:
    """Directories outside of any repository are omitted."""
    return {one: found for one in directories if (found := find_project(one))}


@cache
def find_project(directory: str) -> str:
    if any(os.path.exists(os.path.join(directory, name)) for name in REPOSITORIES):
        return directory
    above = os.path.dirname(directory)
    return find_project(above) if above != directory else ""
