"""The CLIs that ramherd can drive: how each is started, resumed, understood and stopped.

One file an agent, loaded when it is needed. An adapter says what to start (`Launch`) and makes a
reader for what the CLI prints; it starts nothing itself. What adapters share: `base.py` (what most
CLIs have in common), `json_lines.py` (bytes to events), `progress.py` (what events mean),
`find_program.py`, `resume_prompt.py`, `user_args.py` (arguments that a user may add),
`allow_rules.py` (tools that a user allows for one run) and `heap.py` (memory settings).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

from ramherd.core.agent_names import AGENTS
from ramherd.core.errors import UsageError

if TYPE_CHECKING:
    from ramherd.agents.find_program import AgentProgram
    from ramherd.agents.progress import Fact


@dataclass(frozen=True, slots=True)
class LaunchRequest:
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
    # Tools that need no permission in this run (`allow_rules.py`).
    allow: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Launch:
    """What to start. `env` goes under the job's own variables, `stdin` is all of its input; of a
    `warm` process it is the first.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    stdin: str = ""
    warm: bool = False
    # `stdin` is a large prompt and nothing else: the file of the job that has it is used instead.
    is_prompt_file: bool = False


@dataclass(frozen=True, slots=True)
class WarmPrompts:
    """How one process gets one prompt after another, each in a new session."""

    # Asks for a new session; the agent answers it like a prompt.
    fresh: str
    # The stdin of the process stays open: the process ends when it is closed.
    start: "Callable[[AgentProgram, LaunchRequest], Launch]"
    # A prompt as the process expects it on stdin.
    prompt: Callable[[str], str]


class EventReader(Protocol):
    """Makes facts of one run's events; it has seen all the earlier ones."""

    def read(self, event: Mapping[str, Any]) -> "Iterator[Fact]": ...

    def read_long(self, found: Mapping[str, str]) -> "Iterator[Fact]":
        """An event too long to keep: `found` are the plain fields in its head and tail."""
        ...


class Agent(Protocol):
    """One CLI. Nothing here reads a clock or starts a process."""

    name: str
    runtime: str  # node, bun, native, unknown
    floor_bytes: int  # with less memory it does not live through ordinary work
    stop_signal: int  # after which the history can be resumed; then clear the pen
    resumes: bool
    reports_cost: bool
    holds_to_cost: (
        bool  # ends by itself at `max_cost_usd`, because it reports its cost at its end only
    )
    ours: tuple[str, ...]  # its options that are not the user's: ramherd sets or relies on them
    account_env: tuple[str, ...]  # variables that select the account at the API
    needs_result: bool  # an exit code of 0 without a result is not a success
    warm: WarmPrompts | None  # None: one process, one prompt

    def find(self, path: str, program: str = "") -> "AgentProgram":
        """The executable on a PATH, or the one that a setting names."""
        ...

    def new_session(self) -> str:
        """An id for a new session, or "" where the CLI chooses it and says so in an event."""
        ...

    def start(self, program: "AgentProgram", request: LaunchRequest) -> Launch: ...

    def resume(self, program: "AgentProgram", request: LaunchRequest) -> Launch:
        """The same with `request.session`: in the same cwd, with `resume_prompt.py`'s prompt.

        Only sessions that the CLI has opened can be resumed (`Progress.session`), and a new one
        needs a new id: claude refuses one that it has seen.
        """
        ...

    def attach(self, program: "AgentProgram", request: LaunchRequest) -> Launch:
        """The CLI for a person at a terminal, in `request.session`. The prompt is not used."""
        ...

    def attach_argv(self, session: str, program: str = "") -> tuple[str, ...]:
        """The same as a user types it in the job's directory. Nothing is looked up."""
        ...

    def check_allow(self, rules: Sequence[str]) -> None:
        """Raises UsageError for a rule that the CLI cannot be given for one run."""
        ...

    def reader(self) -> EventReader: ...

    def read_errors(self, printed: str) -> "Iterator[Fact]":
        """Facts that are on stderr only: `printed` is the end of it, once a run has ended."""
        ...


def find_agent(name: str) -> Agent:
    if name not in AGENTS:
        raise UsageError(f"there is no agent {name!r}", hint=f"agents are: {', '.join(AGENTS)}")
    agent: Agent = import_module(f"ramherd.agents.{name}").AGENT
    return agent
