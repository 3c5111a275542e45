"""The heap limit of each node binary, which reports it itself; and the variables that change it,
wherever they are set.
"""

import json
import os
import re
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from ramherd.doctor.facts import COPY_SUFFIX, Line, Node, Variable
from ramherd.doctor.read.host import Host
from ramherd.doctor.read.written_lines import MOST_BYTES, read_lines, read_starts

QUESTION = (
    "console.log(JSON.stringify([process.version,"
    "require('v8').getHeapStatistics().heap_size_limit]))"
)
# It answers in 0.1 s; a machine that swaps takes longer, which is not worth the wait.
ANSWER_S = 1.0
MOST = 3
# Only these are ever read from a file or the environment: others may be secrets.
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


def find_programs(host: Host, name: str) -> Iterator[Path]:
    """Programs of that name in PATH, each real file once, in order."""
    seen = set()
    for directory in host.env.get("PATH", os.defpath).split(os.pathsep):
        path = Path(directory or ".") / name
        if os.access(path, os.X_OK) and path.is_file() and (real := path.resolve()) not in seen:
            seen.add(real)
            yield path


def read_nodes(host: Host) -> list[Node]:
    return [ask_node(str(path), host) for path in list(find_programs(host, "node"))[:MOST]]


def ask_node(path: str, host: Host) -> Node:
    try:
        done = subprocess.run(
            [path, "-e", QUESTION], env=dict(host.env), capture_output=True, timeout=ANSWER_S,
            check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return Node(path, error=f"no answer within {ANSWER_S:g} s")
    except OSError as error:
        return Node(path, error=str(error.strerror))
    if done.returncode != 0:
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        return Node(path, error=lines[0] if lines else f"exit status {done.returncode}")
    return parse_answer(path, done.stdout.decode(errors="replace"))


def parse_answer(path: str, text: str) -> Node:
    """Reads the last line: modules that NODE_OPTIONS loads may print before it."""
    try:
        version, heap = json.loads(text.strip().splitlines()[-1])
        return Node(path, str(version), int(heap))
    except (ValueError, TypeError, IndexError):
        return Node(path, error="an answer that does not parse")


def read_variables(host: Host, written: Iterable[Line]) -> list[Variable]:
    """A variable of our environment that one of the files sets is only that of the file."""
    found = read_in_files(host, written)
    known = {(variable.name, variable.value) for variable in found}
    removed = {(old.name, old.value) for old in read_copied(host)} - known
    environment = [
        replace(variable, is_removed=(variable.name, variable.value) in removed)
        for variable in read_environment(host)
        if (variable.name, variable.value) not in known
    ]
    return [*environment, *found]


def read_copied(host: Host) -> Iterator[Variable]:
    """What start files set before a fix. A shell that is older than the fix still has it."""
    for line in read_starts(host, COPY_SUFFIX):
        yield from parse_assignments(line)


def read_in_files(host: Host, written: Iterable[Line]) -> list[Variable]:
    found: list[Variable] = []
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
    """Their own program reports broken settings."""
    try:
        if path.stat().st_size > MOST_BYTES:
            return {}
        found = json.loads(path.read_text())
    except (OSError, ValueError, RecursionError):
        return {}
    env = found.get("env") if isinstance(found, dict) else None
    return env if isinstance(env, dict) else {}
