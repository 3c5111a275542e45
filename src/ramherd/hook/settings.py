"""The settings that a hook asks for: `config/load.py` in small, which takes longer to load than a
hook may take. What both say is the same; a test holds them together.
"""

from __future__ import annotations

import os

from ramherd.config.locations import PROJECT_FILE, find_files
from ramherd.core.errors import UsageError
from ramherd.core.units import parse_duration, parse_size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

SUBAGENT_MEMORY_BYTES = 128 << 20
HOOK_WAIT_S = 600.0
YES, NO = ("1", "true", "yes", "on"), ("0", "false", "no", "off")


def parse_number(value: Any) -> int:
    try:
        number = int(value) if isinstance(value, str | int) else 0
    except ValueError:
        number = 0
    if number < 1 or isinstance(value, bool):
        raise UsageError(f"{value!r} is not a whole number above zero")
    return number


def parse_text(value: Any) -> str:
    if not isinstance(value, str):
        raise UsageError(f"{value!r} is not a text")
    return value


def parse_switch(value: Any) -> bool:
    word = str(value).lower()
    if word not in (*YES, *NO):
        raise UsageError(f"{value!r} is neither true nor false")
    return word in YES


# In `configkeys.KEYS`, with aliases that people bring.
PARSERS: dict[str, Callable[[Any], Any]] = {
    "budget": parse_size,
    "max_parallel": parse_number,
    "max_parallel_session": parse_number,
    "subagent_memory": parse_size,
    "hook_wait": parse_duration,
    "hook_sweep": parse_switch,
    "on_subagent_stop": parse_text,
}
ALIASES = {"maxParallelSubagents": "max_parallel", "max-concurrent": "max_parallel"}


class Settings:
    """None where nobody said anything."""

    def __init__(self) -> None:
        self.budget_bytes: int | None = None
        self.max_parallel: int | None = None
        self.max_parallel_session: int | None = None
        self.subagent_memory_bytes: int | None = None
        self.hook_wait_s = HOOK_WAIT_S
        self.hook_sweep = True
        self.on_subagent_stop: str | None = None
        self.problems: list[str] = []


FIELDS = {
    "budget": "budget_bytes",
    "subagent_memory": "subagent_memory_bytes",
    "hook_wait": "hook_wait_s",
}


def read_settings(cwd: str) -> Settings:
    """The default, the user's file, the project's, the environment: the later one wins. What is
    wrong is left out and said.
    """
    settings = Settings()
    for where, values in [*read_files(cwd, settings), ("environment", read_environment())]:
        for name, value in values.items():
            try:
                parsed = parse(name, value, where)
            except UsageError as error:
                settings.problems.append(f"{where}: {name}: {error}")
            else:
                setattr(settings, FIELDS.get(name, name), parsed)
    return settings


def parse(name: str, value: Any, where: str) -> Any:
    if name == "on_subagent_stop" and os.path.basename(where) == PROJECT_FILE:
        raise UsageError("a project may not have commands run: it belongs in your own config.toml")
    if value == "none" and name not in ("hook_wait", "hook_sweep"):
        return None
    return PARSERS[name](value)


def read_environment() -> dict[str, Any]:
    found = {}
    for name in PARSERS:
        if text := os.environ.get(f"RAMHERD_{name.upper()}"):
            found[name] = text
    if "max_parallel" not in found:
        for variable in ("RAMHERD_MAX_PARALLEL_SUBAGENTS", "RAMHERD_MAX_CONCURRENT"):
            if text := os.environ.get(variable):
                found["max_parallel"] = text
    return found


def read_files(cwd: str, settings: Settings) -> list[tuple[str, dict[str, Any]]]:
    """The weaker first."""
    found = []
    for path in reversed(list(find_files(cwd, os.environ))):
        import tomllib  # noqa: PLC0415 - most find no file

        try:
            with open(path, "rb") as file:
                table = tomllib.load(file)
        except (OSError, ValueError) as error:
            settings.problems.append(f"{path}: {error}")
            continue
        named = ((ALIASES.get(name, name), value) for name, value in table.items())
        found.append((path, {name: value for name, value in named if name in PARSERS}))
    return found
