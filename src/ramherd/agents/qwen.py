"""Qwen Code: a Node program, started without its relaunching parent process."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from ramherd.agents import Launch, LaunchRequest
from ramherd.agents.allow_rules import as_options
from ramherd.agents.anthropic_events import API_ERROR, MessagesReader, tokens_read
from ramherd.agents.base import Cli
from ramherd.agents.find_program import AgentProgram, Source
from ramherd.agents.heap import node_options
from ramherd.agents.json_lines import count, table, tables, text, word
from ramherd.agents.progress import Fact, Spent
from ramherd.core.units import MIB

SOURCE = Source(
    agent="qwen",
    names=("qwen",),
    install="npm install -g @qwen-code/qwen-code",
    package="@qwen-code/qwen-code",
    oldest="0.15.0",
)
REFUSED = "but that permission was declined"
# cli-entry.js only starts cli.js with --expose-gc.
ENTRY, PROPER = "cli-entry.js", "cli.js"


class Qwen(Cli):
    source = SOURCE
    name = "qwen"
    runtime = "node"
    # 12 tools of 100 kB output each: it dies with 192 MiB and survives with 256.
    floor_bytes = 320 * MIB
    names_sessions = True
    splits_rules = True
    account_env = ("OPENAI_API_KEY", "OPENAI_BASE_URL", "DASHSCOPE_API_KEY", "QWEN_HOME")
    ours = (
        "-p", "--prompt", "-i", "--prompt-interactive", "-o", "--output-format", "--input-format",
        "--input-file", "-r", "--resume", "-c", "--continue", "--session-id", "--fork-session",
        "--chat-recording", "--acp", "--experimental-acp", "--worktree", "-m", "--model",
    )  # fmt: skip

    def find(self, path: str, program: str = "") -> AgentProgram:
        found = super().find(path, program)
        folder, name = os.path.split(found.file)
        proper = os.path.join(folder, PROPER)
        return replace(found, file=proper) if name == ENTRY and os.path.exists(proper) else found

    def start(self, program: AgentProgram, request: LaunchRequest) -> Launch:
        return launch(program, request, ("--session-id", request.session))

    def resume(self, program: AgentProgram, request: LaunchRequest) -> Launch:
        return launch(program, request, ("--resume", request.session))

    def attach(self, program: AgentProgram, request: LaunchRequest) -> Launch:
        node = (
            (
                program.node,
                "--expose-gc",
            )
            if program.node
            else ()
        )
        argv = (*node, program.file, "--resume", request.session, *settings(request))
        return Launch(argv, {"QWEN_CODE_NO_RELAUNCH": "true"})

    def reader(self) -> "QwenReader":
        return QwenReader()


def launch(program: AgentProgram, request: LaunchRequest, session: tuple[str, ...]) -> Launch:
    node = (program.node, "--expose-gc", *node_options(request.heap_bytes)) if program.node else ()
    argv = [*node, program.file, "--output-format", "stream-json", *session]
    return Launch((*argv, *settings(request)), {"QWEN_CODE_NO_RELAUNCH": "true"}, request.prompt)


def settings(request: LaunchRequest) -> tuple[str, ...]:
    argv = ["--model", request.model] if request.model else []
    argv += ["--yolo"] if request.skip_permissions else []
    allowed = as_options("--allowed-tools", "qwen", request.allow, "run_shell_command")
    return (*argv, *request.args, *allowed)


class QwenReader(MessagesReader):
    def read(self, event: Mapping[str, Any]) -> Iterator[Fact]:
        if text(event, "type") == "user":
            yield from self.read_refusals(event)
        yield from super().read(event)

    def read_refusals(self, event: Mapping[str, Any]) -> Iterator[Fact]:
        """Refusals are also in the result, which a stopped run does not reach."""
        for part in tables(event, "message", "content"):
            call = self.open.get(word(part, "tool_use_id"))
            if call is not None and REFUSED in text(part, "content"):
                yield call

    def read_usage(self, event: Mapping[str, Any]) -> Iterator[Fact]:
        """The result counts the whole session, including runs before a resume."""
        usage = table(event, "usage")
        yield Spent(tokens_read(usage), count(usage, "output_tokens"), whole=True)

    def is_error(self, reply: str) -> bool:
        """qwen reports this as a success, with an exit code of 0."""
        return reply.startswith(API_ERROR)


AGENT = Qwen()
