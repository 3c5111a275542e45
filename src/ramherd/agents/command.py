"""Any other program: `request.args` is the command, the prompt its input. It reports no facts."""

import signal
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ramherd.agents import Launch, LaunchRequest
from ramherd.agents.find_program import AgentProgram
from ramherd.agents.progress import Fact
from ramherd.core.errors import UsageError


class Command:
    name = "command"
    runtime = "unknown"
    floor_bytes = 0
    stop_signal = signal.SIGTERM
    # The user defines a job's `resume_command`: if there is one, pass it as `args`.
    resumes = False
    reports_cost = False
    holds_to_cost = False
    ours = ()
    needs_result = False
    warm = None

    def find(self, path: str, program: str = "") -> AgentProgram:  # noqa: ARG002 - exec searches PATH
        return AgentProgram(program)

    def new_session(self) -> str:
        return ""

    def read_errors(self, printed: str) -> Iterator[Fact]:  # noqa: ARG002
        return iter(())

    def start(self, program: AgentProgram, request: LaunchRequest) -> Launch:  # noqa: ARG002
        return Launch(request.args, {}, request.prompt)

    def resume(self, program: AgentProgram, request: LaunchRequest) -> Launch:
        return self.start(program, request)

    def attach(self, program: AgentProgram, request: LaunchRequest) -> Launch:  # noqa: ARG002
        raise UsageError("a command has no session")

    def attach_argv(self, session: str, program: str = "") -> tuple[str, ...]:  # noqa: ARG002
        raise UsageError("a command has no session")

    def check_allow(self, rules: Sequence[str]) -> None:
        if rules:
            raise UsageError("the job is a command: it asks for no permission")

    def reader(self) -> "Silence":
        return Silence()


class Silence:
    def read(self, event: Mapping[str, Any]) -> Iterator[Fact]:  # noqa: ARG002
        return iter(())

    def read_long(self, found: Mapping[str, str]) -> Iterator[Fact]:  # noqa: ARG002
        return iter(())


AGENT = Command()
