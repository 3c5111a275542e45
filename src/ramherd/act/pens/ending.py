"""Ends whole pens, by the one ladder of `system/termination.py`.

The supervisor stops its runs over many ticks instead; this is for pens without a supervisor: those
that a dead supervisor left, and the session of `ramherd exec`.
"""

from collections.abc import Callable, Collection

from ramherd.act.pens import Pen
from ramherd.system.termination import kill_all, terminate, wait_until


def has_members(pen: Pen) -> bool:
    """Signal 0 makes a polling pen look for its processes again."""
    pen.signal(0)
    return pen.read().procs > 0


def is_empty(pen: Pen) -> bool:
    """A pen that is gone, or was not made yet, is empty."""
    try:
        return not has_members(pen)
    except FileNotFoundError:
        return True


def end_pens(
    pens: Collection[Pen], grace_s: float, wait: Callable[[float], bool] | None = None
) -> bool:
    """TERM, the grace, KILL for all pens at once. Returns whether all pens are empty. `wait`
    replaces the default wait of at most that many seconds for empty pens, and returns whether they
    are empty.
    """

    def send(number: int) -> None:
        for pen in pens:
            try:
                # A frozen process would not receive TERM.
                pen.thaw()
                pen.signal(number)
            except FileNotFoundError:  # on record, and not made yet
                continue

    def wait_empty(for_s: float) -> bool:
        return wait_until(lambda: all(map(is_empty, pens)), for_s)

    wait = wait or wait_empty
    return wait(0.0) or terminate(send, lambda: _kill(pens), wait, grace_s)


def kill_pens(pens: Collection[Pen]) -> bool:
    """KILL until all pens are empty, for a limited time. Returns whether they are."""

    def wait_empty(for_s: float) -> bool:
        return wait_until(lambda: all(map(is_empty, pens)), for_s)

    return wait_empty(0.0) or kill_all(lambda: _kill(pens), wait_empty)


def _kill(pens: Collection[Pen]) -> None:
    for pen in pens:
        try:
            pen.kill()
        except FileNotFoundError:  # another process removed it first
            continue
