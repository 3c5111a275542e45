"""The one way to end processes: TERM, the grace, KILL.

The caller chooses the processes: a set of pidfds (`system/pidfd.py`), a pen, or the descendants of
the keeper. It passes three functions; this module has the order of signals and the times. A run
that the supervisor stops goes through the same stages over many ticks, decided by
`decide/run_end.py`.

Used by the keeper: imports only a few modules of the standard library.
"""

from __future__ import annotations

import os
import signal
import time

TYPE_CHECKING = False  # the keeper avoids the 1 MB that `typing` costs
if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

# A process that survives KILL is asleep in the kernel, or belongs to root by a setuid program.
KILL_S = 10.0
# A process may have forked just before it was killed: KILL is repeated at this interval.
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
    """Returns whether no process is left. `send` signals all processes; `kill` kills all at once,
    including new ones; `wait` waits at most the given seconds until none is left, and returns
    whether none is. It may return earlier, which ends the grace.
    """
    send(first)
    # A stopped process has to continue to receive TERM.
    send(signal.SIGCONT)
    return wait(grace_s) or kill_all(kill, wait, kill_s)


def kill_all(
    kill: Callable[[], object], wait: Callable[[float], bool], kill_s: float = KILL_S
) -> bool:
    """KILL until no process is left. Returns whether none is."""
    deadline = time.monotonic() + kill_s
    while True:
        kill()
        if wait(AGAIN_S):
            return True
        if time.monotonic() >= deadline:
            return False


def wait_until(is_done: Callable[[], bool], for_s: float, every_s: float = 0.01) -> bool:
    """Polls a condition that has no event. Returns whether it is true."""
    deadline = time.monotonic() + for_s
    while not is_done():
        if time.monotonic() >= deadline:
            return False
        time.sleep(every_s)
    return True


def kill_group(
    process: subprocess.Popen[bytes] | subprocess.Popen[str], most_s: float = KILL_S
) -> None:
    """Kills a command in a session of its own, with its process group. The command was not reaped
    yet, so its pid is still its own. Waits at most `most_s` for its end.
    """
    if process.poll() is None:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        reap(process, most_s)


def reap(process: subprocess.Popen[bytes] | subprocess.Popen[str], most_s: float) -> bool:
    """Waits for the end of a killed process; returns whether it has ended. If not, `subprocess`
    reaps it when it starts another.
    """
    deadline_s = time.monotonic() + most_s
    while process.poll() is None:
        if time.monotonic() >= deadline_s:
            return False
        time.sleep(REAP_EVERY_S)
    return True
