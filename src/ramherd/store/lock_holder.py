"""Which process keeps the ledger locked, in words. Loaded when one does."""

from __future__ import annotations

from ramherd.system.file_locks import find_lock_holders
from ramherd.system.procfs import read_cmdline, read_process

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

COMMAND_LETTERS = 60


def describe_holder(places: Iterable[tuple[str, int]]) -> tuple[str, str]:
    """Who holds the lock, and what to do about it. `places` are files and the bytes that are
    locked in them.
    """
    found = (pid for path, offset in places for pid in find_lock_holders(path, offset))
    pid = next(found, None)
    process = read_process(pid) if pid is not None else None
    if pid is None or process is None:
        return "another process", "wait until it is done"
    command = " ".join(read_cmdline(pid) or ()) or process.name
    holder = f"process {pid} ({command[:COMMAND_LETTERS]})"
    if process.state in ("T", "t"):
        return f"{holder}, which is stopped", f"kill -CONT {pid}, or end it: kill -KILL {pid}"
    return holder, f"wait until it is done, or end it: kill {pid}"
