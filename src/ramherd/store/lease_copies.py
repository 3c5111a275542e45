"""A copy of each owner's rows in the ledger: one small file in `leases/` of the runtime directory.

A ledger that is broken or was removed is made again from the copies of live owners, before any
application gets a lease: no byte of theirs is promised to others meanwhile. The hook loads this
module for each subagent, so it does without dataclasses and pathlib.
"""

from __future__ import annotations

import json
import os
import time
from typing import TYPE_CHECKING, NamedTuple

from ramherd.core.procid import ProcId
from ramherd.store.owner import Owner, is_alive
from ramherd.system.files import open_private

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    Row = Sequence[Any]

DIRECTORY = "leases"
# Most copies are shorter: files of one size are overwritten by a single write.
LEAST_BYTES = 512
READS, AGAIN_S = 3, 0.002


class LeaseCopy(NamedTuple):
    """`leases` and `subagents` are rows without the owner column."""

    owner: Owner
    leases: Sequence[Row]
    subagents: Sequence[Row] = ()


def write_copy(runtime: str, copy: LeaseCopy) -> None:
    """Called in the ledger's transaction, so there is one writer at a time. Written in place,
    because renaming a new file over the old one takes 0.7 ms on ext4, ten times as long as the
    transaction. On a full disk the copy is lost, not the lease.
    """
    path = copy_path(runtime, copy.owner.id)
    id_, boot_id, proc = copy.owner
    text = json.dumps(
        {"owner": [id_, boot_id, *proc], "leases": copy.leases, "subagents": copy.subagents}
    )
    data = text.encode().ljust(LEAST_BYTES)
    try:
        os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
        fd = open_private(path, os.O_WRONLY | os.O_CREAT)
        try:
            os.write(fd, data)
            os.ftruncate(fd, len(data))
        finally:
            os.close(fd)
    except OSError:
        pass


def remove_copy(runtime: str, owner: str) -> None:
    try:
        os.unlink(copy_path(runtime, owner))
    except OSError:
        pass


def read_copies(runtime: str) -> Iterator[LeaseCopy]:
    """The copies of live owners; the others are removed."""
    try:
        names = os.listdir(os.path.join(runtime, DIRECTORY))
    except OSError:
        return
    for name in names:
        copy = read_copy(copy_path(runtime, name))
        if copy is not None and is_alive(copy.owner, runtime):
            yield copy
        else:
            remove_copy(runtime, name)


def read_copy(path: str) -> LeaseCopy | None:
    """A copy that does not parse is read again: its owner may be writing it."""
    for _ in range(READS):
        try:
            return parse_copy(path)
        except (ValueError, TypeError, KeyError):
            time.sleep(AGAIN_S)
        except OSError:
            return None
    return None


def parse_copy(path: str) -> LeaseCopy:
    with open(path, "rb") as file:
        found = json.load(file)
    id_, boot_id, pid, start_ticks = found["owner"]
    owner = Owner(id_, boot_id, ProcId(pid, start_ticks))
    return LeaseCopy(owner, found["leases"], found["subagents"])


def copy_path(runtime: str, owner: str) -> str:
    return os.path.join(runtime, DIRECTORY, owner)
