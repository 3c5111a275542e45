"""The CLIs that ramherd can drive: how each is started, resumed, understood and stopped.

One file an agent, loaded when it is asked for. An adapter says what to start (`Launch`) and makes
a reader for what the CLI prints; it starts nothing itself. What they share: `cli.py` (what holds
for most), `lines.py` (bytes to lines), `facts.py` (what a line can mean), `programs.py` (where a
program is), `args.py` (what a user may add), `heap.py` and `own.py` (memory settings, and whose
memory is the agent's own).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

from ramherd.core.agent_names import AGENTS
from ramherd.core.errors import UsageError

if TYPE_CHECKING:
    from ramherd.agents.events import Fact
    from ramherd.agents.find_program import Program

# After TERM the history ends in the tool call that was cut short, or just before it.
GO_ON = "You were stopped and started again. Go on where you were; check what is already done."


@dataclass(frozen=True, slots=True)
class Ask:
    """What is asked of an agent. `args` are the user's own, put after ours.

    `session` is the one to resume, or the name of a new one (`Agent.new_session`).
    `heap_bytes` is what `heap.choose_heap_bytes` allows a runtime that takes such a setting.
    """

    prompt: str
    session: str = ""
    model: str = ""
    args: tuple[str, ...] = ()
    skip_permissions: bool = False
    heap_bytes: int | None = None
    # For a CLI that ends by itself when a run has cost so much.
    max_cost_usd: float | None = None


@dataclass(frozen=True, slots=True)
class Launch:
    """What to start. `env` goes under the job's own variables, `stdin` is all of its input; of a
    `warm` process it is the first.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    stdin: str = ""
    warm: bool = False


class Warm(Protocol):
    """How one process is asked one thing after another, each in a session of its own."""

    fresh: str  # asks for a new session; it is answered like a prompt

    def start(self, program: "Program", ask: Ask) -> Launch:
        """Its stdin stays open: the process ends when that is closed."""
        ...

    def prompt(self, text: str) -> str: ...


class Reader(Protocol):
    """Makes facts of one run's events; it has seen all the earlier ones."""

    def read(self, event: Mapping[str, Any]) -> "Iterator[Fact]": ...

    def read_long(self, found: Mapping[str, str]) -> "Iterator[Fact]":
        """Of an event too long to keep: the plain fields in its head and tail (`lines.sniff`)."""
        ...


class Agent(Protocol):
    """One CLI. Nothing here reads a clock or starts a process."""

    name: str
    runtime: str  # node, bun, native, unknown
    floor_bytes: int  # with less memory it does not live through ordinary work
    stop_signal: int  # after which the history can be resumed; then clear the pen
    resumes: bool
    reports_cost: bool
    holds_to_cost: bool  # reports it at its end only, and ends when it has cost what it was told
    ours: tuple[str, ...]  # its options that are not the user's: ramherd sets or relies on them
    needs_result: bool  # an exit code of 0 without a result is not a success
    warm: Warm | None  # None: one process, one prompt

    def find(self, path: str, program: str = "") -> "Program":
        """The executable on a PATH, or the one that a setting names."""
        ...

    def new_session(self) -> str:
        """An id for a new session, or "" where the CLI chooses it and says so in an event."""
        ...

    def start(self, program: "Program", ask: Ask) -> Launch: ...

    def resume(self, program: "Program", ask: Ask) -> Launch:
        """The same with `ask.session`: in the same cwd, mostly with `GO_ON` as the prompt.

        Only sessions that the CLI has opened can be resumed (`Progress.session`), and a new one
        needs a new id: claude refuses one that it has seen.
        """
        ...

    def reader(self) -> Reader: ...


def find_agent(name: str) -> Agent:
    if name not in AGENTS:
        raise UsageError(f"there is no agent {name!r}", hint=f"agents are: {', '.join(AGENTS)}")
    agent: Agent = import_module(f"ramherd.agents.{name}").AGENT
    return agent
