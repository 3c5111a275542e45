"""Hooked sessions in lines: how many of their subagents run, how many wait, and for what."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ramherd.core.units import format_size


class SessionView(NamedTuple):
    pid: int
    used_bytes: int
    leased_bytes: int
    running: int
    waiting: int


def render_sessions(sessions: Sequence[SessionView]) -> Iterator[str]:
    if not sessions:
        yield "no session with the hook runs"
    for one in sessions:
        yield (
            f"session of pid {one.pid}: {format_size(one.used_bytes)} used, "
            f"{format_size(one.leased_bytes)} leased; subagents: {one.running} running, "
            f"{one.waiting} waiting"
        )
