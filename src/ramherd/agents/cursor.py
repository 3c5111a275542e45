"""Cursor's agent, by its documentation: it is not on npm, and this file was never run with it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ramherd.agents import Launch, LaunchRequest
from ramherd.agents.base import Cli, Turns
from ramherd.agents.denials import describe_call
from ramherd.agents.find_program import AgentProgram, Source
from ramherd.agents.json_lines import WORD_LENGTH, table, tables, text, word
from ramherd.agents.progress import (
    TOO_LONG,
    Denied,
    Fact,
    Failure,
    ModelText,
    Result,
    SessionOpened,
    ToolEnded,
    clip,
    failures,
    tool_ended,
)
from ramherd.agents.tool_text import content_text, main_argument
from ramherd.core.errors import UsageError
from ramherd.core.units import MIB

SOURCE = Source(
    agent="cursor",
    names=("cursor-agent",),
    install="https://cursor.com/docs/cli/installation",
)
REFUSALS = {"rejected", "permissionDenied"}
# The kernel accepts no argument of 128 KiB or more.
LONGEST = (128 << 10) - 1


class Cursor(Cli):
    source = SOURCE
    name = "cursor"
    # It brings its own Node, behind a script.
    runtime = "unknown"
    floor_bytes = 400 * MIB
    account_env = ("CURSOR_API_KEY", "CURSOR_CONFIG_DIR")
    ours = (
        "-p", "--print", "--output-format", "--stream-partial-output", "--resume", "--continue",
        "-m", "--model", "-w", "--worktree", "--workspace",
    )  # fmt: skip

    def start(self, program: AgentProgram, request: LaunchRequest) -> Launch:
        return launch(program, request, ())

    def resume(self, program: AgentProgram, request: LaunchRequest) -> Launch:
        return launch(program, request, ("--resume", request.session))

    def attach(self, program: AgentProgram, request: LaunchRequest) -> Launch:
        return Launch((program.file, "--resume", request.session, *settings(request)))

    def check_allow(self, rules: Sequence[str]) -> None:
        if rules:
            raise UsageError(
                "cursor accepts no rules for a single run",
                hint="put them into permissions.allow of .cursor/cli.json, or set skip_permissions",
            )

    def reader(self) -> "CursorReader":
        return CursorReader()


def launch(program: AgentProgram, request: LaunchRequest, session: tuple[str, ...]) -> Launch:
    """The prompt is the last argument; a leading dash must not make it an option."""
    size = len(request.prompt.encode())
    if size >= LONGEST:
        raise UsageError(f"the prompt has {size} bytes, and cursor accepts at most {LONGEST - 1}")
    argv = [program.file, "-p", "--output-format", "stream-json", *session]
    prompt = f" {request.prompt}" if request.prompt.startswith("-") else request.prompt
    return Launch((*argv, *settings(request), prompt))


def settings(request: LaunchRequest) -> tuple[str, ...]:
    argv = ["--model", request.model] if request.model else []
    argv += ["--force"] if request.skip_permissions else []
    return (*argv, *request.args)


class CursorReader:
    def __init__(self) -> None:
        self.turns = Turns()

    def read(self, event: Mapping[str, Any]) -> Iterator[Fact]:
        match text(event, "type"), text(event, "subtype"):
            case "system", "init" if session := word(event, "session_id"):
                yield SessionOpened(session)
            case "assistant", _ if tables(event, "message", "content"):
                yield from self.turns.start()
                yield ModelText(content_text(table(event, "message")))
            case "tool_call", "started":
                name = next(iter(table(event, "tool_call")), "tool")
                about = main_argument(table(event, "tool_call", name, "args"))
                yield from self.turns.start_tool(word(event, "call_id"), name[:WORD_LENGTH], about)
            case "tool_call", "completed":
                yield from read_denials(event)
                yield from self.turns.end_tool(ended_of(event))
            case "result", _:
                yield from self.read_result(event)

    def read_result(self, event: Mapping[str, Any]) -> Iterator[Fact]:
        reply = text(event, "result")
        if event.get("is_error") is True:
            yield from failures(reply)
        else:
            yield Result(clip(reply))

    def read_long(self, found: Mapping[str, str]) -> Iterator[Fact]:
        match found.get("type"), found.get("subtype"):
            case "tool_call", "completed":
                ended = ToolEnded(found.get("call_id", ""), TOO_LONG, 1)
                yield from self.turns.end_tool(ended)
            case "result", _:
                yield Failure(TOO_LONG) if found.get("is_error") == "true" else Result(TOO_LONG)


def ended_of(event: Mapping[str, Any]) -> ToolEnded:
    """The result has one table: `success`, or another name for a failure."""
    name = next(iter(table(event, "tool_call")), "")
    result = table(event, "tool_call", name, "result")
    outcome = next(iter(result), "success")
    words = table(result, outcome)
    keys = ("stdout", "content", "errorMessage", "error", "reason")
    output = next(filter(None, (content_text(words, key) for key in keys)), "")
    return tool_ended(word(event, "call_id"), output, is_error=outcome != "success")


def read_denials(event: Mapping[str, Any]) -> Iterator[Fact]:
    """The name of a call's result is its outcome. The CLI accepts no rules for one run."""
    for name, call in table(event, "tool_call").items():
        if REFUSALS & table(call, "result").keys():
            tool = name.removesuffix("ToolCall")[:WORD_LENGTH]
            yield Denied(tool, describe_call(table(call, "args")))


AGENT = Cursor()
