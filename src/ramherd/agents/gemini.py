"""Gemini CLI: a Node program, started without its relaunching parent process."""

from collections.abc import Iterator, Mapping
from typing import Any

from ramherd.agents import Launch, LaunchRequest
from ramherd.agents.allow_rules import as_options
from ramherd.agents.base import Cli, Turns
from ramherd.agents.denials import deny_call
from ramherd.agents.find_program import AgentProgram, Source
from ramherd.agents.heap import node_options
from ramherd.agents.json_lines import count, table, text, word
from ramherd.agents.progress import (
    TOO_LONG,
    CliWarning,
    Denied,
    Fact,
    ModelText,
    Result,
    SessionOpened,
    Spent,
    ToolEnded,
    clip,
    failures,
    tool_ended,
)
from ramherd.agents.tool_text import main_argument
from ramherd.core.units import MIB

SOURCE = Source(
    agent="gemini",
    names=("gemini",),
    install="npm install -g @google/gemini-cli",
    package="@google/gemini-cli",
    oldest="0.50.0",
)


# Without a user it has these tools only if they were allowed.
NEED_PERMISSION = ("run_shell_command", "write_file", "replace", "web_fetch")


class Gemini(Cli):
    source = SOURCE
    name = "gemini"
    runtime = "node"
    # 12 tools of 100 kB output each: it dies with 192 MiB and survives with 224.
    floor_bytes = 320 * MIB
    names_sessions = True
    splits_rules = True
    account_env = (
        "GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_CLOUD_PROJECT", "GOOGLE_GEMINI_BASE_URL",
        "GOOGLE_APPLICATION_CREDENTIALS", "GEMINI_CLI_HOME",
    )  # fmt: skip
    ours = (
        "-p", "--prompt", "-i", "--prompt-interactive", "-o", "--output-format", "-r", "--resume",
        "--session-id", "--session-file", "--acp", "--experimental-acp", "-w", "--worktree", "-m",
        "--model",
    )  # fmt: skip

    def start(self, program: AgentProgram, request: LaunchRequest) -> Launch:
        return launch(program, request, ("--session-id", request.session))

    def resume(self, program: AgentProgram, request: LaunchRequest) -> Launch:
        return launch(program, request, ("--resume", request.session))

    def attach(self, program: AgentProgram, request: LaunchRequest) -> Launch:
        node = (program.node,) if program.node else ()
        argv = (*node, program.file, "--resume", request.session, *settings(request))
        return Launch(argv, {"GEMINI_CLI_NO_RELAUNCH": "true"})

    def reader(self) -> "GeminiReader":
        return GeminiReader()


def launch(program: AgentProgram, request: LaunchRequest, session: tuple[str, ...]) -> Launch:
    node = (program.node, *node_options(request.heap_bytes)) if program.node else ()
    argv = [*node, program.file, "--output-format", "stream-json", *session]
    return Launch((*argv, *settings(request)), {"GEMINI_CLI_NO_RELAUNCH": "true"}, request.prompt)


def settings(request: LaunchRequest) -> tuple[str, ...]:
    argv = ["--model", request.model] if request.model else []
    argv += ["--yolo"] if request.skip_permissions else []
    allowed = as_options("--allowed-tools", "gemini", request.allow, "run_shell_command")
    return (*argv, *request.args, *allowed)


class GeminiReader:
    def __init__(self) -> None:
        self.turns = Turns()
        # For each tool in use, the fact to report if its call is refused.
        self.calls: dict[str, Denied] = {}
        self.reply = ""
        self.problem = ""

    def read(self, event: Mapping[str, Any]) -> Iterator[Fact]:
        match text(event, "type"):
            case "init" if session := word(event, "session_id"):
                yield SessionOpened(session)
            case "message" if text(event, "role") == "assistant":
                yield from self.turns.start()
                self.reply = clip(self.reply + text(event, "content"))
                yield ModelText(text(event, "content"), is_part=event.get("delta") is True)
            case "tool_use":
                self.reply = ""
                about = main_argument(table(event, "parameters"))
                tool, name = word(event, "tool_id"), word(event, "tool_name")
                yield from self.turns.start_tool(tool, name, about)
                if tool in self.turns.open:
                    self.calls[tool] = deny_call(name, table(event, "parameters"))
            case "tool_result":
                yield from self.read_denial(event)
                yield from self.turns.end_tool(ended_of(event))
            case "error":
                self.problem = clip(text(event, "message"))
                yield CliWarning(self.problem)
            case "result":
                yield from self.read_result(event)

    def read_denial(self, event: Mapping[str, Any]) -> Iterator[Fact]:
        """Denied by its policy; or the tool is missing, because it was not allowed."""
        call, error = self.calls.pop(word(event, "tool_id"), None), text(event, "error", "type")
        if call is None:
            return
        is_missing = error == "tool_not_registered" and call.tool in NEED_PERMISSION
        if is_missing or error == "policy_violation":
            yield call

    def read_result(self, event: Mapping[str, Any]) -> Iterator[Fact]:
        yield Spent(count(event, "stats", "input_tokens"), count(event, "stats", "output_tokens"))
        if text(event, "status") == "error":
            yield from failures(text(event, "error", "message") or self.problem)
        elif self.problem and not self.reply:
            # "Loop detected, stopping execution", followed by a report of success.
            yield from failures(self.problem)
        else:
            yield Result(self.reply)

    def read_long(self, found: Mapping[str, str]) -> Iterator[Fact]:
        match found.get("type"):
            case "tool_use":
                tool = found.get("tool_id", "")
                yield from self.turns.start_tool(tool, found.get("tool_name", ""))
            case "tool_result":
                ended = ToolEnded(found.get("tool_id", ""), TOO_LONG, 1)
                self.calls.pop(ended.id, None)
                yield from self.turns.end_tool(ended)


def ended_of(event: Mapping[str, Any]) -> ToolEnded:
    output = text(event, "output") or text(event, "error", "message")
    is_error = text(event, "status") == "error"
    return tool_ended(word(event, "tool_id"), output, is_error=is_error)


AGENT = Gemini()
