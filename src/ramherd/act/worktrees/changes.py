"""The uncommitted changes in a worktree, as `git status` reports them."""

import os
from typing import NamedTuple

from ramherd.act.worktrees.git import run_git
from ramherd.core.record import replace
from ramherd.decide.left_out import ChangedFile, is_committed

# `--no-renames`: a renamed file counts as a removed file and a new file.
STATUS = (
    "status", "--porcelain=v2", "-z", "--untracked-files=all", "--ignored=matching", "--no-renames",
    "--ignore-submodules=none",
)  # fmt: skip
NO_MODE = "000000"


class Change(NamedTuple):
    """One line of the report. `head` is the mode and object in the commit, or empty."""

    file: ChangedFile
    head: tuple[str, str] | None = None
    is_unmerged: bool = False
    is_deleted: bool = False

    @property
    def is_left_out(self) -> bool:
        return not is_committed(self.file)


def read_changes_in(worktree: str) -> list[Change]:
    """Writes nothing, not even a refreshed index. GitFailed if git cannot read the changes."""
    around = {"GIT_CEILING_DIRECTORIES": os.path.dirname(worktree), "GIT_OPTIONAL_LOCKS": "0"}
    return measure_files(parse_status(run_git(worktree, *STATUS, env=around)), worktree)


def parse_status(text: str) -> list[Change]:
    return [parse_line(line) for line in text.split("\0") if line]


def parse_line(line: str) -> Change:
    """The fields of each kind are in git-status(1), "Porcelain Format Version 2"."""
    kind, rest = line[0], line[2:]
    if kind in "?!":
        return Change(ChangedFile(rest, is_ignored=kind == "!"))
    if kind == "u":
        return Change(ChangedFile(rest.split(" ", 9)[9], is_tracked=True), is_unmerged=True)
    _xy, submodule, head_mode, _index, file_mode, head, _staged, path = rest.split(" ", 7)
    letters = submodule.strip("SN.")
    file = ChangedFile(path, is_tracked=head_mode != NO_MODE, submodule=letters)
    known = (head_mode, head) if head_mode != NO_MODE else None
    return Change(file, known, is_deleted=file_mode == NO_MODE)


def measure_files(changes: list[Change], top: str) -> list[Change]:
    """Adds sizes, and whether each file can be read. Only regular files that exist have a size."""
    return [
        change._replace(file=measure_file(change.file, top))
        if not change.file.is_ignored
        else change
        for change in changes
    ]


def measure_file(file: ChangedFile, top: str) -> ChangedFile:
    path = f"{top}/{file.path}"
    if os.path.islink(path) or not os.path.isfile(path):
        return file
    return replace(file, bytes=os.path.getsize(path), is_readable=os.access(path, os.R_OK))


def render_index_info(changes: list[Change], no_object: str) -> str:
    """For `git update-index -z --index-info`: files that are left out are reset to the commit, even
    if the agent has staged them.
    """
    rows = ((change.head or ("0", no_object), change.file.path) for change in changes)
    return "".join(f"{mode} {name} 0\t{path}\0" for (mode, name), path in rows)
