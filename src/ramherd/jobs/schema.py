"""The keys of a job: one table, the source of everything about them.

These are the checks of job files and requests (`jobs/reader.py`), the settings that give jobs their
defaults (`config/keys.py`), the description of the API, the type for Python callers
(`client/new_job.py`), the API's view of a stored job, and the table in docs/jobs.md. A new key is
an entry here and a field of `Job` or `Brief`.
"""

import os
import shlex
from collections.abc import Callable
from typing import Any, NamedTuple

from ramherd.core.agent_names import AGENTS, MCP_AGENTS, WARM_AGENTS
from ramherd.core.agent_task import ALL_SERVERS, FALLBACK, ON_LIMIT, WAIT
from ramherd.core.errors import UsageError
from ramherd.core.exec_limits import explain_length, explain_variables
from ramherd.core.units import shown
from ramherd.core.values import (
    AGENT,
    AMOUNT,
    COUNT,
    NAME,
    NAMES,
    PROGRAM,
    RAW_TEXT,
    SERVERS,
    SIZE,
    STRING,
    STRINGS,
    SWITCH,
    TEXT,
    TIME,
    VARIABLES,
    WHOLE,
    WORDS,
    Schema,
    ValueType,
    parse_raw_text,
)
from ramherd.system.environ import encode
from ramherd.system.executables import find_executable
from ramherd.system.user_files import read_cwd

SHELL = "/bin/sh"
# The agent of jobs that have a command instead of an agent.
COMMAND = "command"
COMMANDS, AGENTS_ONLY = "commands", "agents"
# The part of the stored form that only jobs with an agent have.
BRIEF = "brief"


class Context(NamedTuple):
    """Input for values that depend on others: `here` is where relative paths start (None: our own
    directory), `values` are the keys that were read before.
    """

    here: str | None
    agent: str
    # PATH of the caller; if None, our own.
    path: str | None
    values: dict[str, Any]


class JobKey(NamedTuple):
    name: str
    kind: ValueType
    help: str
    # Jobs that may have the key: COMMANDS, AGENTS_ONLY, or "" for all.
    use: str = ""
    # The name in the stored form, if it differs; None: not stored.
    stored: str | None = ""
    # The setting of the same name is the value for jobs that do not set it.
    is_setting: bool = False
    default: Any = None
    # A second check, for values that depend on others.
    check: Callable[[Any, Context], Any] | None = None
    # The agents that support the key.
    agents: tuple[str, ...] = AGENTS
    # For a required key: what to add.
    missing: str = ""
    # The API shows it with the job.
    is_shown: bool = False
    is_built: bool = True

    @property
    def path(self) -> str:
        return self.stored or self.name

    @property
    def is_stored(self) -> bool:
        return self.stored is not None and self.is_built

    @property
    def is_in_brief(self) -> bool:
        return self.path.startswith(f"{BRIEF}.")

    @property
    def field(self) -> str:
        """The attribute of `Job`, or of its `Brief`, that holds the value."""
        return self.path.removeprefix(f"{BRIEF}.")


def parse_command(value: Any) -> tuple[str, ...]:
    """A list of words, or a line for the shell."""
    if isinstance(value, str) and value.strip():
        return SHELL, "-c", parse_raw_text(value)
    if not isinstance(value, list) or not value or value[0] == "":
        raise UsageError("is neither a list of words nor a line for the shell")
    return tuple(parse_raw_text(word) for word in value)


def parse_prompt(value: Any) -> str:
    if not parse_raw_text(value).strip():
        raise UsageError("is empty")
    return str(value)


def find_directory(value: str, here: str | None) -> str:
    path = absolute(value, here)
    if not os.path.isdir(path):
        there = os.path.exists(path)
        hint = f"it is a file: name its directory, {os.path.dirname(path)!r}"
        make = f"mkdir {shlex.quote(path)}" if path.isprintable() else ""
        raise UsageError(f"{path!r} is not a directory", hint=hint if there else make)
    return path


def check_variables(variables: dict[str, str], _context: Context) -> dict[str, str]:
    if why := explain_variables({encode(name): encode(text) for name, text in variables.items()}):
        raise UsageError(why, hint="pass it in a file, or as stdin")
    return variables


def check_length(words: tuple[str, ...], _context: Context | None = None) -> tuple[str, ...]:
    if why := explain_length([encode(word) for word in words]):
        raise UsageError(why, hint="pass it in a file, or as stdin")
    return words


def find_command(argv: tuple[str, ...], context: Context) -> tuple[str, ...]:
    """The program must exist, and the kernel must accept its arguments. The shell finds its own."""
    check_length(argv)
    env, cwd = context.values.get("env", {}), context.values["cwd"]
    own = os.environ.get("PATH", os.defpath) if context.path is None else context.path
    program = os.path.join(cwd, argv[0]) if "/" in argv[0] else argv[0]
    if find_executable(program, env.get("PATH", own)) is None:
        there = os.path.exists(program) and "/" in argv[0]
        problem = "is not executable" if there else "is not found"
        search = "write the path of the program, or add its directory to PATH"
        hint = f"chmod +x {shlex.quote(program)}" if there and program.isprintable() else search
        raise UsageError(f"{shown(argv[0])} {problem}", hint=hint)
    return argv


def find_program(value: str, context: Context) -> str:
    """A path becomes absolute, because the job may be started from another directory."""
    return absolute(value, context.here) if "/" in value else value


def parse_on_limit(value: Any) -> str:
    if value not in ON_LIMIT:
        raise UsageError(
            f"{shown(value)} is not one of {', '.join(ON_LIMIT)}", hint=f"write {WAIT}"
        )
    return str(value)


def check_on_limit(value: str, context: Context) -> str:
    if value == FALLBACK and not context.values.get("fallback_model"):
        raise UsageError(
            "on_limit is fallback_model, and there is no fallback_model",
            hint='add fallback_model = "MODEL" or --fallback-model MODEL',
        )
    return value


def check_reuse(value: int, context: Context) -> int:
    if value and context.agent not in WARM_AGENTS:
        hint = f"reuse works with {', '.join(WARM_AGENTS)}"
        raise UsageError(f"{context.agent} takes one prompt and ends", hint=hint)
    return value


def check_mcp(value: tuple[str, ...], context: Context) -> tuple[str, ...] | None:
    """Whether the gateway has the servers is checked before anything starts. With `mcp.share`, all
    servers are meant for the agents that can have them.
    """
    if context.agent not in MCP_AGENTS:
        if value == (ALL_SERVERS,):
            return None
        hint = f"mcp works with {', '.join(MCP_AGENTS)}"
        raise UsageError(f"{context.agent} takes no MCP servers for a single run", hint=hint)
    return value


def check_base(value: str, _context: Context) -> str:
    """Whether the repository has the commit is checked before anything starts."""
    if value.startswith("-"):
        raise UsageError(f"{shown(value)} is an option, not a branch, tag or commit")
    return value


def absolute(path: str, here: str | None) -> str:
    path = os.path.expanduser(path)
    return os.path.normpath(path if os.path.isabs(path) else f"{here or read_cwd()}/{path}")


NOT_BLANK = {**STRING, "pattern": r"\S"}
WORDS_OF_COMMAND = {**STRINGS, "minItems": 1, "prefixItems": [{**STRING, "minLength": 1}]}
ARGV = ValueType(
    "COMMAND", parse_command, written={"anyOf": [NOT_BLANK, WORDS_OF_COMMAND]},
    parsed=STRINGS, annotation="str | Sequence[str]",
)  # fmt: skip
LIMIT_CHOICE = ValueType(
    "CHOICE", parse_on_limit, written={**STRING, "enum": list(ON_LIMIT)}, parsed=STRING
)
PROMPT = TEXT._replace(parse=parse_prompt, written=NOT_BLANK)

# `agent`, `cwd` and `env` come before the keys whose checks need them.
JOB_KEYS = (
    JobKey("name", NAME, "name, unique in its herd; job-N if not given"),
    JobKey(
        "profile", NAME, "the [profile.NAME] of the settings to use",
        stored=None, is_setting=True,
    ),
    JobKey(
        "agent", AGENT, "agent that gets the prompt: claude, codex, ...",
        stored="brief.agent", is_setting=True, is_shown=True,
        missing='add agent = "claude", or use --agent',
    ),
    JobKey(
        "prompt", PROMPT, "what the agent is asked to do", AGENTS_ONLY,
        stored="brief.prompt", is_shown=True, missing='add prompt = "what the agent is to do"',
    ),
    JobKey(
        "cwd", RAW_TEXT, "working directory", is_shown=True,
        check=lambda value, context: find_directory(value, context.here),
    ),
    JobKey("env", VARIABLES, "environment variables to add", check=check_variables),
    JobKey(
        "command", ARGV, "program and arguments, or a line for the shell", COMMANDS,
        stored="argv", check=find_command, is_shown=True,
        missing='add command = ["program", "argument"], or agent and prompt',
    ),
    JobKey(
        "resume_command", ARGV, "command that continues a run which was stopped to free memory",
        COMMANDS, stored="resume_argv", check=find_command,
    ),
    JobKey("stdin", RAW_TEXT, "text for standard input", COMMANDS),
    JobKey(
        "on_done", ARGV, "command that is started when the job has ended", check=find_command,
    ),
    JobKey("priority", WHOLE, "jobs with a higher number start first"),
    JobKey("after", NAMES, "jobs that must be done first", is_shown=True),
    JobKey("label", TEXT, "jobs with one label share what ramherd learns about their memory"),
    JobKey(
        "memory", SIZE, "memory reserved for a run from its start; if not given, learned",
        stored="memory_bytes", is_setting=True, is_shown=True,
    ),
    JobKey(
        "memory_limit", SIZE, "memory a run may never exceed",
        stored="memory_limit_bytes", is_setting=True, is_shown=True,
    ),
    JobKey(
        "timeout", TIME, "longest time a run may take, without the time it is queued or held",
        stored="timeout_s", is_setting=True, is_shown=True,
    ),
    JobKey(
        "retries", COUNT, "how often a failed job is tried again",
        is_setting=True, default=0, is_shown=True,
    ),
    JobKey(
        "agent_program", PROGRAM, "program of the agent, if not the one in PATH", AGENTS_ONLY,
        stored="brief.program", is_setting=True, check=find_program,
    ),
    JobKey(
        "agent_args", WORDS, "additional arguments for the agent", AGENTS_ONLY,
        stored="brief.args", is_setting=True, check=check_length,
    ),
    JobKey(
        "model", NAME, "model of the agent; if not given, the agent decides", AGENTS_ONLY,
        stored="brief.model", is_setting=True,
    ),
    JobKey(
        "fallback_model", NAME, "model while memory is very short, or at a usage limit",
        AGENTS_ONLY, stored="brief.fallback_model", is_setting=True,
    ),
    JobKey(
        "on_limit", LIMIT_CHOICE, "at a usage limit: wait, fail, or use fallback_model",
        AGENTS_ONLY, stored="brief.on_limit", is_setting=True, default=WAIT, check=check_on_limit,
    ),
    JobKey(
        "skip_permissions", SWITCH, "the agent uses tools without asking", AGENTS_ONLY,
        stored="brief.skip_permissions", is_setting=True, default=False,
    ),
    JobKey(
        "worktree", SWITCH, "run in a git worktree; if not given, when jobs share a repository",
        AGENTS_ONLY, stored="brief.worktree", is_setting=True,
    ),
    JobKey(
        "base", NAME, "commit that the worktree starts from, instead of the branches of `after`",
        AGENTS_ONLY, stored="brief.base", check=check_base,
    ),
    JobKey(
        "reuse", COUNT, "number of jobs that share a warm process, one after another", AGENTS_ONLY,
        stored="brief.reuse", is_setting=True, default=0, check=check_reuse, agents=WARM_AGENTS,
    ),
    JobKey(
        "max_cost_usd", AMOUNT, "what the job's agent may cost", AGENTS_ONLY,
        stored="brief.max_cost_usd",
    ),
    JobKey(
        "mcp", SERVERS, "MCP servers of the agent, shared through the gateway; * for all",
        AGENTS_ONLY, stored="brief.mcp", is_setting=True, check=check_mcp,
    ),
    JobKey("workspace", TEXT, "", is_built=False),
    JobKey("needs", NAMES, "", is_built=False),
    JobKey("container", TEXT, "", is_built=False),
)  # fmt: skip
BUILT_KEYS = {key.name: key for key in JOB_KEYS if key.is_built}
KEYS_TO_COME = tuple(key.name for key in JOB_KEYS if not key.is_built)
SIZE_KEYS = tuple(key.name for key in JOB_KEYS if key.kind is SIZE)
# Keys whose default is a setting, which a profile may set.
SETTING_KEYS = {key.name: key for key in JOB_KEYS if key.is_setting}
PROFILE_KEYS = {name: key for name, key in SETTING_KEYS.items() if name != "profile"}


def describe_new_job() -> Schema:
    """JSON Schema of a submitted job."""
    return {
        "type": "object",
        "properties": {name: describe_key(key) for name, key in BUILT_KEYS.items()},
        "anyOf": [{"required": ["command"]}, {"required": ["prompt"]}],
        "additionalProperties": False,
    }


def describe_defaults() -> Schema:
    """JSON Schema of the values for jobs that do not set them."""
    return {
        "type": "object",
        "properties": {name: describe_key(key) for name, key in PROFILE_KEYS.items()},
        "additionalProperties": False,
    }


def describe_key(key: JobKey) -> Schema:
    return {"description": key.help, **key.kind.written}


def describe_shown() -> dict[str, Schema]:
    """JSON Schema of the API's view of a submitted job: by stored name."""
    null = {"type": "null"}
    return {
        key.field: {"anyOf": [key.kind.parsed, null]} for key in BUILT_KEYS.values() if key.is_shown
    }
