"""`--ramp N`: N runs at first, and N more after each step without trouble.

Trouble is a run that had to wait for memory, was stopped to make room, or was killed for it.
"""

from dataclasses import dataclass, replace

from ramherd.core.model import Reason


@dataclass(frozen=True, slots=True)
class Ramp:
    step: int
    allowed: int
    # The highest number of simultaneous runs without trouble, and the trouble with more.
    clean: int = 0
    trouble: Reason | None = None
    # The time since which all allowed runs have been running without trouble.
    full_since_s: float | None = None


def begin_ramp(step: int) -> Ramp:
    return Ramp(step, step)


def next_ramp(ramp: Ramp, running: int, at_s: float, *, settle_s: float) -> Ramp:
    """One more step after all allowed runs have run for as long as agents take to settle."""
    if running < ramp.allowed:
        return ramp
    if ramp.full_since_s is None:
        return replace(ramp, full_since_s=at_s)
    if at_s - ramp.full_since_s < settle_s:
        return ramp
    return Ramp(ramp.step, ramp.allowed + ramp.step, clean=ramp.allowed)


def after_trouble(ramp: Ramp, reason: Reason) -> Ramp:
    """The step begins again. The first trouble is kept until the same number of runs had none."""
    return replace(ramp, full_since_s=None, trouble=ramp.trouble or reason)
