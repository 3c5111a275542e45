"""Scripts: which one a conversation follows, and what comes next in it.

A script is a list of steps, each one reply of the model:

    say      text; a step without tool calls ends the turn
    shell    a command, or a list of them, for the shell tool of whichever CLI asks
    agents   prompts, one subagent each, all in one reply (each may name its own script); or the
             arguments of the tool, of which `prompt` is one
    call     [{"name": ..., "args": {...}}]: any tools, as they are
    wait_s   seconds before the reply begins      pause_s  seconds in the middle of it
    gate     a name: the reply waits until that gate is opened
    fail     {"status": 529, "times": 2, "message": ...}: so often an error instead, for each that
             asks; with "shared": true so often in all; `headers` and `body` as the API gives them
    tokens   [in, out]
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from llm.talk import Asked, Call, Json, Reply, Said

Script = Sequence[Mapping[str, Any]]
KEYS = {"say", "shell", "agents", "call", "wait_s", "pause_s", "gate", "fail", "tokens"}
MARKER = re.compile(r"\[script ([\w.-]+)\]")

SCRIPTS: dict[str, Script] = {
    "hello": [{"say": "Hello."}],
    "shell": [{"shell": "echo from-the-shell"}, {"say": "The shell said it."}],
    "slow": [{"shell": "sleep 300"}, {"say": "Waited."}],
    "overload": [{"fail": {"status": 529, "times": 2}, "say": "At last."}],
    "broken": [{"fail": {"status": 400, "times": 1000, "message": "bad request"}}],
    "agents": [{"agents": ["one [script shell]", "two [script shell]"]}, {"say": "Both are back."}],
}


def check(scripts: Mapping[str, Script]) -> None:
    for name, script in scripts.items():
        for step in script:
            if unknown := set(step) - KEYS:
                raise ValueError(f"script {name}: unknown {sorted(unknown)}, known {sorted(KEYS)}")


def name_in(talk: Sequence[Said]) -> tuple[str, int]:
    """The script that the last prompt with a marker names, and where in the talk that is."""
    for place in range(len(talk) - 1, -1, -1):
        if talk[place].who == "user" and (found := MARKER.findall(talk[place].text)):
            return found[-1], place
    return "", 0


def place_in(script: Script, talk: Sequence[Said]) -> int:
    """How many steps are behind: answered tool calls, and texts that ended a turn.

    A call without a result counts for nothing: CLIs drop it when they were killed in it.
    """
    at = results = 0
    for said in talk:
        if at == len(script):
            break
        wanted = count_calls(script[at])
        results += said.who == "result"
        # CLIs put words of their own into the model's mouth, as after an interruption.
        spoken = said.who == "model" and said.text.strip() == script[at].get("say", "").strip()
        if results >= wanted > 0 or (wanted == 0 and spoken):
            at, results = at + 1, 0
    return at


def count_calls(step: Mapping[str, Any]) -> int:
    return len(as_list(step.get("shell"))) + len(step.get("agents", ())) + len(step.get("call", ()))


def as_list(value: Any) -> list[Any]:
    if value is None:
        return []
    return list(value) if isinstance(value, list | tuple) else [value]


def reply_of(step: Mapping[str, Any], asked: Asked) -> Reply:
    calls = [shell_call(command, asked.tools) for command in as_list(step.get("shell"))]
    calls += [agent_call(args, asked.tools) for args in handed_on(step)]
    calls += [Call(call["name"], call.get("args", {})) for call in step.get("call", ())]
    tokens_in, tokens_out = step.get("tokens", (100, 10))
    return Reply(step.get("say", ""), calls, tokens_in, tokens_out, step.get("pause_s", 0.0))


def shell_call(command: str, tools: Sequence[str]) -> Call:
    """The same command for whichever shell tool there is."""
    shapes: dict[str, Json] = {
        "Bash": {"command": command, "description": "a command", "timeout": 600_000},
        "bash": {"command": command, "description": "a command", "timeout": 600_000},
        "run_shell_command": {"command": command, "is_background": False},
        "exec_command": {"cmd": command, "yield_time_ms": 30_000},
        "shell_command": {"command": command, "timeout_ms": 600_000},
        "shell": {"command": ["/bin/sh", "-c", command], "timeout_ms": 600_000},
    }
    name = next((name for name in shapes if name in tools), "")
    if not name:
        raise LookupError(f"none of the tools runs a command: {', '.join(tools)}")
    return Call(name, shapes[name])


def handed_on(step: Mapping[str, Any]) -> list[Json]:
    """The arguments of each subagent that a step starts."""
    given = step.get("agents", ())
    return [{"prompt": args} if isinstance(args, str) else dict(args) for args in given]


def agent_call(args: Json, tools: Sequence[str]) -> Call:
    """In the foreground where the tool knows the difference: claude's own default is behind."""
    kinds: dict[str, Json] = {
        "Agent": {"subagent_type": "general-purpose", "run_in_background": False},
        "Task": {"subagent_type": "general-purpose"},
        "agent": {"subagent_type": "general-purpose"},
        "task": {"subagent_type": "general"},
    }
    name = next((name for name in kinds if name in tools), "")
    if not name:
        raise LookupError(f"none of the tools starts a subagent: {', '.join(tools)}")
    return Call(name, {"description": "a part", **kinds[name], **args})
