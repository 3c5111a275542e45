"""What both machines need on this one: what ran there, and its output until a deadline."""

import os
import select
import shutil
import time
from dataclasses import dataclass

# Not all users have the directories of mke2fs and its like in their PATH.
SBIN = "/usr/local/sbin:/usr/sbin:/sbin"
LAST_LINES = 25


@dataclass(frozen=True, slots=True)
class Ended:
    """What a command in a machine came to; its code is 128 + the signal that ended it."""

    code: int
    out: str
    err: str
    wall_s: float


class MachineFailed(Exception):
    """The machine itself did not do its part, whatever the command in it did."""


def find_program(program: str, package: str) -> str:
    found = shutil.which(program, path=f"{os.environ.get('PATH', os.defpath)}:{SBIN}")
    if found is None:
        raise MachineFailed(f"{program} is missing: make test-tools (apt package {package})")
    return found


def read_all(fds: tuple[int, int], limit_s: float) -> tuple[str, str]:
    """All that comes until both are closed at their other end. When the time is up before, the
    reason for that is mostly in what was printed until then.
    """
    streams, deadline = {fd: bytearray() for fd in fds}, time.monotonic() + limit_s
    open_ends = set(fds)
    while open_ends:
        ready = select.select(list(open_ends), [], [], max(0, deadline - time.monotonic()))[0]
        for fd in ready:
            data = os.read(fd, 1 << 16)
            streams[fd].extend(data)
            if not data:
                open_ends.remove(fd)
        if not ready:
            break
    out, err = (streams[fd].decode(errors="replace") for fd in fds)
    if open_ends:
        raise MachineFailed(f"the machine was ended after {limit_s:g} s:\n{out}{err}")
    return out, err


def last_lines(text: str) -> str:
    return "\n".join(text.splitlines()[-LAST_LINES:])
