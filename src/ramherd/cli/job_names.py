"""Which job or herd a user means: a job by its name or id, a herd by its id.

The store answers, with and without a service.
"""

import argparse

from ramherd.core.errors import UsageError
from ramherd.core.values import nearest
from ramherd.store.herds import (
    find_job_of_herd,
    find_newest_job,
    read_job_names,
    read_newest_herd,
)
from ramherd.store.listing import read_herd
from ramherd.store.protocol import Store

# So many names of a herd are compared with one that is unknown.
COMPARED = 1000


def add_herd_option(parser: argparse.ArgumentParser) -> None:
    what = "the herd of JOB (the newest that has a job of this name)"
    parser.add_argument("--herd", metavar="ID", help=what)


def find_job(store: Store, name: str, herd: str | None = None) -> str:
    """The id of a job. Without a herd, a name means the job in the newest herd that has it."""
    where = find_herd(store, herd)
    found = find_job_of_herd(store, where, name)
    if found is None and herd is None:
        found = find_newest_job(store, name)
    if found is None:
        names = read_job_names(store, where, COMPARED)
        raise UsageError(
            f"no job {name!r} in herd {where}",
            hint=nearest(name, names) if names else "ramherd jobs --all",
        )
    return found[0]


def find_herd(store: Store, herd: str | None = None) -> str:
    """The id of a herd: the one that is given, or the newest."""
    if herd is None:
        newest = read_newest_herd(store)
        if newest is None:
            raise UsageError("no herd has run yet", hint="ramherd drill makes one")
        return newest
    if not is_herd(store, herd):
        raise UsageError(f"no herd {herd!r}", hint="ramherd jobs --all")
    return herd


def is_herd(store: Store, name: str) -> bool:
    return read_herd(store, name) is not None
