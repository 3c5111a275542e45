"""The facts that the doctor reads of a machine. None: not available on this machine."""

from collections.abc import Mapping
from dataclasses import dataclass

from ramherd.core.model import Machine
from ramherd.core.state_disk import DiskState


@dataclass(frozen=True, slots=True)
class Swap:
    path: str
    size_bytes: int
    used_bytes: int
    # The mode of a swap file; a partition has none.
    mode: int | None = None

    @property
    def is_zram(self) -> bool:
        return "zram" in self.path


@dataclass(frozen=True, slots=True)
class MemoryFacts:
    machine: Machine
    swaps: tuple[Swap, ...]
    swapped_in_pages: int
    # Bytes stored in zram, and the memory that they take.
    zram_stored_bytes: int
    zram_held_bytes: int
    shm_size_bytes: int | None
    shm_used_bytes: int
    commit_limit_bytes: int
    committed_bytes: int
    oom_kills: int


@dataclass(frozen=True, slots=True)
class Kernel:
    """Values of /proc/sys by name (`vm.overcommit_memory`), the path of each, and the file in which
    our settings are kept for the next boot.
    """

    values: Mapping[str, int]
    paths: Mapping[str, str]
    open_files: int
    is_root: bool
    kept_in: str


@dataclass(frozen=True, slots=True)
class Limits:
    """Soft and hard limits; None is unlimited."""

    open_files: tuple[int | None, int | None]
    processes: tuple[int | None, int | None]
    address_space_bytes: int | None
    data_bytes: int | None


@dataclass(frozen=True, slots=True)
class Virtual:
    """The layers between us and the hardware. `machine` is the kind of virtual machine, if any."""

    is_wsl: bool
    machine: str
    container: str
    has_systemd: bool
    balloon_driver: str
    # The memory that the host has taken, and that it asks for now.
    balloon_bytes: int
    asked_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Pens:
    kind: str
    why_weaker: str
    # Through a scope of the user manager, which `ramherd run` makes by itself.
    through_scope: bool
    is_root: bool
    has_systemd: bool
    has_manager: bool
    # None without logind, or if the system bus does not answer.
    lingers: bool | None
    # Whether logind lets a user do it without root: it asks polkit.
    may_linger: bool
    has_v2_memory: bool


@dataclass(frozen=True, slots=True)
class PressureShares:
    """Shares of time in percent, over the last 10 s and 60 s."""

    some_10: float
    some_60: float
    full_60: float


@dataclass(frozen=True, slots=True)
class OomVictim:
    """A process as programs that kill for memory see it."""

    pid: int
    name: str
    score: int
    rss_bytes: int
    # oom_score_adj: 1000 is all of the memory.
    adjusted: int = 0


@dataclass(frozen=True, slots=True)
class Group:
    """A cgroup as systemd-oomd sees it; `rank` is its xattr: omit, avoid or empty."""

    path: str
    swap_bytes: int
    used_bytes: int
    rank: str = ""
    # Whether it is below a cgroup whose swap, or whose pressure, is watched.
    by_swap: bool = False
    by_pressure: bool = False


@dataclass(frozen=True, slots=True)
class Killers:
    """Programs that kill processes when memory is short: name -> command line."""

    daemons: Mapping[str, tuple[str, ...]]
    candidates: tuple[OomVictim, ...]
    groups: tuple[Group, ...]


@dataclass(frozen=True, slots=True)
class Node:
    """The values that a node binary reported, or why it did not."""

    path: str
    version: str = ""
    heap_bytes: int = 0
    error: str = ""


@dataclass(frozen=True, slots=True)
class InstalledCli:
    name: str
    path: str
    version: str
    # bun, node, native, script, or empty if unknown.
    runtime: str
    # Programs of the same name later in PATH: (path, version).
    shadowed: tuple[tuple[str, str], ...] = ()


# Before a line that a fix takes out of a shell's start file: `:` keeps a block valid that has no
# other line.
SHELL_COMMENT = ": # "
# After the name of a file: its copy before a fix.
COPY_SUFFIX = ".before-ramherd"


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a file with settings or commands that users write."""

    path: str
    number: int
    text: str
    # start (of a shell), unit, settings, cron, script, sysctl, environment.
    kind: str
    # One assignment and nothing else: it can be removed alone.
    is_plain: bool = False
    # Whether this user may change the file.
    is_writable: bool = True


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable that is set: in our environment, a start file, a unit, an agent's settings."""

    name: str
    value: str
    line: Line
    # It is only left in our environment: a fix took it out of its file.
    is_removed: bool = False


@dataclass(frozen=True, slots=True)
class Unit:
    """A service file that starts an agent, and its memory limit."""

    path: str
    program: str
    memory_max_bytes: int | None


@dataclass(frozen=True, slots=True)
class Folder:
    path: str
    size_bytes: int
    files: int
    largest: str
    largest_bytes: int
    # Whether all files were measured in the available time.
    is_whole: bool
    on_tmpfs: bool
    disk_free_bytes: int
    disk_size_bytes: int


@dataclass(frozen=True, slots=True)
class OwnDirectory:
    """A directory of ours, which may not exist yet."""

    path: str
    # State, which is kept; or runtime files, which a reboot may remove.
    keeps: bool
    exists: bool
    is_ours: bool = True
    mode: int = 0
    is_writable: bool = True
    file_system: str = ""
    free_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class State:
    directories: tuple[OwnDirectory, ...]
    logs_bytes: int
    logs_keep_bytes: int
    disk: DiskState | None = None
    # Why the store cannot be read; empty if it can, or does not exist.
    store_error: str = ""


@dataclass(frozen=True, slots=True)
class Clock:
    now_s: float
    is_synchronised: bool | None
    source: str
    # The newest file that we wrote, if any.
    newest_s: float | None


@dataclass(frozen=True, slots=True)
class ProcRow:
    """An agent, an MCP server, or another program that one of them started."""

    pid: int
    name: str
    # agent, mcp, or any other
    kind: str
    used_bytes: int
    # The same for copies of one server; never shown.
    command: str = ""
    # The proof that it is an orphan; empty if it is not.
    orphan: str = ""
    growth_bytes_per_hour: float | None = None


@dataclass(frozen=True, slots=True)
class Processes:
    machine: Machine
    rows: tuple[ProcRow, ...] = ()
