"""Admission in full, for a session that does not obviously fit."""

from ramherd.decide.admission import find_obstacle
from ramherd.errors import NoRoom
from ramherd.measure.cgroups import read_trees
from ramherd.measure.machine import read_machine
from ramherd.model import Policy, Why
from ramherd.show.reasons import render_reason


def ask_admission(name: str, need_bytes: int, *, no_wait: bool) -> tuple[str, str] | None:
    """None when it may start; else why not, as a word and as a sentence."""
    reason = find_obstacle(need_bytes, read_machine(read_trees()), Policy())
    if reason is None:
        return None
    if reason.why is Why.TOO_BIG or no_wait:
        also = ", and --no-wait was given" if no_wait else ""
        hint = "ask for less: --memory 256MiB"
        raise NoRoom(f"{name} {render_reason(reason)}{also}", hint=hint)
    return reason.why.value, render_reason(reason)
