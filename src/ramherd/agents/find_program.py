"""Finds an agent's program, its kind, and its version if a file has it.

No program is started for this: `--version` of a Node CLI takes a second and 150 MB.
"""

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ramherd.core.errors import UsageError
from ramherd.core.units import shown
from ramherd.system.executables import find_executable

VERSION = re.compile(r"\d+\.\d+\.\d+")
SCRIPTS = (".js", ".mjs", ".cjs")


@dataclass(frozen=True, slots=True)
class AgentProgram:
    """`file` is the target of all links; `version` is "" if no file has it.

    `node` is the interpreter of a script, "" for a native program.
    """

    file: str
    version: str = ""
    node: str = ""


@dataclass(frozen=True, slots=True)
class Source:
    """How a program is distributed: its names, its package, the oldest version that works."""

    agent: str
    names: tuple[str, ...]
    install: str
    package: str = ""
    oldest: str = ""


def find_program(source: Source, path: str, program: str = "") -> AgentProgram:
    asked = (os.path.expanduser(program),) if program else source.names
    found = next((file for name in asked if (file := find_executable(name, path))), None)
    if found is None:
        what = shown(program) if program else source.names[0]
        raise UsageError(f"{source.agent}: {what} is not found", hint=source.install)
    file = os.path.realpath(found)
    version = read_version(Path(file), source.package)
    check_version(source, version)
    return AgentProgram(file, version, find_node(source, file, path))


def find_node(source: Source, file: str, path: str) -> str:
    if not is_node_script(file):
        return ""
    node = find_executable("node", path)
    if node is None:
        hint = "install Node.js, or put its directory into PATH"
        raise UsageError(f"{source.agent}: {file} needs node, which is not found", hint=hint)
    return node


def is_node_script(file: str) -> bool:
    if file.endswith(SCRIPTS):
        return True
    try:
        with open(file, "rb") as opened:
            first = opened.readline(200)
    except OSError:
        return False
    return first.startswith(b"#!") and b"node" in first


def read_version(file: Path, package: str) -> str:
    """From the package of the file, else from its path (`versions/2.1.0`)."""
    for folder in list(file.parents)[:6]:
        described = read_package(folder / "package.json")
        if described.get("name", "").startswith(package or "\0"):
            return described.get("version", "")
    named = VERSION.search("/".join(file.parts[-3:]))
    return named[0] if named else ""


def read_package(file: Path) -> dict[str, str]:
    try:
        read = json.loads(file.read_bytes())
    except (OSError, ValueError):
        return {}
    texts = read.items() if isinstance(read, dict) else ()
    return {key: value for key, value in texts if isinstance(value, str)}


def check_version(source: Source, version: str) -> None:
    if version and as_numbers(version) < as_numbers(source.oldest):
        raise UsageError(
            f"{source.agent} {version} is too old: {source.oldest} is the oldest that works",
            hint=source.install,
        )


def as_numbers(version: str) -> tuple[int, ...]:
    found = VERSION.match(version)
    return tuple(int(part) for part in found[0].split(".")) if found else ()


def packages_beside(file: str, pattern: str) -> Iterator[Path]:
    """Packages of that name next to or inside the package of a file."""
    for folder in Path(file).parents:
        if (folder / "package.json").exists():
            yield from sorted(folder.parent.glob(pattern))
            yield from sorted(folder.glob(f"node_modules/*/{pattern}"))
            yield folder
            return
