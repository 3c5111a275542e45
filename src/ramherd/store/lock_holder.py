"""Which process has the store or the ledger locked, in words. Loaded only when one has."""

from __future__ import annotations

from ramherd.system.file_locks import find_lock_holders
from ramherd.system.procfs import read_cmdline, read_process

COMMAND_LETTERS = 60
# The byte of the -shm file that a writer locks: https://www.sqlite.org/walformat.html
WRITE_LOCK_BYTE = 120
# Bytes of the main file that a writer locks without WAL: https://www.sqlite.org/lockingv3.html
PENDING_BYTE, RESERVED_BYTE, SHARED_FIRST = 0x40000000, 0x40000001, 0x40000002


def describe_holder(path: str, *lock_files: str) -> tuple[str, str]:
    """Which process keeps others from writing to a database of SQLite, and what to do about it.
    `lock_files` are files that are locked as a whole for the same purpose.
    """
    main = [(path, byte) for byte in (PENDING_BYTE, RESERVED_BYTE, SHARED_FIRST)]
    whole = [(name, 0) for name in lock_files]
    places = [(f"{path}-shm", WRITE_LOCK_BYTE), *main, *whole]
    found = (pid for name, offset in places for pid in find_lock_holders(name, offset))
    pid = next(found, None)
    process = read_process(pid) if pid is not None else None
    if pid is None or process is None:
        return "another process", "wait until it is done"
    command = " ".join(read_cmdline(pid) or ()) or process.name
    holder = f"process {pid} ({command[:COMMAND_LETTERS]})"
    if process.state in ("T", "t"):
        return f"{holder}, which is stopped", f"kill -CONT {pid}, or end it: kill -KILL {pid}"
    return holder, f"wait until it is done, or end it: kill {pid}"
