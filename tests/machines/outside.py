"""What both machines need on this one: what ran there, and its output until a deadline."""

import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

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


def start_guard(group: int, control: Path) -> Callable[[], None]:
    """If we are killed, somebody has to end the machine: UML's processes outlive its first
    one, memory and all.
    """
    code = (
        "import os, shutil, signal, sys\n"
        "if not sys.stdin.buffer.read(1):\n"
        "    os.killpg(int(sys.argv[1]), signal.SIGKILL)\n"
        "    shutil.rmtree(sys.argv[2], ignore_errors=True)\n"
    )
    guard = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", code, str(group), str(control)],
        stdin=subprocess.PIPE,
        start_new_session=True,  # not in reach of what ends us
    )

    def dismiss() -> None:
        guard.communicate(b".")

    return dismiss


def end_group(group: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


def last_lines(text: str) -> str:
    return "\n".join(text.splitlines()[-LAST_LINES:])
