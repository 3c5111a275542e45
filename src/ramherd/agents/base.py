"""Defaults for the adapters of real CLIs."""

import os
import signal
from collections.abc import Iterator, Sequence

from ramherd.agents import Launch, LaunchRequest, WarmPrompts
from ramherd.agents.allow_rules import parse_rule
from ramherd.agents.find_program import AgentProgram, Source, find_program
from ramherd.agents.progress import (
    TOOLS_KEPT,
    Fact,
    ToolEnded,
    ToolStarted,
    TurnEnded,
    TurnStarted,
)
from ramherd.core.errors import UsageError
from ramherd.core.units import shown


class Cli:
    source: Source
    # INT would write into claude's history that the user stopped it.
    stop_signal = signal.SIGTERM
    resumes = True
    reports_cost = False
    holds_to_cost = False
    # gemini exits with 0 after TERM, and several CLIs do after they gave up.
    needs_result = True
    # Else the CLI names the session, and reports the name in an event.
    names_sessions = False
    warm: WarmPrompts | None = None
    # A comma ends a rule that allows a tool, even inside brackets.
    splits_rules = False
    account_env: tuple[str, ...] = ()

    def find(self, path: str, program: str = "") -> AgentProgram:
        return find_program(self.source, path, program)

    def new_session(self) -> str:
        return new_uuid() if self.names_sessions else ""

    def attach(self, program: AgentProgram, request: LaunchRequest) -> Launch:
        raise NotImplementedError

    def attach_argv(self, session: str, program: str = "") -> tuple[str, ...]:
        named = AgentProgram(program or self.source.names[0])
        return self.attach(named, LaunchRequest("", session)).argv

    def check_allow(self, rules: Sequence[str]) -> None:
        for rule in rules:
            parse_rule(self.source.agent, rule)
            if self.splits_rules and "," in rule:
                raise UsageError(
                    f"{self.source.agent} takes no rule with a comma: --allow {shown(rule)}",
                    hint="allow its beginning, as in --allow 'Bash(npm test)'",
                )

    def read_errors(self, printed: str) -> Iterator[Fact]:  # noqa: ARG002 - events report them
        return iter(())


def new_uuid() -> str:
    """A random UUID (version 4), without importing `uuid`."""
    number = bytearray(os.urandom(16))
    number[6] = number[6] & 0x0F | 0x40
    number[8] = number[8] & 0x3F | 0x80
    text = number.hex()
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


class Turns:
    """Turns of CLIs that do not report them: from the first event of a reply to the end of its last
    tool.
    """

    def __init__(self) -> None:
        self.in_turn = False
        self.open: set[str] = set()

    def start(self) -> Iterator[Fact]:
        if not self.in_turn:
            self.in_turn = True
            yield TurnStarted()

    def start_tool(self, tool: str, name: str, argument: str = "") -> Iterator[Fact]:
        yield from self.start()
        if len(self.open) < TOOLS_KEPT:
            self.open.add(tool)
            yield ToolStarted(tool, name, argument)

    def end_tool(self, ended: ToolEnded) -> Iterator[Fact]:
        if ended.id in self.open:
            self.open.discard(ended.id)
            yield ended
            if not self.open:
                self.in_turn = False
                yield TurnEnded()
