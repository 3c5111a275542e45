"""Finds the program behind `npx`, `bunx`, `uvx` and `pnpm dlx`: each of them stays in memory beside
the server that it starts. A package that is not installed is started as written.
"""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from ramherd.gateway.sharing import package_name
from ramherd.system.executables import find_executable

NODE_RUNNERS = ("npx", "bunx", "pnpx")
UV_RUNNERS = ("uvx",)
QUIET_OPTIONS = (
    "-y", "--yes", "-q", "--quiet", "--prefer-offline", "--bun", "--offline",
)  # fmt: skip


def resolve_command(command: Sequence[str], env: Mapping[str, str], home: Path) -> tuple[str, ...]:
    """The command itself if nothing better is installed."""
    words = list(command)
    runner = os.path.basename(words[0])
    if runner == "env" and len(words) > 1:
        return tuple(words)
    if runner == "pnpm" and words[1:2] == ["dlx"]:
        words, runner = words[1:], "pnpx"
    if runner in NODE_RUNNERS:
        return _resolve_node(words, env, home) or tuple(command)
    if runner in UV_RUNNERS:
        return _resolve_uv(words, env, home) or tuple(command)
    return tuple(command)


def split_runner(words: Sequence[str]) -> tuple[str, list[str]] | None:
    """The package with its version, and the words for the program itself. None: too clever."""
    rest = list(words[1:])
    while rest and rest[0].startswith("-"):
        option = rest.pop(0)
        if option not in QUIET_OPTIONS:
            return None
    return (rest[0], rest[1:]) if rest else None


def _resolve_node(
    words: Sequence[str], env: Mapping[str, str], home: Path
) -> tuple[str, ...] | None:
    split = split_runner(words)
    node = find_executable("node", env.get("PATH", os.defpath))
    if split is None or node is None:
        return None
    asked, rest = split
    name = package_name(asked)
    version = asked[len(name) + 1 :] if asked.startswith(f"{name}@") else ""
    for modules in node_folders(env, home):
        if (entry := find_entry(modules / name, version)) is not None:
            return (node, str(entry), *rest)
    return None


def node_folders(env: Mapping[str, str], home: Path) -> Iterator[Path]:
    """Where npx finds packages: the newest of its own cache, then the global ones."""
    caches = home / ".npm" / "_npx"
    if cache := env.get("npm_config_cache"):
        caches = Path(cache) / "_npx"
    try:
        found = sorted(caches.iterdir(), key=modified_at, reverse=True)
    except OSError:
        found = []
    yield from (folder / "node_modules" for folder in found)
    for program in ("npm", "node"):
        if (file := find_executable(program, env.get("PATH", os.defpath))) is not None:
            yield Path(file).parent.parent / "lib" / "node_modules"


def find_entry(package: Path, version: str) -> Path | None:
    """The file of the package's only program, or of that with the package's name. A range of
    versions is npm's to solve: only an exact version, or none, is compared.
    """
    try:
        described = json.loads((package / "package.json").read_bytes())
        programs, name = described.get("bin"), str(described["name"])
        if version not in ("", "latest", described.get("version")):
            return None
    except (OSError, ValueError, KeyError, AttributeError):
        return None
    if isinstance(programs, dict):
        only = next(iter(programs.values())) if len(programs) == 1 else None
        programs = programs.get(name.rsplit("/", 1)[-1], only)
    if not isinstance(programs, str):
        return None
    entry = (package / programs).resolve()
    return entry if entry.is_file() else None


def _resolve_uv(words: Sequence[str], env: Mapping[str, str], home: Path) -> tuple[str, ...] | None:
    """`uv tool install` puts each program into an environment of its own, and uvx caches such
    environments.
    """
    split = split_runner(words)
    if split is None or package_name(split[0]) != split[0]:
        return None
    name, rest = split
    tools = env.get("UV_TOOL_DIR") or str(home / ".local" / "share" / "uv" / "tools")
    cache = env.get("UV_CACHE_DIR") or str(home / ".cache" / "uv")
    found = [Path(tools) / name / "bin" / name]
    found += sorted(Path(cache).glob(f"archive-v0/*/bin/{name}"), key=modified_at, reverse=True)
    program = next((file for file in found if os.access(file, os.X_OK)), None)
    return None if program is None else (str(program), *rest)


def modified_at(file: Path) -> float:
    try:
        return file.stat().st_mtime
    except OSError:
        return 0.0
