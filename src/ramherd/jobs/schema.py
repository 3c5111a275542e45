"""The keys of a job and what each takes. A wrong value is an error that says what is right."""

import os
import shlex
import shutil
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from ramherd.core.agent_names import WARM_AGENTS
from ramherd.core.errors import RamherdError, UsageError
from ramherd.core.units import shown
from ramherd.core.values import as_count, as_name, as_text, nearest

T = TypeVar("T")

KEYS = (
    "name", "command", "cwd", "env", "stdin", "priority", "after", "label",
    "memory", "memory_limit", "timeout", "retries", "profile", "resume_command",
    "agent", "prompt", "model", "worktree", "max_cost_usd", "fallback_model", "skip_permissions",
    "agent_program", "agent_args", "reuse",
)  # fmt: skip
KEYS_TO_COME = ("mcp", "workspace", "container")
# Of commands only, and of agents only.
OF_COMMANDS = ("resume_command", "stdin")
OF_AGENTS = (
    "prompt", "model", "worktree", "max_cost_usd", "fallback_model", "skip_permissions",
    "agent_program", "agent_args", "reuse",
)  # fmt: skip
MISSING = {
    "command": 'add command = ["program", "argument"], or agent and prompt',
    "prompt": 'add prompt = "what the agent is to do"',
    "agent": 'add agent = "claude", or use --agent',
}
SHELL = "/bin/sh"


class Reader:
    """One job's keys, each error with its place."""

    def __init__(self, table: Mapping[str, Any], where: str) -> None:
        self.table = table
        self.where = where

    def get(self, key: str, parse: Callable[[Any], T], default: T) -> T:
        return self.need(key, parse) if key in self.table else default

    def need(self, key: str, parse: Callable[[Any], T]) -> T:
        if key not in self.table:
            raise UsageError(f"{self.where} has no {key!r}", hint=MISSING[key])
        try:
            return parse(self.table[key])
        except RamherdError as error:
            raise UsageError(f"{self.where}, key {key!r}: {error}", hint=error.hint) from None

    def check_keys(self) -> None:
        for key in self.table:
            if key in KEYS_TO_COME:
                raise UsageError(f"{self.where}: the feature of key {key!r} is not built yet")
            if key not in KEYS:
                hint = nearest(key, KEYS)
                raise UsageError(f"{self.where} has an unknown key {shown(key)}", hint=hint)


def as_names(value: Any) -> tuple[str, ...]:
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list):
        raise UsageError("is not a list of job names")
    return tuple(dict.fromkeys(as_name(name) for name in names))


def as_environment(value: Any) -> dict[str, str]:
    if not isinstance(value, dict):
        raise UsageError("is not a table of texts")
    for name, text in value.items():
        if not name or "=" in as_text(name):
            raise UsageError(f"{shown(name)} cannot be the name of a variable")
        if not isinstance(text, str):
            raise UsageError(f"{shown(name)} is not a text", hint="put its value in quotes")
        as_text(text)
    return value


def as_reuse(value: Any, agent: str) -> int:
    """How many jobs share a process."""
    if as_count(value) and agent not in WARM_AGENTS:
        hint = f"reuse works with {', '.join(WARM_AGENTS)}"
        raise UsageError(f"{agent} takes one prompt and ends", hint=hint)
    return int(value)


def as_prompt(value: Any) -> str:
    if not as_text(value).strip():
        raise UsageError("is empty")
    return str(value)


def as_amount(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e9:
        raise UsageError(f"{shown(value)} is not an amount above zero")
    return float(value)


def as_directory(value: Any) -> str:
    path = os.path.abspath(os.path.expanduser(as_text(value)))
    if not os.path.isdir(path):
        raise UsageError(f"{path!r} is not a directory")
    return path


def as_command(value: Any, cwd: str, env: Mapping[str, str]) -> tuple[str, ...]:
    """An argv list, or a string for the shell. The program has to be there."""
    if isinstance(value, str) and value.strip():
        return SHELL, "-c", as_text(value)
    if not isinstance(value, list) or not value or value[0] == "":
        raise UsageError("is neither a list of words nor a line for the shell")
    argv = tuple(as_text(word) for word in value)
    path = env.get("PATH", os.environ.get("PATH", os.defpath))
    program = os.path.join(cwd, argv[0]) if "/" in argv[0] else argv[0]
    if shutil.which(program, path=path) is None:
        there = os.path.exists(program) and "/" in argv[0]
        problem = "is not executable" if there else "is not found"
        hint = f"chmod +x {shlex.quote(program)}" if there and program.isprintable() else ""
        raise UsageError(f"{shown(argv[0])} {problem}", hint=hint)
    return argv
