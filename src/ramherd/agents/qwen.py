"""Qwen Code: a Node program, started without the process that would start it again."""

import os
import signal
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from ramherd.agents import Ask, Launch
from ramherd.agents.facts import Fact, Spent
from ramherd.agents.heap import node_options
from ramherd.agents.lines import count, table
from ramherd.agents.messages import MessagesReader, tokens_read
from ramherd.agents.programs import Program, Source, find_program
from ramherd.agents.session_ids import new_uuid
from ramherd.units import MIB

SOURCE = Source(
    agent="qwen",
    names=("qwen",),
    install="npm install -g @qwen-code/qwen-code",
    package="@qwen-code/qwen-code",
    oldest="0.15.0",
)
# Its only work is to start cli.js with --expose-gc.
ENTRY, PROPER = "cli-entry.js", "cli.js"


class Qwen:
    name = "qwen"
    runtime = "node"
    # 12 tools of 100 kB output each: 192 die, 256 live.
    floor_bytes = 320 * MIB
    stop_signal = signal.SIGTERM
    resumes = True
    reports_cost = False
    holds_to_cost = False
    ours = (
        "-p", "--prompt", "-i", "--prompt-interactive", "-o", "--output-format", "--input-format",
        "--input-file", "-r", "--resume", "-c", "--continue", "--session-id", "--fork-session",
        "--chat-recording", "--acp", "--experimental-acp", "--worktree", "-m", "--model",
    )  # fmt: skip
    needs_result = True

    def find(self, path: str, program: str = "") -> Program:
        found = find_program(SOURCE, path, program)
        folder, name = os.path.split(found.file)
        proper = os.path.join(folder, PROPER)
        return replace(found, file=proper) if name == ENTRY and os.path.exists(proper) else found

    def new_session(self) -> str:
        return new_uuid()

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
