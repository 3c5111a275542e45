"""What Claude, and through it the model or the user, is told."""

from __future__ import annotations

import json
import os

from ramherd.core.units import format_duration, format_size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ramherd.decide.governor.subagent_slots import SlotChoice

WHY = {
    "no_room_budget": "it needs {need} and {free} are free",
    "somebody_waits": "it needs {need}, {free} are free, and others have waited longer",
    "max_parallel": "as many run as `max_parallel` allows",
}


def deny(choice: SlotChoice, waited_s: float) -> dict[str, object]:
    """In the words that the model gets as the result of its tool call."""
    why = WHY[choice.why].format(
        need=format_size(choice.need_bytes), free=format_size(choice.free_bytes)
    )
    waited = f" after waiting {format_duration(waited_s)}" if waited_s >= 1 else ""
    reason = (
        f"ramherd: no memory for another subagent{waited}: {why} "
        f"({choice.in_session} run in this session, {choice.in_all} on this machine). "
        f"{what_next(choice)}"
    )
    decision = {"permissionDecision": "deny", "permissionDecisionReason": reason}
    return {"hookSpecificOutput": {"hookEventName": "PreToolUse", **decision}}


def what_next(choice: SlotChoice) -> str:
    if choice.in_session:
        return (
            "Let the subagents that run finish first, then start the others one at a time, "
            "or do this task yourself without a subagent."
        )
    return "Do this task yourself without a subagent, or try one again later."


def user_message(text: str) -> dict[str, object]:
    return {"systemMessage": f"ramherd: {text}"}


def write(answer: dict[str, object]) -> None:
    try:
        os.write(1, json.dumps(answer).encode())
    except OSError:
        pass
