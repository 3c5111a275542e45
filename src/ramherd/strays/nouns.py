"""The nouns of strays: processes, their programs, their details, verdicts with evidence.

Filled by `strays/read/`, judged by `strays/judge/`, shown by `strays/render.py`. Named tuples where
there is one for each process of the machine: a dataclass takes four times as long to make.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

from ramherd.core.procid import Process, ProcId
from ramherd.core.sightings import Sighting


class Kind(StrEnum):
    AGENT = "agent"
    MCP = "mcp"
    LANGUAGE = "language"
    LINTER = "linter"
    WATCHER = "watcher"
    DEV_SERVER = "dev_server"
    BROWSER = "browser"
    TOOL = "tool"
    WRAPPER = "wrapper"
    # Known only by what it lost: nobody is at the other side of its stdin and stdout.
    OTHER = "other"
    # ramherd itself is shown, and never ended.
    RAMHERD = "ramherd"
    # Applications hold sessions, reapers inherit orphans: read, never shown or ended.
    APPLICATION = "application"
    REAPER = "reaper"


class Verdict(StrEnum):
    LIVE = "live"
    IDLE = "idle"
    SUSPECT = "suspect"
    ORPHAN = "orphan"


class Fact(StrEnum):
    """All evidence for or against a process; `strays/render.py` has a sentence for each."""

    # Each of these proves that the process is not needed any more.
    STDIN_GONE = "stdin_gone"
    READER_GONE = "reader_gone"
    WRAPPER_GONE = "wrapper_gone"
    RUN_OVER = "run_over"
    OWNER_GONE = "owner_gone"
    CHILD_OF_ORPHAN = "child_of_orphan"
    # Signs, which alone prove nothing.
    REPARENTED = "reparented"
    LEADER_GONE = "leader_gone"
    MARK = "mark"
    DUPLICATE = "duplicate"
    IDLE = "idle"
    STDIN_CLOSED = "stdin_closed"
    CUT_OFF = "cut_off"
    RETAINED = "retained"
    SUPERVISOR = "supervisor"
    # Each of these keeps the process from being ended.
    TERMINAL = "terminal"
    DISPLAY = "display"
    CLIENTS = "clients"
    OWNER = "owner"
    RUN_LIVE = "run_live"
    LISTENS = "listens"
    BUSY = "busy"
    WRITES = "writes"
    CONNECTED = "connected"
    IN_TREE = "in_tree"
    NOHUP = "nohup"
    KEPT = "kept"
    OTHER_USER = "other_user"
    UNREADABLE = "unreadable"
    OURS = "ours"
    RAMHERD = "ramherd"


class PeerState(StrEnum):
    """The other side of a descriptor."""

    LIVE = "live"
    GONE = "gone"
    TERMINAL = "terminal"
    # Nothing that could go away: a file, /dev/null, or closed.
    NONE = "none"
    UNKNOWN = "unknown"


class RunningProgram(NamedTuple):
    """The program of a process: a binary, or the script, package or module of an interpreter."""

    path: str
    argv: tuple[str, ...] = ()
    package: str = ""
    module: str = ""
    is_script: bool = False
    # The package declares that it is an MCP server.
    is_mcp: bool = False
    # A shell that runs a command line or a script.
    is_shell: bool = False
    readable: bool = True


class Software(NamedTuple):
    """One entry of the table. `packages` are of npm, `modules` of Python."""

    name: str
    kind: Kind
    programs: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    # Parts of a binary's path, if its name is too general.
    paths: tuple[str, ...] = ()
    # Variables that an agent gives to its tools: any, its own pid, its session.
    marks: tuple[str, ...] = ()
    pid_in: str = ""
    session_in: str = ""
    # Variables that the wrapper gives to the agent itself; `A+B` is both of them.
    wrapped: tuple[str, ...] = ()
    # Regular expressions for the paths of files that the agent makes its tools print to.
    outputs: tuple[str, ...] = ()
    resume: str = ""
    resume_last: str = ""
    # The first arguments of its own supervisor, which retains sessions in the background.
    supervisor: tuple[str, ...] = ()


class Connection(NamedTuple):
    """An established connection: the inode of the other end (0: on another machine), and where it
    leads.
    """

    peer: int
    to: str


class Details(NamedTuple):
    """Facts that are read only of the few processes that may be strays."""

    stdin: PeerState = PeerState.UNKNOWN
    stdout: PeerState = PeerState.UNKNOWN
    stderr: PeerState = PeerState.UNKNOWN
    # The inode of stdin's pipe or socket: a wrapper and its server share it.
    stdin_inode: int = 0
    # It prints to a file of the agent whose mark it has.
    prints_to_agent: bool = False
    on_terminal: bool = False
    # It is connected to a display: a user may look at its windows.
    on_display: bool = False
    # It is the other side of a terminal: tmux, screen, a terminal emulator.
    keeps_terminal: bool = False
    # Ports and names on which it listens.
    listens: tuple[str, ...] = ()
    # Connections that it made, other than to the services of a desktop.
    connections: tuple[Connection, ...] = ()
    # Files that it has open for writing, except those of agents and of npm.
    writes: tuple[str, ...] = ()
    # Sockets of its clients, 0 for one on another machine; and its own.
    clients: tuple[int, ...] = ()
    sockets: frozenset[int] = frozenset()
    nohup: bool = False
    # RAMHERD_KEEP=1 is in its environment.
    keep: bool = False
    readable: bool = True
    # Names of agents whose mark it has, the pid and session of its agent, its ramherd run.
    marks: tuple[str, ...] = ()
    wrapped: tuple[str, ...] = ()
    owner_pid: int = 0
    session: str = ""
    run: str = ""


class Recorded(NamedTuple):
    """An ancestor that was recorded above a process, and the session that it was in."""

    agent: str
    owner: ProcId
    session: str = ""
    subagents: int = 0
    # It spoke with its agent over two pipes.
    is_server: bool = False


class Evidence(NamedTuple):
    fact: Fact
    name: str = ""
    number: float = 0


class ProcessScene(NamedTuple):
    """The input of a judgement. `at_s` is epoch seconds."""

    at_s: float
    uptime_ticks: int
    ticks_per_s: int
    uid: int
    # This process and its ancestors.
    ours: frozenset[int]
    processes: Mapping[int, Process]
    software: Mapping[int, Software]
    programs: Mapping[int, RunningProgram]
    details: Mapping[int, Details]
    memory: Mapping[int, int] = {}
    sightings: Mapping[ProcId, Sighting] = {}
    recorded: Mapping[ProcId, Recorded] = {}
    # The working directories of rows: a session can be resumed only there.
    cwds: Mapping[int, str] = {}
    # The project of a directory: the nearest directory above it with a repository.
    projects: Mapping[str, str] = {}
    # Whether each run in our store is over.
    runs: Mapping[str, bool] = {}

    def age_s(self, process: Process) -> float:
        return max(self.uptime_ticks - process.id.start_ticks, 0) / self.ticks_per_s


class Origin(StrEnum):
    """Who started a process, as far as it can be seen."""

    SESSION = "session"
    LEFT = "left"
    HAND = "hand"
    RAMHERD = "ramherd"


class PsRow(NamedTuple):
    """A process with its verdict. `spared` has the reasons why it is not ended automatically."""

    process: Process
    software: str
    kind: Kind
    verdict: Verdict
    evidence: tuple[Evidence, ...]
    spared: tuple[Evidence, ...]
    # The outermost agent above it, or the topmost process that an agent left; 0 is none.
    session: int
    application: str
    memory_bytes: int
    age_s: float
    idle_s: float | None
    growth_bytes: int | None
    orphan_s: float | None
    command: str
    origin: Origin = Origin.SESSION
    # Its directory, the project that this is in, and the ports and names on which it listens.
    cwd: str = ""
    project: str = ""
    listens: tuple[str, ...] = ()


class WarningSign(NamedTuple):
    """An anomaly, with the number and its limit."""

    sign: str
    number: float
    limit: float
    pid: int = 0
    name: str = ""
    # Bytes per minute, and the command that continues a session.
    rate: float = 0
    command: str = ""


class Saving(NamedTuple):
    """Copies of one MCP server, and the memory that one shared copy would save."""

    software: str
    copies: int
    saved_bytes: int
