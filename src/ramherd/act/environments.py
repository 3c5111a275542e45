"""The variables of runs, inherited or set by jobs: as values, and as layers for the keeper.

A layer is a table of variables, or a part of a file that the keeper's child reads.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from ramherd.core.model import Job
from ramherd.store.herds import EnvironmentFile
from ramherd.store.inputs import environment_path, read_inherited, read_variables
from ramherd.system.environ import read_own_environ

Layer = dict[str, str | None] | tuple[str, int, int]
# An ordinary environment has a few kB. At most this many, each up to this size, are kept in memory.
KEPT = 8
KEPT_BYTES = 64 << 10


def choose_passed(patterns: Sequence[str] | None) -> dict[str, str]:
    """The variables of this process that runs inherit; all without patterns."""
    own = read_own_environ()
    if patterns is None:
        return own
    from fnmatch import fnmatchcase  # noqa: PLC0415 - `re`, only for `pass_env`

    return {
        name: text
        for name, text in own.items()
        if any(fnmatchcase(name, pattern) for pattern in patterns)
    }


class Environments(NamedTuple):
    """`layers` returns two layers of a job: the inherited variables, and its own. `read` returns
    both together, to search for programs and to share processes.
    """

    layers: Callable[[Job], tuple[Layer, Layer]]
    read: Callable[[Job], Mapping[str, str]]


def one_environment(inherited: Mapping[str, str]) -> Environments:
    """For `ramherd run`: all jobs inherit the same variables; their own are in memory."""
    return Environments(
        lambda job: (dict(inherited), dict(job.env)), lambda job: {**inherited, **job.env}
    )


class HerdEnvironments:
    """For the service: each herd has a file, whose path `find` returns."""

    def __init__(
        self, state: Path, find: Callable[[str], EnvironmentFile], own: Mapping[str, str]
    ) -> None:
        self._state = state
        self._find = find
        # Inherited by the runs of a herd that was submitted without an environment.
        self._own = own
        self._kept: dict[str, Mapping[str, str]] = {}

    def layers(self, job: Job) -> tuple[Layer, Layer]:
        file = self._find(job.herd)
        inherited: Layer = dict(self._own)
        if file.name is not None and file.inherited_bytes is not None:
            inherited = (self._path(file.name), 0, file.inherited_bytes)
        return inherited, {} if (at := own_part(job, file)) is None else (
            self._path(at[0]),
            *at[1:],
        )

    def read(self, job: Job) -> Mapping[str, str]:
        file = self._find(job.herd)
        own = own_part(job, file)
        inherited = self._inherited(file)
        return inherited if own is None else {**inherited, **read_variables(self._state, *own)}

    def _inherited(self, file: EnvironmentFile) -> Mapping[str, str]:
        if file.name is None or file.inherited_bytes is None:
            return self._own
        if file.name in self._kept:
            return self._kept[file.name]
        found = read_inherited(self._state, file)
        if file.inherited_bytes <= KEPT_BYTES:
            if len(self._kept) >= KEPT:
                self._kept.pop(next(iter(self._kept)))
            self._kept[file.name] = found
        return found

    def _path(self, name: str) -> str:
        return str(environment_path(self._state, name))


def own_part(job: Job, file: EnvironmentFile) -> tuple[str, int, int] | None:
    """None for a job that was retried after the end of its herd: its file is a different one."""
    return job.env_at if job.env_at is not None and job.env_at[0] == file.name else None
