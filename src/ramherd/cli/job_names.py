"""Which job or herd is meant: by id, or by the name of a job in the newest herd that has it."""

from contextlib import closing

from ramherd.config.paths import state_dir
from ramherd.core.errors import UsageError
from ramherd.store.listing import show_herd
from ramherd.store.sqlite import Store


def find_herd(name: str) -> str | None:
    with closing(Store(state_dir() / "ramherd.db")) as store:
        return name if show_herd(store, name) is not None else None


def find_job(name: str) -> str:
    with closing(Store(state_dir() / "ramherd.db")) as store:
        found = store.find_job("", name) or store.find_newest_job(name)
    if found is None:
        raise UsageError(f"no job or herd {name!r}", hint="ramherd jobs --all")
    return found[0]
