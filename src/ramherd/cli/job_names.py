"""Which job or herd is meant: by id, or by the name of a job in the newest herd that has it."""

from contextlib import closing

from ramherd.cli.store_reader import open_to_read
from ramherd.core.errors import UsageError
from ramherd.store.herds import find_job_of_herd, find_newest_job
from ramherd.store.listing import read_herd


def find_herd(name: str) -> str | None:
    with closing(open_to_read()) as store:
        return name if read_herd(store, name) is not None else None


def find_job(name: str) -> str:
    with closing(open_to_read()) as store:
        found = find_job_of_herd(store, "", name) or find_newest_job(store, name)
    if found is None:
        raise UsageError(f"no job or herd {name!r}", hint="ramherd jobs --all")
    return found[0]
