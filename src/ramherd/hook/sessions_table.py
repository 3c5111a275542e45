"""Hooked sessions in lines: how many of their subagents run, which wait and why, and which have
ended.
"""

import time
from collections.abc import Iterator, Sequence
from typing import Any

from ramherd.core.units import format_duration, format_size
from ramherd.show.event_lines import printable
from ramherd.show.reasons import render_reason
from ramherd.store.subagent_slots import SessionState, SubagentRecord

SHOWN_ENDED = 20


def render_sessions(sessions: Sequence[SessionState], now_s: float) -> Iterator[str]:
    """`now_s` is since boot, like the start of each wait."""
    if not sessions:
        yield "no session with the hook runs"
    for one in sessions:
        yield (
            f"session of pid {one.pid}: {format_size(one.used_bytes)} used, "
            f"{format_size(one.leased_bytes)} leased; subagents: {one.running} running, "
            f"{len(one.waiting)} waiting"
        )
        for waiter, place in one.waiting:
            waited = format_duration(max(now_s - waiter.since_s, 0.0))
            yield f"  place {place}, has waited {waited}: {render_reason(waiter.reason)}"


def render_ended(ended: Sequence[SubagentRecord]) -> Iterator[str]:
    """The latest ones, the last of them at the end."""
    if ended:
        yield "subagents that ended, with the memory of their session before and after:"
    for one in ended[-SHOWN_ENDED:]:
        clock = time.strftime("%H:%M:%S", time.localtime(one.at_s))
        before, after = format_size(one.before_bytes), format_size(one.after_bytes)
        yield (
            f"  {clock}  {printable(one.type) or 'subagent'}  ran {format_duration(one.seconds)}  "
            f"{before} -> {after}  {printable(one.project)}"
        )


def sessions_as_json(sessions: Sequence[SessionState], now_s: float) -> list[dict[str, Any]]:
    return [
        {
            "pid": one.pid, "used_bytes": one.used_bytes, "leased_bytes": one.leased_bytes,
            "running": one.running,
            "waiting": [
                {
                    "call": waiter.call, "place": place,
                    "waited_s": round(max(now_s - waiter.since_s, 0.0), 1),
                    "need_bytes": waiter.need_bytes, "reason": waiter.reason.as_json(),
                }
                for waiter, place in one.waiting
            ],
        }
        for one in sessions
    ]  # fmt: skip
