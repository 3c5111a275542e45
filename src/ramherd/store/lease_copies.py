"""A copy of each owner's rows in the ledger: one small file in `leases/` of the runtime directory.

A ledger that is broken or was removed is made again from the copies of live owners, before
anybody is leased anything: no byte of theirs is promised to others meanwhile. The hook loads
this module for each subagent, so it does without dataclasses and pathlib.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, NamedTuple

from ramherd.core.procid import ProcId
from ramherd.store.owner import Owner, is_alive
from ramherd.system.files import open_private

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    Row = Sequence[Any]

DIRECTORY = "leases"


class LeaseCopy(NamedTuple):
    """`leases` and `subagents` are rows without the column of their owner."""

    owner: Owner
    leases: Sequence[Row]
    subagents: Sequence[Row] = ()


def write_copy(runtime: str, copy: LeaseCopy) -> None:
    """As a whole or not at all; in the ledger's transaction, so there is one writer at a time. A
    disk that is full costs the copy, not the lease.
    """
    path, fresh = copy_path(runtime, copy.owner.id), copy_path(runtime, f".{copy.owner.id}")
    id_, boot_id, proc = copy.owner
    text = json.dumps(
        {"owner": [id_, boot_id, *proc], "leases": copy.leases, "subagents": copy.subagents}
    )
    try:
        os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
        fd = open_private(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        try:
            os.write(fd, text.encode())
        finally:
            os.close(fd)
        os.replace(fresh, path)
    except OSError:
        remove(fresh)


def remove_copy(runtime: str, owner: str) -> None:
    remove(copy_path(runtime, owner))
    remove(copy_path(runtime, f".{owner}"))


def read_copies(runtime: str) -> Iterator[LeaseCopy]:
    """Those of live owners; the others are removed."""
    try:
        names = os.listdir(os.path.join(runtime, DIRECTORY))
    except OSError:
        return
    for name in (name for name in names if not name.startswith(".")):
        copy = read_copy(copy_path(runtime, name))
        if copy is not None and is_alive(copy.owner, runtime):
            yield copy
        else:
            remove_copy(runtime, name)


def read_copy(path: str) -> LeaseCopy | None:
    try:
        with open(path, "rb") as file:
            found = json.load(file)
        id_, boot_id, pid, start_ticks = found["owner"]
        owner = Owner(id_, boot_id, ProcId(pid, start_ticks))
        return LeaseCopy(owner, found["leases"], found["subagents"])
    except (OSError, ValueError, TypeError, KeyError):
        return None


def copy_path(runtime: str, owner: str) -> str:
    return os.path.join(runtime, DIRECTORY, owner)


def remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass
