"""The keys of a job and what each takes. A wrong value is an error that says what is right."""

import os
import shlex
import shutil
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from ramherd.core.errors import RamherdError, UsageError
from ramherd.core.units import shown

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
NAME_LENGTH = 100


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


def nearest(word: str, words: Iterable[str]) -> str:
    import difflib  # noqa: PLC0415 - only once something is wrong: imports are a cost

    known = list(words)
    close = difflib.get_close_matches(word, known, 1)
    if close:
        return f"did you mean {close[0]!r}?"
    return f"known are: {', '.join(known[:20])}"


def as_text(value: Any) -> str:
    if not isinstance(value, str) or "\0" in value:
        raise UsageError("is not a text without NUL")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise UsageError("holds half a surrogate pair, which no program can be given") from None
    return value


def as_name(value: Any) -> str:
    name = as_text(value)
    if not name or len(name) > NAME_LENGTH or not name.isprintable():
        raise UsageError(f"is not 1 to {NAME_LENGTH} printable characters")
    return name


def as_integer(value: Any) -> int:
    # SQLite keeps 64 bits.
    if not isinstance(value, int) or isinstance(value, bool) or abs(value) >= 1 << 63:
        raise UsageError(f"{shown(value)} is not a whole number")
    return value


def as_count(value: Any) -> int:
    if as_integer(value) < 0:
        raise UsageError(f"{shown(value)} is below zero")
    return int(value)


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


def as_agent(value: Any) -> str:
    from ramherd.agents import NAMES  # noqa: PLC0415 - most herds have none

    if value not in NAMES:
        hint = nearest(str(value), NAMES)
        raise UsageError(f"{shown(value)} is not an agent that ramherd knows", hint=hint)
    return str(value)


def as_reuse(value: Any, agent: str) -> int:
    """How many jobs share a process."""
    from ramherd.agents import WARM_NAMES  # noqa: PLC0415 - most herds have none

    if as_count(value) and agent not in WARM_NAMES:
        hint = f"reuse works with {', '.join(WARM_NAMES)}"
        raise UsageError(f"{agent} takes one prompt and ends", hint=hint)
    return int(value)


def as_words(value: Any) -> tuple[str, ...]:
    """A list, or a line as a shell would split it."""
    try:
        words = shlex.split(value) if isinstance(value, str) else value
    except ValueError as error:
        raise UsageError(f"{value!r} has {str(error).lower()}") from None
    if not isinstance(words, list):
        raise UsageError(f"{value!r} is neither a list of texts nor a line of words")
    return tuple(as_text(word) for word in words)


def as_prompt(value: Any) -> str:
    if not as_text(value).strip():
        raise UsageError("is empty")
    return str(value)


def as_switch(value: Any) -> bool:
    if not isinstance(value, bool):
        raise UsageError(f"{shown(value)} is neither true nor false")
    return value


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
