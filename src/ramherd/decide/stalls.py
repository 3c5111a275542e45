"""When the user is warned that a running agent has printed nothing for a long time."""

from ramherd.core.model import Reason, Why
from ramherd.core.record import record


@record
class OutputSilence:
    """The time since which an agent has printed nothing. `uncounted_s` is how long its run had been
    held by then: a held run cannot print.
    """

    since_s: float
    uncounted_s: float = 0.0
    is_reported: bool = False

    def length_s(self, at_s: float, uncounted_s: float) -> float:
        return at_s - self.since_s - (uncounted_s - self.uncounted_s)


def next_silence(
    before: OutputSilence,
    *,
    at_s: float,
    uncounted_s: float,
    has_printed: bool,
    wait_s: float = 0.0,
) -> OutputSilence:
    """`wait_s` is how long the agent reported to wait for its API, which is no silence."""
    if not has_printed:
        return before
    return OutputSilence(at_s + wait_s, uncounted_s)


def find_stall(
    silence: OutputSilence, *, at_s: float, uncounted_s: float, stall_after_s: float, tool: str
) -> Reason | None:
    """Once for each silence; never if `stall_after_s` is 0."""
    silent_s = silence.length_s(at_s, uncounted_s)
    if not stall_after_s or silence.is_reported or silent_s < stall_after_s:
        return None
    doing = f"while it runs the tool {tool}" if tool else "and runs no tool"
    return Reason(Why.STALLED, silent_s=round(silent_s, 1), doing=doing, limit_s=stall_after_s)
