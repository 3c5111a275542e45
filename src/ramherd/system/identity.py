"""Whether a process is still the one that was meant: `system/procfs.py` in small.

os only: `ramherd.hook` loads this for each subagent.
"""

from __future__ import annotations

import os

from ramherd.core.procid import ProcId

PROC = "/proc"


def read_boot_id(proc: str = PROC) -> str:
    with open(f"{proc}/sys/kernel/random/boot_id") as file:
        return file.read().strip()


def read_identity(pid: int, proc: str = PROC) -> tuple[ProcId, int] | None:
    """Who it is and its parent's pid; None when it has gone or is a zombie."""
    try:
        with open(f"{proc}/{pid}/stat", "rb") as file:
            text = file.read()
    except OSError:
        return None
    # The name stands in brackets and may itself hold brackets, spaces and newlines.
    fields = text[text.rindex(b")") + 2 :].split()
    if fields[0] in (b"Z", b"X", b"x"):
        return None
    return ProcId(pid, int(fields[19])), int(fields[1])


def is_running(wanted: ProcId, proc: str = PROC) -> bool:
    found = read_identity(wanted.pid, proc)
    return found is not None and found[0] == wanted


def read_own_identity() -> ProcId:
    found = read_identity(os.getpid())
    return found[0] if found is not None else ProcId(os.getpid(), 0)
