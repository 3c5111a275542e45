"""The agent CLIs that ramherd supports: how each is started, resumed, read and stopped.

Each agent has one file, loaded when it is needed. An adapter returns the command to start
(`Launch`) and a reader for the output of the CLI; it starts nothing itself. Adapters share
`base.py` (defaults for most CLIs), `json_lines.py` (bytes to events), `progress.py` (the meaning of
events), `find_program.py`, `resume_prompt.py`, `user_args.py` (arguments that a user may add),
`allow_rules.py` (tools that a user allows for one run), `mcp_links.py` (MCP servers for one run)
and `heap.py` (memory settings).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from ramherd.core.agent_names import AGENTS
from ramherd.core.errors import UsageError

if TYPE_CHECKING:
    from ramherd.agents.find_program import AgentProgram
    from ramherd.agents.progress import Fact


@dataclass(frozen=True, slots=True)
class LaunchRequest:
    """A request to an agent. `args` are the user's own, added after ours.

    `session` is the session to resume, or the name of a new one (`Agent.new_session`).
    `heap_bytes` is from `heap.choose_heap_bytes`, for a runtime with such a setting.
    """

    prompt: str
    session: str = ""
    model: str = ""
    args: tuple[str, ...] = ()
    skip_permissions: bool = False
    heap_bytes: int | None = None
    # For a CLI that ends itself when a run has cost this much.
    max_cost_usd: float | None = None
    # Tools that need no permission in this run (`allow_rules.py`).
    allow: tuple[str, ...] = ()


class ConfigFile(NamedTuple):
    """A file that must exist before the CLI starts; or, with `links_to`, a directory with a link to
    each file in another directory, except for files that it has itself.
    """

    path: str
    text: str = ""
    links_to: str = ""


@dataclass(frozen=True, slots=True)
class Launch:
    """The command to start. The job's own variables override `env`. `stdin` is the whole input, or
    the first part of it for a `warm` process.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    stdin: str = ""
    warm: bool = False
    # `stdin` is only a large prompt: the file of the job with the prompt is used instead.
    is_prompt_file: bool = False
    # The MCP servers of the gateway that it may use, and the files that name them.
    servers: tuple[str, ...] = ()
    files: tuple[ConfigFile, ...] = ()


@dataclass(frozen=True, slots=True)
class WarmPrompts:
    """How one process gets one prompt after another, each in a new session."""

    # Asks for a new session; the agent answers it like a prompt.
    fresh: str
    # The stdin of the process stays open: the process ends when it is closed.
    start: "Callable[[AgentProgram, LaunchRequest], Launch]"
    # Formats a prompt as the process expects it on stdin.
    prompt: Callable[[str], str]


class EventReader(Protocol):
    """Turns the events of one run, in order, into facts."""

    def read(self, event: Mapping[str, Any]) -> "Iterator[Fact]": ...

    def read_long(self, found: Mapping[str, str]) -> "Iterator[Fact]":
        """Reads an event too long to keep: `found` has the plain fields of its head and tail."""
        ...


class Agent(Protocol):
    """One CLI. No method reads a clock or starts a process."""

    name: str
    runtime: str  # node, bun, native, unknown
    floor_bytes: int  # with less memory it does not survive ordinary work
    stop_signal: int  # the history can be resumed after it; then clear the pen
    resumes: bool
    reports_cost: bool
    holds_to_cost: (
        bool  # ends itself at `max_cost_usd`, because it reports its cost only at its end
    )
    ours: tuple[str, ...]  # options that users cannot pass: ramherd sets or relies on them
    account_env: tuple[str, ...]  # variables that select the account at the API
    needs_result: bool  # an exit code of 0 without a result is not a success
    warm: WarmPrompts | None  # None: one process, one prompt

    def find(self, path: str, program: str = "") -> "AgentProgram":
        """The executable on a PATH, or the one in a setting."""
        ...

    def new_session(self) -> str:
        """An id for a new session, or "" if the CLI chooses it and reports it in an event."""
        ...

    def start(self, program: "AgentProgram", request: LaunchRequest) -> Launch: ...

    def resume(self, program: "AgentProgram", request: LaunchRequest) -> Launch:
        """The same with `request.session`: in the same cwd, with `resume_prompt.py`'s prompt.

        Only sessions that the CLI has opened can be resumed (`Progress.session`), and a new session
        needs a new id: claude refuses an id that was used before.
        """
        ...

    def attach(self, program: "AgentProgram", request: LaunchRequest) -> Launch:
        """The CLI for a user at a terminal, in `request.session`. The prompt is not used."""
        ...

    def attach_argv(self, session: str, program: str = "") -> tuple[str, ...]:
        """The same, as a user would type it in the job's directory. No program is searched for."""
        ...

    def check_allow(self, rules: Sequence[str]) -> None:
        """Raises UsageError for a rule that the CLI does not accept for one run."""
        ...

    def reader(self) -> EventReader: ...

    def read_errors(self, printed: str) -> "Iterator[Fact]":
        """Facts that are only on stderr: `printed` is the end of stderr after the run."""
        ...


def find_agent(name: str) -> Agent:
    if name not in AGENTS:
        raise UsageError(f"there is no agent {name!r}", hint=f"agents are: {', '.join(AGENTS)}")
    agent: Agent = import_module(f"ramherd.agents.{name}").AGENT
    return agent
