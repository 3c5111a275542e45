"""Reads an event from Claude and writes the answer; after any failure Claude continues."""

from __future__ import annotations

import json
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

DEFAULT_TIMEOUT_S = 60.0


def run(args: list[str]) -> None:
    """`args` is the timeout of this hook in Claude's settings, in seconds."""
    event: dict[str, Any] = {}
    try:
        event = json.loads(sys.stdin.buffer.read())
        answer = respond(event, float(args[0]) if args else DEFAULT_TIMEOUT_S)
    except (SystemExit, KeyboardInterrupt):
        return
    except BaseException as error:  # a hook that fails must not stop Claude
        answer = explain(event, error)
    if answer:
        from ramherd.hook.messages import write  # noqa: PLC0415

        write(answer)


def respond(event: dict[str, Any], timeout_s: float) -> dict[str, object]:
    from ramherd.hook.claude_process import find_session  # noqa: PLC0415

    session = find_session()
    if session is None:
        return {}
    from ramherd.hook.call import Call  # noqa: PLC0415
    from ramherd.hook.handlers import handle  # noqa: PLC0415

    call = Call(event, session)
    handle(call, timeout_s)
    call.report_notices()
    return call.answer


def explain(event: object, error: BaseException) -> dict[str, object]:
    """Once for each session."""
    try:
        from ramherd.config.paths import runtime_path  # noqa: PLC0415
        from ramherd.core.errors import RamherdError  # noqa: PLC0415
        from ramherd.hook.messages import user_message  # noqa: PLC0415
        from ramherd.hook.shown_messages import is_first  # noqa: PLC0415

        what = str(error) if isinstance(error, RamherdError) else f"{type(error).__name__}: {error}"
        known = event if isinstance(event, dict) else {}
        text = f"the hook does not work, and subagents start without it: {what}"
        session, kind = str(known.get("session_id", "")), str(known.get("hook_event_name", ""))
        return user_message(text) if is_first(str(runtime_path()), session, text, kind) else {}
    except BaseException:  # nor must its error message
        return {}
