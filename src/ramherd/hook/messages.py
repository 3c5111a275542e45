"""The texts that the model and the user get."""

from __future__ import annotations

import json
import os

from ramherd.core.reasons import Why
from ramherd.core.units import format_duration, format_size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ramherd.decide.governor.subagent_slots import SlotChoice

DENIED = {
    Why.NO_ROOM_BUDGET: "it needs {need} and {free} are free",
    Why.SOMEBODY_WAITS: "it needs {need}, {free} are free, and others have waited longer",
    Why.MAX_PARALLEL: "as many run as `max_parallel` allows",
}


def deny(choice: SlotChoice, waited_s: float) -> dict[str, object]:
    """The model gets this as the result of its tool call."""
    why = DENIED[choice.reason.why].format(
        need=format_size(choice.need_bytes), free=format_size(choice.free_bytes)
    )
    waited = f" after waiting {format_duration(waited_s)}" if waited_s >= 1 else ""
    text = (
        f"ramherd: no memory for another subagent{waited}: {why} "
        f"({choice.in_session} run in this session, {choice.in_all} on this machine). "
        f"{choose_advice(choice)}"
    )
    decision = {"permissionDecision": "deny", "permissionDecisionReason": text}
    return {"hookSpecificOutput": {"hookEventName": "PreToolUse", **decision}}


def choose_advice(choice: SlotChoice) -> str:
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
