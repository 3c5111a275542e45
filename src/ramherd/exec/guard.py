"""What the guard of `ramherd exec` needs to clear a session whose `ramherd exec` was killed."""

from pathlib import Path
from typing import Any, NamedTuple

from ramherd.act.guard_process import Guard


class Guarded(NamedTuple):
    """The values that the guard needs to clear a session. `pen` is its record and `dirs` are its
    directories, for a session that was killed before its pen was recorded in the store, or whose
    store cannot be used.
    """

    herd: str
    owner: str
    pen: dict[str, Any]
    dirs: list[str]
    grace_s: float
    state: Path
    runtime: Path


def start_guard(guarded: Guarded) -> Guard:
    def clean_up() -> None:
        from ramherd.exec.guard_cleanup import clear_lost  # noqa: PLC0415 - seldom

        clear_lost(guarded)

    return Guard(clean_up, f"{guarded.state}/keeper.err")
