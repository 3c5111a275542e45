"""Finds the job or herd that a user names: a job by its number, name or id; a herd by its id, the
end of its id, or as `last`.

The names are looked up in the store, with and without a service.
"""

import argparse
from collections.abc import Iterable
from contextlib import closing
from typing import NamedTuple

from ramherd.cli.store_reader import open_to_read
from ramherd.core.errors import UsageError
from ramherd.core.values import nearest
from ramherd.store.herds import (
    find_job_of_herd,
    find_newest_job,
    read_job_names,
    read_newest_batch,
    read_newest_herd,
)
from ramherd.store.job_numbers import find_numbered_job
from ramherd.store.listing import find_herds_ending, read_herd
from ramherd.store.protocol import Store

# An unknown name is compared with at most this many names of a herd.
COMPARED = 1000
# The newest herd that is not a session of `ramherd exec`.
LAST = "last"
# All characters at the end of an id are random; screens show six.
SHORTEST_ENDING = 4


class Named(NamedTuple):
    """A job or a herd; the other is None."""

    job: str | None = None
    herd: str | None = None


def add_herd_option(parser: argparse.ArgumentParser) -> None:
    what = "the herd of JOB (the newest that has a job of this name)"
    parser.add_argument("--herd", metavar="ID", help=what)


def find_job(store: Store, name: str, herd: str | None = None) -> str:
    """The id of a job. Without a herd, digits are a number, and a name means the job in the newest
    herd that has it.
    """
    where = find_herd(store, herd)
    numbered = find_numbered_job(store, name)
    if herd is None and numbered is not None:
        return numbered
    found = find_job_of_herd(store, where, name)
    if found is None and herd is None:
        found = find_newest_job(store, name)
    if found is not None:
        return found[0]
    if numbered is not None:
        return numbered
    raise explain_unknown(store, where, name)


def explain_unknown(store: Store, herd: str, name: str) -> UsageError:
    """Numbers are unique over all herds; names are not."""
    if name.isdigit():
        return UsageError(f"no job has the number {name}", hint="ramherd jobs --all")
    names = read_job_names(store, herd, COMPARED)
    hint = nearest(name, names) if names else "ramherd jobs --all"
    return UsageError(f"no job {name!r} in herd {herd}", hint=hint)


def find_herd(store: Store, herd: str | None = None) -> str:
    """The id of the given herd, or of the newest."""
    if herd is None or herd == LAST:
        newest = read_newest_herd(store) if herd is None else read_newest_batch(store)
        if newest is None:
            raise UsageError("no herd has run yet", hint="ramherd drill makes one")
        return newest
    if is_herd(store, herd):
        return herd
    ending = find_herds_ending(store, herd.upper()) if len(herd) >= SHORTEST_ENDING else []
    if len(ending) > 1:
        raise UsageError(f"{len(ending)} herds end in {herd!r}", hint=f"one is {ending[0]}")
    if not ending:
        raise UsageError(f"no herd {herd!r}", hint="ramherd jobs --all")
    return ending[0]


def find_job_or_herd(store: Store, name: str) -> Named:
    """For verbs that take both. The whole id of a herd is never a job; `last` or the end of an id
    may be the name of a job, which then wins.
    """
    if is_herd(store, name):
        return Named(herd=name)
    try:
        return Named(job=find_job(store, name))
    except UsageError as unknown:
        try:
            return Named(herd=find_herd(store, name))
        except UsageError:
            raise unknown from None


def find_jobs(names: Iterable[str]) -> list[str]:
    """The ids of jobs: all are looked up before the first is changed."""
    with closing(open_to_read()) as store:
        return [find_job(store, name) for name in names]


def is_herd(store: Store, name: str) -> bool:
    return read_herd(store, name) is not None
