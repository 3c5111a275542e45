"""Claude Code's settings.json: our hooks in it, all others left as they are.

Text in, text out; `hook/install.py` reads and writes the files. A file keeps its indentation.
"""

import json
import re
import shlex
import sys
from typing import Any

from ramherd.core.errors import UsageError

MARK = "-m ramherd.hook"
TOOLS = "Task|Agent"
# The timeout of a hook in seconds: PreToolUse waits for memory, the others work.
WORK_S = 60
WAIT_MARGIN_S = 60
# The wait for other subagents of the same session is not part of `hook_wait`.
QUEUE_S = 24 * 3600
# Claude shows this while the hook runs.
STATUS = "ramherd: waiting for room for this subagent (ramherd hook status)"
# Each event, and the tools that it is for.
EVENTS = {
    "SessionStart": "",
    "PreToolUse": TOOLS,
    "PostToolUse": TOOLS,
    "PostToolUseFailure": TOOLS,
    "SubagentStart": "",
    "SubagentStop": "",
    "Stop": "",
    "SessionEnd": "",
}


def hook_command(timeout_s: int, python: str = sys.executable) -> str:
    """`|| true`: exit code 2 would forbid the tool, and a missing Python must forbid nothing. -P: a
    project's own files are not taken for modules of ours.
    """
    return f"{shlex.quote(python)} -P {MARK} {timeout_s} || true"


def pre_tool_timeout_s(wait_s: float) -> int:
    return int(wait_s) + WAIT_MARGIN_S + QUEUE_S


def with_hooks(text: str, where: str, wait_s: float, python: str = sys.executable) -> str:
    """The settings with our hooks, each once and up to date."""
    settings = parse(text, where)
    hooks = without(settings.get("hooks", {}))
    for event, matcher in EVENTS.items():
        waits = event == "PreToolUse"
        timeout_s = pre_tool_timeout_s(wait_s) if waits else WORK_S
        hook = {"type": "command", "command": hook_command(timeout_s, python), "timeout": timeout_s}
        hook |= {"statusMessage": STATUS} if waits else {}
        entry = {"matcher": matcher, "hooks": [hook]} if matcher else {"hooks": [hook]}
        hooks[event] = [*hooks.get(event, []), entry]
    return render({**settings, "hooks": hooks}, text)


def without_hooks(text: str, where: str) -> str:
    """The unchanged text, if it has no hook of ours."""
    if not installed_events(text, where):
        return text
    settings = parse(text, where)
    hooks = without(settings.get("hooks", {}))
    if hooks:
        settings["hooks"] = hooks
    else:
        settings.pop("hooks", None)
    return render(settings, text)


def installed_events(text: str, where: str) -> dict[str, list[str]]:
    """Our commands by event."""
    found: dict[str, list[str]] = {}
    for event, entries in parse(text, where).get("hooks", {}).items():
        commands = [hook.get("command") for entry in entries for hook in entry.get("hooks", [])]
        if ours := [command for command in commands if is_ours(command)]:
            found[event] = ours
    return found


def without(hooks: dict[str, Any]) -> dict[str, Any]:
    """The hooks of others; an entry or event that held only ours is removed."""
    kept: dict[str, Any] = {}
    for event, entries in hooks.items():
        rest = [others for entry in entries if (others := others_of(entry)) is not None]
        if rest or not entries:
            kept[event] = rest
    return kept


def others_of(entry: dict[str, Any]) -> dict[str, Any] | None:
    hooks = entry.get("hooks", [])
    others = [hook for hook in hooks if not is_ours(hook.get("command"))]
    if len(others) == len(hooks):
        return entry
    return {**entry, "hooks": others} if others else None


def is_ours(command: object) -> bool:
    return isinstance(command, str) and MARK in command


def parse(text: str, where: str) -> dict[str, Any]:
    """Claude also refuses a file that is not JSON, with all of its settings."""
    hint = "repair it by hand: it was left as it is"
    try:
        settings = json.loads(text, object_pairs_hook=without_twins) if text.strip() else {}
    except ValueError as error:
        raise UsageError(f"{where} is not JSON: {error}", hint=hint) from None
    if not isinstance(settings, dict) or not is_well_formed(settings.get("hooks", {})):
        raise UsageError(f"{where} does not look like settings of Claude Code", hint=hint)
    return settings


def without_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuses a key that occurs twice: one of its values would be lost."""
    table = dict(pairs)
    if len(table) < len(pairs):
        names = [name for name, _value in pairs]
        twin = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"key {twin!r} stands there twice")
    return table


def is_well_formed(hooks: object) -> bool:
    return isinstance(hooks, dict) and all(
        isinstance(entries, list)
        and all(
            isinstance(entry, dict)
            and isinstance(entry.get("hooks", []), list)
            and all(isinstance(hook, dict) for hook in entry.get("hooks", []))
            for entry in entries
        )
        for entries in hooks.values()
    )


def render(settings: dict[str, Any], like: str) -> str:
    """With the indentation and the last newline of the text."""
    found = re.search(r"^([ \t]+)\S", like, re.MULTILINE)
    indent = found[1] if found else "  "
    end = "" if like.strip() and not like.endswith("\n") else "\n"
    return json.dumps(settings, indent=indent, ensure_ascii=False) + end
