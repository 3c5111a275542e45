"""Qwen Code: a Node program, started without the process that would start it again."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from ramherd.agents import Ask, Launch
from ramherd.agents.anthropic_events import MessagesReader, tokens_read
from ramherd.agents.base import Cli
from ramherd.agents.event_lines import count, table
from ramherd.agents.events import Fact, Spent
from ramherd.agents.find_program import Program, Source
from ramherd.agents.heap import node_options
from ramherd.core.units import MIB

SOURCE = Source(
    agent="qwen",
    names=("qwen",),
    install="npm install -g @qwen-code/qwen-code",
    package="@qwen-code/qwen-code",
    oldest="0.15.0",
)
# Its only work is to start cli.js with --expose-gc.
ENTRY, PROPER = "cli-entry.js", "cli.js"


class Qwen(Cli):
    source = SOURCE
    name = "qwen"
    runtime = "node"
    # 12 tools of 100 kB output each: 192 die, 256 live.
    floor_bytes = 320 * MIB
    names_sessions = True
    ours = (
        "-p", "--prompt", "-i", "--prompt-interactive", "-o", "--output-format", "--input-format",
        "--input-file", "-r", "--resume", "-c", "--continue", "--session-id", "--fork-session",
        "--chat-recording", "--acp", "--experimental-acp", "--worktree", "-m", "--model",
    )  # fmt: skip

    def find(self, path: str, program: str = "") -> Program:
        found = super().find(path, program)
        folder, name = os.path.split(found.file)
        proper = os.path.join(folder, PROPER)
        return replace(found, file=proper) if name == ENTRY and os.path.exists(proper) else found

    def start(self, program: Program, ask: Ask) -> Launch:
        return launch(program, ask, ("--session-id", ask.session))

    def resume(self, program: Program, ask: Ask) -> Launch:
        return launch(program, ask, ("--resume", ask.session))

    def reader(self) -> "QwenReader":
        return QwenReader()


def launch(program: Program, ask: Ask, session: tuple[str, ...]) -> Launch:
    node = (program.node, "--expose-gc", *node_options(ask.heap_bytes)) if program.node else ()
    argv = [*node, program.file, "--output-format", "stream-json", *session]
    argv += ["--model", ask.model] if ask.model else []
    argv += ["--yolo"] if ask.skip_permissions else []
    return Launch((*argv, *ask.args), {"QWEN_CODE_NO_RELAUNCH": "true"}, ask.prompt)


class QwenReader(MessagesReader):
    def settle(self, event: Mapping[str, Any]) -> Iterator[Fact]:
        """Its result has the whole session in it, also over a resume."""
        usage = table(event, "usage")
        yield Spent(tokens_read(usage), count(usage, "output_tokens"), whole=True)

    def is_error(self, said: str) -> bool:
        """It calls this a success, with an exit code of 0."""
        return said.startswith("[API Error:")


AGENT = Qwen()
