"""opencode: a native binary (Bun). It reports tools only after their end."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ramherd.agents import Launch, LaunchRequest
from ramherd.agents.allow_rules import SHELLS, parse_rule
from ramherd.agents.base import Cli
from ramherd.agents.denials import deny_call
from ramherd.agents.find_program import AgentProgram, Source
from ramherd.agents.heap import bun_environment
from ramherd.agents.json_lines import count, number, table, text, word
from ramherd.agents.progress import (
    TOO_LONG,
    Fact,
    ModelText,
    Result,
    SessionOpened,
    Spent,
    ToolEnded,
    ToolStarted,
    TurnEnded,
    TurnStarted,
    clip,
    failures,
    tool_ended,
)
from ramherd.agents.tool_text import main_argument
from ramherd.core.units import MIB

SOURCE = Source(
    agent="opencode",
    names=("opencode",),
    install="npm install -g opencode-ai",
    package="opencode",
    oldest="1.0.0",
)


# Permission was needed and no user could give it; or a rule in its settings forbids the call.
REFUSALS = ("The user rejected permission", "The user has specified a rule which prevents")
# Tools that a rule can remove; calls of other missing tools are mistakes of the model.
RULED = ("bash", "edit", "write", "patch", "apply_patch", "webfetch", "websearch")


class Opencode(Cli):
    source = SOURCE
    name = "opencode"
    runtime = "bun"
    # 12 tools of 100 kB output each: it dies with 400 MiB and survives with 480.
    floor_bytes = 600 * MIB
    reports_cost = True
    account_env = (
        "OPENCODE_CONFIG", "OPENCODE_CONFIG_DIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME",
        "ANTHROPIC_API_KEY", "OPENAI_API_KEY",
    )  # fmt: skip
    ours = (
        "--format", "-s", "--session", "-c", "--continue", "--fork", "--attach", "--dir", "-i",
        "--interactive", "-m", "--model",
    )  # fmt: skip

    def start(self, program: AgentProgram, request: LaunchRequest) -> Launch:
        return launch(program, request, ())

    def resume(self, program: AgentProgram, request: LaunchRequest) -> Launch:
        return launch(program, request, ("--session", request.session))

    def attach(self, program: AgentProgram, request: LaunchRequest) -> Launch:
        node = (program.node,) if program.node else ()
        argv = (*node, program.file, "--session", request.session, *settings(request))
        return Launch(argv, permissions(request.allow))

    def reader(self) -> "OpencodeReader":
        return OpencodeReader()


def launch(program: AgentProgram, request: LaunchRequest, session: tuple[str, ...]) -> Launch:
    node = (program.node,) if program.node else ()
    argv = [*node, program.file, "run", "--format", "json", *session]
    env = {"OPENCODE_DISABLE_AUTOUPDATE": "1", **bun_environment(request.heap_bytes)}
    return Launch((*argv, *settings(request)), env | permissions(request.allow), request.prompt)


def settings(request: LaunchRequest) -> tuple[str, ...]:
    argv = ["--model", request.model] if request.model else []
    argv += ["--auto"] if request.skip_permissions else []
    return (*argv, *request.args)


def permissions(rules: Sequence[str]) -> dict[str, str]:
    """Merged over the user's own permissions, where a table replaces a word: over `"bash": "deny"`,
    a table with one command would allow all others, unless it has an entry for them.
    """
    if not rules:
        return {}
    allowed: dict[str, str | dict[str, str]] = {}
    for rule in rules:
        tool, what = parse_rule("opencode", rule)
        named = "bash" if tool in SHELLS else tool.lower()
        others = allowed.setdefault(named, {"*": "ask"} if what else "allow")
        if isinstance(others, dict):
            others[what or "*"] = "allow"
    return {"OPENCODE_PERMISSION": json.dumps(allowed)}


class OpencodeReader:
    def __init__(self) -> None:
        self.session = ""
        self.reply = ""

    def read(self, event: Mapping[str, Any]) -> Iterator[Fact]:
        yield from self.read_session(word(event, "sessionID"))
        part = table(event, "part")
        match text(event, "type"):
            case "step_start":
                yield TurnStarted()
            case "text":
                self.reply = clip(text(part, "text"))
                yield ModelText(text(part, "text"))
            case "tool_use":
                yield from read_tool(part)
            case "step_finish":
                yield from self.end_step(part)
            case "error":
                error = table(event, "error")
                yield from failures(text(error, "data", "message") or text(error, "name"))

    def read_session(self, session: str) -> Iterator[Fact]:
        if session and session != self.session:
            self.session = session
            yield SessionOpened(session)

    def end_step(self, part: Mapping[str, Any]) -> Iterator[Fact]:
        tokens = table(part, "tokens")
        read = sum(count(tokens, "cache", name) for name in ("read", "write"))
        written = count(tokens, "output") + count(tokens, "reasoning")
        yield Spent(count(tokens, "input") + read, written, number(part, "cost"))
        yield TurnEnded()
        if text(part, "reason") != "tool-calls":
            yield Result(self.reply)

    def read_long(self, found: Mapping[str, str]) -> Iterator[Fact]:
        yield from self.read_session(found.get("sessionID", ""))
        match found.get("type"):
            case "text":
                self.reply = TOO_LONG
                yield ModelText(TOO_LONG)
            case "tool_use":
                tool = found.get("callID", "")
                yield ToolStarted(tool, found.get("tool", ""))
                yield ToolEnded(tool, TOO_LONG, 1)


def read_tool(part: Mapping[str, Any]) -> Iterator[Fact]:
    state, tool = table(part, "state"), word(part, "callID")
    output = text(state, "output") or text(state, "error")
    yield ToolStarted(tool, word(part, "tool"), main_argument(table(state, "input")))
    yield tool_ended(tool, output, is_error=text(state, "status") == "error")
    yield from read_denial(word(part, "tool"), state)


def read_denial(tool: str, state: Mapping[str, Any]) -> Iterator[Fact]:
    """A tool that was refused, or that its settings removed."""
    args = table(state, "input")
    if text(state, "error").startswith(REFUSALS):
        yield deny_call(tool, args, " *")
    elif tool == "invalid" and word(args, "tool") in RULED:
        yield deny_call(word(args, "tool"), {})


AGENT = Opencode()
