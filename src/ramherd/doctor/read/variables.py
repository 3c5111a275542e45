"""Variables that change what a runtime may hold, wherever somebody set them."""

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from ramherd.core.units import GIB, KIB, MIB, TIB
from ramherd.doctor.facts import Line, Unit, Variable
from ramherd.doctor.read.host import Host
from ramherd.doctor.read.written_lines import MOST_BYTES, read_lines

# Only these are ever taken from a file or the environment: others may be secrets.
NAMES = (
    "NODE_OPTIONS", "BUN_OPTIONS", "UV_THREADPOOL_SIZE", "NODE_MAX_CONCURRENT_REQUESTS",
    "CLAUDE_CODE_MAX_CONCURRENT_SUBAGENTS", "GEMINI_CLI_NO_RELAUNCH", "QWEN_CODE_NO_RELAUNCH",
)  # fmt: skip
BUN_JSC = "BUN_JSC_"
_ASSIGNED = re.compile(
    rf"""(?<![\w$])(?P<name>{"|".join(NAMES)}|{BUN_JSC}\w+)
         (?:\s*=\s*|\s+(?:DEFAULT=)?)
         (?P<value>"[^"]*"|'[^']*'|[^\s;&"']+)""",
    re.VERBOSE,
)
# settings.json with an `env` object; .env files; Codex's [shell_environment_policy] set = {...}
JSON_SETTINGS = (".claude/settings.json", ".claude/settings.local.json")
MANAGED_SETTINGS = "etc/claude-code/managed-settings.json"
TEXT_SETTINGS = (".gemini/.env", ".qwen/.env", ".env", ".codex/config.toml", ".codex/.env")
_AGENTS = re.compile(r"(?:^|[/\s])(claude|codex|gemini|opencode|qwen|cursor-agent)(?=\s|$)")
_SIZES = {"": 1, "K": KIB, "M": MIB, "G": GIB, "T": TIB}
_MEMORY_MAX = re.compile(r"Memory(?:Max|Limit)\s*=\s*(\d+)([KMGT]?)\s*$")


def read_variables(host: Host, written: Iterable[Line]) -> list[Variable]:
    found = [*read_environment(host)]
    for line in written:
        if line.kind in ("start", "unit", "cron", "script"):
            found += parse_assignments(line)
    for path in TEXT_SETTINGS:
        for line in read_lines(host.home / path, "settings"):
            found += parse_assignments(line)
    return [*found, *read_json_settings(host)]


def read_environment(host: Host) -> Iterator[Variable]:
    for name, value in sorted(host.env.items()):
        if name in NAMES or name.startswith(BUN_JSC):
            yield Variable(name, value, Line("the environment", 0, "", "environment"))


def parse_assignments(line: Line) -> Iterator[Variable]:
    """`export A=b`, `A=b command`, `set -x A b`, `Environment="A=b"`, `A DEFAULT=b`."""
    for match in _ASSIGNED.finditer(line.text):
        value = match["value"].strip("\"'")
        yield Variable(match["name"], value, line)


def read_json_settings(host: Host) -> Iterator[Variable]:
    paths = [top / path for top in (host.home, host.cwd) for path in JSON_SETTINGS]
    paths.append(host.root / MANAGED_SETTINGS)
    if own := host.env.get("CLAUDE_CONFIG_DIR"):
        paths.append(Path(own) / "settings.json")
    for path in dict.fromkeys(paths):
        for name, value in read_env_object(path).items():
            if name in NAMES or name.startswith(BUN_JSC):
                yield Variable(name, str(value), Line(str(path), 0, "", "settings"))


def read_env_object(path: Path) -> dict[str, Any]:
    """Broken settings are for their own program to complain of."""
    try:
        if path.stat().st_size > MOST_BYTES:
            return {}
        found = json.loads(path.read_text())
    except (OSError, ValueError, RecursionError):
        return {}
    env = found.get("env") if isinstance(found, dict) else None
    return env if isinstance(env, dict) else {}


def read_agent_units(written: Iterable[Line]) -> list[Unit]:
    """Service files that start an agent themselves."""
    programs: dict[str, str] = {}
    limits: dict[str, int] = {}
    for line in written:
        unit = re.sub(r"\.d/[^/]*\.conf$", "", line.path)
        if line.kind != "unit":
            continue
        if line.text.startswith("ExecStart=") and (match := _AGENTS.search(line.text[10:])):
            programs[unit] = match[1]
        elif match := _MEMORY_MAX.match(line.text):
            limits[unit] = int(match[1]) * _SIZES[match[2]]
    return [Unit(path, name, limits.get(path)) for path, name in programs.items()]
