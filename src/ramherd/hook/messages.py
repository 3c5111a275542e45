"""The texts for the model and for the user."""

from __future__ import annotations

import json
import os

from ramherd.core.reasons import Why
from ramherd.core.units import format_duration, format_size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ramherd.decide.governor.subagent_slots import SlotChoice

DENIED = {
    Why.NO_ROOM_BUDGET: "it needs {need}, but only {free} is free",
    Why.SOMEBODY_WAITS: "it needs {need}, {free} is free, and other subagents have waited longer",
    Why.MAX_PARALLEL: "`max_parallel` is {limit}",
    Why.SUBAGENT_CAP: "`{setting}` is {limit}",
}
# Part of Claude Code's answer to a call above its own cap.
REFUSED = "Concurrent subagent limit reached"


def explain(choice: SlotChoice) -> str:
    sizes = {"need": format_size(choice.need_bytes), "free": format_size(choice.free_bytes)}
    return DENIED[choice.reason.why].format(**{**choice.reason.numbers, **sizes})


def deny(choice: SlotChoice, waited_s: float) -> dict[str, object]:
    """The model gets this as the result of its tool call."""
    waited = f" after waiting {format_duration(waited_s)}" if waited_s >= 1 else ""
    what = "memory" if choice.is_for_memory else "room"
    text = (
        f"ramherd: no {what} for another subagent{waited}: {explain(choice)} "
        f"(running: {choice.in_session} in this session, {choice.in_all} on this machine). "
        f"{choose_advice(choice)}"
    )
    decision = {"permissionDecision": "deny", "permissionDecisionReason": text}
    return {"hookSpecificOutput": {"hookEventName": "PreToolUse", **decision}}


def choose_advice(choice: SlotChoice) -> str:
    if choice.in_session:
        return (
            "Let the running subagents finish first, then start the others one at a time, "
            "or do this task yourself without a subagent."
        )
    return "Do this task yourself without a subagent, or try one again later."


def describe_wait(first: SlotChoice, waited_s: float) -> str:
    """For the user, when the subagent starts: `first` has the reason for the wait."""
    what = "memory" if first.is_for_memory else "its turn"
    waited = format_duration(waited_s)
    return f"a subagent waited {waited} for {what}: {explain(first)} (ramherd hook status)"


def ask_again() -> dict[str, object]:
    """For the model, after Claude Code refused a call that the hook had allowed."""
    text = (
        "ramherd: the limit on subagents was reached only for a moment. Call the same subagent "
        "again now: the call waits until the subagent can start."
    )
    return {
        "hookSpecificOutput": {"hookEventName": "PostToolUseFailure", "additionalContext": text}
    }


def user_message(text: str) -> dict[str, object]:
    return {"systemMessage": f"ramherd: {text}"}


def write(answer: dict[str, object]) -> None:
    try:
        os.write(1, json.dumps(answer).encode())
    except OSError:
        pass
