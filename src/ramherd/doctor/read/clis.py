"""The agent CLIs in PATH: version and runtime, read from their files. None is started."""

import json
import re
from pathlib import Path

from ramherd.doctor.facts import InstalledCli
from ramherd.doctor.read.host import Host
from ramherd.doctor.read.runtimes import find_programs

NAMES = ("claude", "codex", "gemini", "opencode", "qwen", "cursor-agent")
# A program compiled by Bun has this near its end, before the section table.
BUN_MARK = b"---- Bun! ----"
TAIL_BYTES = 1 << 20
ABOVE = 3
_VERSION = re.compile(r"/(\d+\.\d+\.\d+[\w.-]*)(?:/|$)")


def read_clis(host: Host) -> list[InstalledCli]:
    found = []
    for name in NAMES:
        paths = list(find_programs(host, name))
        if paths:
            shadowed = tuple((str(path), read_version(path)) for path in paths[1:])
            first = paths[0]
            found.append(
                InstalledCli(name, str(first), read_version(first), read_runtime(first), shadowed)
            )
    return found


def read_runtime(path: Path) -> str:
    try:
        with path.open("rb") as file:
            head = file.read(256)
            if head.startswith(b"#!"):
                return parse_interpreter(head.split(b"\n")[0].decode(errors="replace"))
            if not head.startswith((b"\x7fELF", b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe")):
                return ""
            file.seek(0, 2)
            file.seek(max(file.tell() - TAIL_BYTES, 0))
            return "bun" if BUN_MARK in file.read() else "native"
    except OSError:
        return ""


def parse_interpreter(line: str) -> str:
    """`#!/usr/bin/env -S node --flag`: node; bun; any other is a script."""
    names = [word.rsplit("/", 1)[-1] for word in line[2:].split()]
    return next((name for name in names if name in ("node", "bun")), "script")


def read_version(path: Path) -> str:
    """The version of the package beside or above the real file; or a directory named after it."""
    real = path.resolve()
    for directory in list(real.parents)[:ABOVE]:
        try:
            package = json.loads((directory / "package.json").read_text())
        except (OSError, ValueError):
            continue
        if isinstance(package, dict) and isinstance(package.get("version"), str):
            return str(package["version"])
    match = _VERSION.search(str(real))
    return match[1] if match else ""
