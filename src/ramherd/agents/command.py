"""Any other program: `ask.args` is what to run, the prompt is its input. It says no facts."""

import signal
from collections.abc import Iterator, Mapping
from typing import Any

from ramherd.agents import Ask, Launch
from ramherd.agents.events import Fact
from ramherd.agents.find_program import Program


class Command:
    name = "command"
    runtime = "unknown"
    floor_bytes = 0
    stop_signal = signal.SIGTERM
    # What a job's `resume_command` does is the user's: with one, pass it as `args`.
    resumes = False
    reports_cost = False
    holds_to_cost = False
    ours = ()
    needs_result = False
    warm = None

    def find(self, path: str, program: str = "") -> Program:  # noqa: ARG002 - PATH is exec's affair
        return Program(program)

    def new_session(self) -> str:
        return ""

    def start(self, program: Program, ask: Ask) -> Launch:  # noqa: ARG002
        return Launch(ask.args, {}, ask.prompt)

    def resume(self, program: Program, ask: Ask) -> Launch:
        return self.start(program, ask)

    def reader(self) -> "Silence":
        return Silence()


class Silence:
    def read(self, event: Mapping[str, Any]) -> Iterator[Fact]:  # noqa: ARG002
        return iter(())

    def read_long(self, found: Mapping[str, str]) -> Iterator[Fact]:  # noqa: ARG002
        return iter(())


AGENT = Command()
