"""All settings, and how each is written.

`KEYS` is the only table: flags, variable names, the check of files, `ramherd config` and
docs/config.md are made from it, so a new key is one line. Named tuples, because every start of a
herd pays for them: a dataclass takes 1 ms to make, a named tuple 0.2 ms.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ramherd.core.errors import UsageError
from ramherd.core.policies import (
    PEN_KINDS,
    GatewayPolicy,
    GrantPolicy,
    Policy,
    RecyclePolicy,
    ReusePolicy,
    StrayPolicy,
)
from ramherd.core.units import KIB, format_size, parse_duration, parse_size
from ramherd.core.values import (
    AMOUNT,
    COUNT,
    FILE_SIZE,
    NUMBER,
    PATTERNS,
    SIZE,
    SWITCH,
    TEXT,
    TIME,
    ValueType,
    parse_number,
    size_from_number,
)
from ramherd.jobs.schema import SETTING_KEYS

POLICY, GRANTS, RECYCLING, REUSE = Policy(), GrantPolicy(), RecyclePolicy(), ReusePolicy()
STRAYS, GATEWAY = StrayPolicy(), GatewayPolicy()
PREFIX = "RAMHERD_"
# Each splice fills at most the rest of the ring: a small ring would cost a call for every line.
LEAST_RING_BYTES = 64 * KIB
HOOK_WAIT_S = 600.0


class Key(NamedTuple):
    name: str
    kind: ValueType
    default: Any
    help: str
    # A profile may set it; `drill`, which makes its own jobs, does not have it.
    of_job: bool = False

    @property
    def flag(self) -> str:
        return flag_of(self.name)

    @property
    def is_rare(self) -> bool:
        """Whether `--help` leaves out the flag; `--help-all` lists it."""
        return self.name in RARE

    @property
    def variable(self) -> str:
        return variable_of(self.name)

    def parse(self, value: Any) -> Any:
        """`none` removes the value of a weaker source."""
        if self.default is None and value == "none":
            return None
        return self.kind.parse_setting(value)

    def show(self, value: Any) -> str:
        return "none" if value is None else self.kind.show(value)


def parse_pen(value: Any) -> str:
    kinds = ("auto", *PEN_KINDS)
    if value not in kinds:
        raise UsageError(f"{value!r} is not a kind of pen", hint=f"one of: {', '.join(kinds)}")
    return str(value)


def parse_ring(value: Any) -> int:
    size = parse_size(value)
    if size < LEAST_RING_BYTES:
        least = format_size(LEAST_RING_BYTES)
        raise UsageError(f"{format_size(size)} is below {least}", hint="write 64KiB or more")
    return size


def parse_share(value: Any) -> float | None:
    """`none` means no limit."""
    return None if value == "none" else parse_part(value)


def parse_pause(value: Any) -> float:
    """A duration that may be 0."""
    return 0.0 if str(value) in ("0", "0s") else parse_duration(value)


def parse_percent(value: Any) -> int:
    number = parse_number(value)
    if number > 100:
        raise UsageError(f"{number} is above 100", hint="write a percentage of 1 to 100")
    return number


def parse_part(value: Any) -> float:
    number = parse_factor(value)
    if number > 1:
        raise UsageError(f"{value!r} is above 1", hint=f"write {min(number / 100, 1):g}")
    return number


def parse_factor(value: Any) -> float:
    try:
        number = float(value) if isinstance(value, str | int | float) else 0.0
    except ValueError:
        number = 0.0
    if isinstance(value, bool) or not 0 < number < float("inf"):
        raise UsageError(f"{value!r} is not a number above zero", hint="write it like 0.5")
    return number


RING = FILE_SIZE._replace(parse=parse_ring)
PAUSE = TIME._replace(parse=parse_pause)
PERCENT = NUMBER._replace(parse=parse_percent)
FACTOR = ValueType("N", parse_factor, "{:g}".format, annotation="float")
PART = ValueType("SHARE", parse_part, "{:g}".format, annotation="float")
SHARE = ValueType("SHARE", parse_share, "{:g}".format, annotation="str | float")
PEN = ValueType("KIND", parse_pen)
LINE = TEXT._replace(metavar="COMMAND")

# Values for jobs that do not set them.
JOB_SETTINGS = tuple(
    Key(key.name, key.kind, key.default, key.help, of_job=True) for key in SETTING_KEYS.values()
)
# Flags that `--help` leaves out: tuning, experiments, and sizes that are set once in a file.
RARE = (
    "budget_share", "ramp", "patience", "max_hold", "recycle_at", "max_cpu_pressure", "pids_limit",
    "log_head", "log_ring", "log_total", "reuse", "reuse_size", "reuse_age", "reuse_idle",
    "stall_after", "time_scale", "size_scale", "agent_program", "agent_args", "warn_subagents",
    "warn_mcp", "warn_node", "warn_memory", "warn_at", "watch_every", "memory_history",
    "mcp.share",
)  # fmt: skip
RUN_KEYS = (
    Key("budget", SIZE, None, "memory that all runs together may use at most"),
    Key(
        "budget_share",
        PART,
        POLICY.budget_share,
        "share of the memory of the machine that runs may use",
    ),
    Key("max_parallel", NUMBER, None, "runs at a time; if not given, memory decides"),
    Key("ramp", NUMBER, None, "begin with N runs, and add N after each step without trouble"),
    *JOB_SETTINGS,
    Key(
        "patience",
        TIME,
        GRANTS.patience_s,
        "time a run waits for memory before the youngest run is stopped",
    ),
    Key(
        "max_hold",
        TIME,
        GRANTS.max_hold_s,
        "time after which a run that waits for memory is stopped itself",
    ),
    Key("recycle_at", SIZE, RECYCLING.recycle_at_bytes, "size at which a leaking run is restarted"),
    Key(
        "max_cpu_pressure",
        SHARE,
        GRANTS.cpu_pressure_marks[0],
        "CPU pressure above which no run is started, or none",
    ),
    Key("grace", TIME, POLICY.grace_s, "time between TERM and KILL"),
    Key("pen", PEN, "auto", f"how the memory of runs is limited: auto, {', '.join(PEN_KINDS)}"),
    Key("no_wait", SWITCH, False, "fail at once when memory is short (exit 3)"),
    Key("pids_limit", NUMBER, POLICY.pids_limit, "processes in one run at most (cgroup pens)"),
    Key(
        "log_head",
        FILE_SIZE,
        POLICY.log_head_bytes,
        "size kept from the start of each output stream",
    ),
    Key(
        "log_ring",
        RING,
        POLICY.log_ring_bytes,
        "size kept from the end of each output stream",
    ),
    Key(
        "log_total",
        FILE_SIZE,
        POLICY.log_total_bytes,
        "size of all output; the oldest of finished runs is removed",
    ),
    Key("reuse_size", SIZE, REUSE.most_bytes, "size above which a warm process is not used again"),
    Key("reuse_age", TIME, REUSE.most_age_s, "age above which a warm process is not used again"),
    Key("reuse_idle", TIME, REUSE.most_idle_s, "time a warm process waits for its next job"),
    Key("max_cost_usd", AMOUNT, None, "maximum cost of all agents of a herd"),
    Key(
        "pass_env",
        PATTERNS,
        None,
        "variables that runs inherit, such as PATH, HOME, ANTHROPIC_*; if not given, all",
    ),
    Key("on_done", LINE, None, "command to run when a herd has ended"),
    Key("on_alert", LINE, None, "command to run for each alert"),
    Key(
        "stall_after",
        PAUSE,
        POLICY.stall_after_s,
        "time without output after which an agent is reported; 0 is never",
    ),
    Key("mcp.share", SWITCH, False, "agents without `mcp` get all MCP servers of the gateway"),
    Key("notify", SWITCH, False, "a notice on the desktop at the end of a herd, or the bell"),
    Key("time_scale", FACTOR, 1.0, "for benchmarks: agents run N times faster"),
    Key("size_scale", FACTOR, 1.0, "for benchmarks: agents are N times smaller"),
)
# For `ps` and `reap`.
STRAY_KEYS = (
    Key("stray_grace", PAUSE, STRAYS.grace_s, "time after which an orphan is ended"),
    Key(
        "stray_keep",
        PATTERNS,
        (),
        "programs, commands or directories that are never ended, such as vite, *train.py*",
    ),
    Key("warn_at", SIZE, STRAYS.warn_at_bytes, "size of an agent from which ps warns"),
    Key(
        "warn_subagents",
        COUNT,
        STRAYS.warn_subagents,
        "number of subagents in a session above which ps warns",
    ),
    Key("warn_mcp", COUNT, STRAYS.warn_mcp, "number of MCP servers above which ps warns"),
    Key("warn_node", NUMBER, STRAYS.warn_node, "number of node processes from which ps warns"),
    Key(
        "warn_memory",
        PERCENT,
        STRAYS.warn_memory_percent,
        "percent of memory in use from which ps warns",
    ),
)
# For hooked sessions, which also read `budget` and `max_parallel`.
HOOK_KEYS = (
    Key("subagent_memory", SIZE, None, "memory a hooked subagent needs; if not given, learned"),
    Key(
        "max_parallel_session",
        NUMBER,
        None,
        "subagents at a time in one hooked session, up to Claude's cap",
    ),
    Key("hook_wait", TIME, HOOK_WAIT_S, "time a hooked subagent waits for memory or max_parallel"),
    Key("hook_sweep", SWITCH, True, "end what the tools of hooked sessions leave behind"),
    Key("on_subagent_stop", LINE, None, "command to run at the end of each hooked subagent"),
)
# For the MCP gateway: in files in the table [mcp].
MCP_KEYS = (
    Key("mcp.memory_limit", SIZE, GATEWAY.memory_limit_bytes, "memory an MCP server may use"),
    Key("mcp.idle", TIME, GATEWAY.idle_s, "time without a call after which an MCP server is ended"),
)
# For the service.
SERVICE_KEYS = (
    Key(
        "watch_every",
        PAUSE,
        STRAYS.watch_every_s,
        "time between two looks of the service at all agents (ramherd watch); 0 is never",
    ),
    Key(
        "memory_history",
        FILE_SIZE,
        POLICY.memory_history_bytes,
        "size of the service's record of memory over time, which is kept for a week at most",
    ),
)
KEYS = (*RUN_KEYS, *STRAY_KEYS, *SERVICE_KEYS, *HOOK_KEYS, *MCP_KEYS)
BY_NAME = {key.name: key for key in KEYS}
# Names of other tools for the same settings.
ALIASES = {
    "maxParallelSubagents": "max_parallel",
    "max-concurrent": "max_parallel",
    "subagentMemoryLimit": "memory_limit",
    "max-memory": "memory_limit",
    "maxMemory": "memory_limit",
    "preferentialModel": "fallback_model",
    "mcpServerSharing": "mcp.share",
}
# Aliases that take a number without a unit, in MiB.
IN_MIB = ("max-memory", "maxMemory")


class Setting(NamedTuple):
    """A value and its source."""

    value: Any
    source: str


Layer = Mapping[str, Setting]


# Called with each wrong setting: raises, or leaves it out.
Report = Callable[[UsageError], None]
# Called with a line for each setting that is left out.
Warn = Callable[[str], None]


def refuse(error: UsageError) -> None:
    raise error


def flag_of(name: str) -> str:
    return "--" + name.replace("_", "-").replace(".", "-")


def variable_of(name: str) -> str:
    """`max_parallel`, `max-parallel` and `maxParallel` are all RAMHERD_MAX_PARALLEL."""
    snake = "".join(f"_{letter}" if letter.isupper() else letter for letter in name)
    return PREFIX + snake.replace("-", "_").replace(".", "_").upper()


def resolve(name: str) -> str:
    """The key's own name for an alias."""
    return ALIASES.get(name, name)


def add_unit(name: str, value: Any) -> Any:
    """The value written for a setting under this name, with the name's unit."""
    text = size_from_number(value)
    is_number = isinstance(text, str) and re.fullmatch("[0-9]+", text.strip())
    return f"{text}MiB" if name in IN_MIB and is_number else value


def parse_at(key: Key, value: Any, where: str) -> Any:
    try:
        return key.parse(value)
    except UsageError as error:
        raise UsageError(f"{where}: {error}", hint=error.hint) from None
