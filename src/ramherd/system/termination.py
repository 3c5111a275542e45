"""The one way to end processes: TERM, the grace, KILL.

What is ended is the caller's: a set of processes by pidfd (`system/pidfd.py`), a pen, or the
descendants of the keeper. The caller passes three functions; the order of signals and the times are
here. A run that the supervisor stops goes through the same stages over many ticks, which
`decide/run_end.py` decides.

Used by the keeper: a few modules of the standard library only.
"""

from __future__ import annotations

import os
import signal
import time

TYPE_CHECKING = False  # the keeper does without the 1 MB that `typing` costs
if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

# A process that lives on after KILL is asleep in the kernel, or root's by a setuid program.
KILL_S = 10.0
# What is killed may have forked a moment before: KILL is sent again so often.
AGAIN_S = 0.02
REAP_EVERY_S = 0.001
# The loop of a supervisor waits no longer for a process that it killed.
LOOP_REAP_S = 0.01


def terminate(
    send: Callable[[int], object],
    kill: Callable[[], object],
    wait: Callable[[float], bool],
    grace_s: float,
    *,
    first: int = signal.SIGTERM,
    kill_s: float = KILL_S,
) -> bool:
    """Whether nothing is left. `send` signals everything; `kill` ends everything at once, also
    what appeared meanwhile; `wait` waits at most so many seconds until nothing is left, and
    returns whether that is so. It may return earlier, which ends the grace.
    """
    send(first)
    # A stopped process has to continue to receive TERM.
    send(signal.SIGCONT)
    return wait(grace_s) or kill_all(kill, wait, kill_s)


def kill_all(
    kill: Callable[[], object], wait: Callable[[float], bool], kill_s: float = KILL_S
) -> bool:
    """KILL until nothing is left. Whether that is so."""
    deadline = time.monotonic() + kill_s
    while True:
        kill()
        if wait(AGAIN_S):
            return True
        if time.monotonic() >= deadline:
            return False


def wait_until(is_done: Callable[[], bool], for_s: float, every_s: float = 0.01) -> bool:
    """For what cannot be waited for, only asked. Whether it is done."""
    deadline = time.monotonic() + for_s
    while not is_done():
        if time.monotonic() >= deadline:
            return False
        time.sleep(every_s)
    return True


def kill_group(
    process: subprocess.Popen[bytes] | subprocess.Popen[str], most_s: float = KILL_S
) -> None:
    """A command in a session of its own, with all that it started. We have not reaped it yet, so
    the number is still its own. Its end is awaited for `most_s`.
    """
    if process.poll() is None:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        reap(process, most_s)


def reap(process: subprocess.Popen[bytes] | subprocess.Popen[str], most_s: float) -> bool:
    """Waits for the end of a process that was killed; whether it has ended. `subprocess` reaps one
    that has not when it starts another.
    """
    deadline_s = time.monotonic() + most_s
    while process.poll() is None:
        if time.monotonic() >= deadline_s:
            return False
        time.sleep(REAP_EVERY_S)
    return True
