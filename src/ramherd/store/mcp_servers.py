"""The MCP servers that the gateway may start: `[mcp.servers.NAME]` of the user's settings, and the
registry that `ramherd mcp import` writes. A server of the settings replaces one of the registry.
"""

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ramherd.core.errors import UsageError
from ramherd.core.units import parse_duration, parse_size
from ramherd.system.files import open_private, write_json

REGISTRY = "mcp/servers.json"
# The name is a part of the URL.
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
MODES = ("shared", "serial", "per-workspace", "per-agent")
POOL = re.compile(r"pool:([1-9]|[1-5]\d|6[0-4])")


class McpServer(NamedTuple):
    """A command, or the `url` of a server that runs elsewhere. None: the gateway chooses."""

    name: str
    command: tuple[str, ...] = ()
    url: str = ""
    env: Mapping[str, str] = {}
    cwd: str | None = None
    share: str | None = None
    memory_limit_bytes: int | None = None
    idle_s: float | None = None
    # The program whose settings it was imported from.
    origin: str | None = None

    def as_table(self) -> dict[str, Any]:
        """As the registry stores it."""
        table = self._asdict() | {"command": list(self.command), "env": dict(self.env)}
        return {key: value for key, value in table.items() if key != "name" and value}


def parse_server(name: str, table: Any, where: str) -> McpServer:
    """`where` is the file, for errors. Sizes and times may have units."""
    place = f"{where}: MCP server {name!r}"
    if not NAME.fullmatch(name):
        raise UsageError(
            f"{place} has a wrong name", hint="use letters, digits, dots and dashes, 64 at most"
        )
    if not isinstance(table, dict):
        raise UsageError(f"{place} is not a table", hint=f"write [mcp.servers.{name}]")
    unknown = set(table) - {*McpServer._fields, "args", "memory_limit", "idle"}
    if unknown:
        known = "command, args, url, env, cwd, share, memory_limit, idle"
        raise UsageError(f"{place} has an unknown key {min(unknown)!r}", hint=f"known: {known}")
    try:
        server = _parse_table(name, table)
    except (ValueError, TypeError) as error:
        raise UsageError(f"{place}: {error}", hint="see docs/mcp.md") from None
    if bool(server.command) == bool(server.url):
        raise UsageError(f"{place} needs a command or a url", hint="see docs/mcp.md")
    return server


def _parse_table(name: str, table: Mapping[str, Any]) -> McpServer:
    command = table.get("command", [])
    words = [command] if isinstance(command, str) else list(command)
    words += table.get("args", [])
    env = table.get("env", {})
    if not all(isinstance(word, str) for word in (*words, *env, *env.values())):
        raise ValueError("command, args and env are texts")
    limit, idle = table.get("memory_limit"), table.get("idle")
    return McpServer(
        name, tuple(words), table.get("url", ""), dict(env), table.get("cwd"),
        parse_share(table.get("share")),
        parse_size(limit) if limit is not None else table.get("memory_limit_bytes"),
        parse_duration(idle) if idle is not None else table.get("idle_s"),
        table.get("origin"),
    )  # fmt: skip


def parse_share(value: Any) -> str | None:
    if value is None or value in MODES or (isinstance(value, str) and POOL.fullmatch(value)):
        return value  # type: ignore[no-any-return]
    raise ValueError(f"{value!r} is not a share mode: {', '.join(MODES)} or pool:N")


def read_servers(tables: Mapping[str, tuple[Any, str]], state: Path) -> dict[str, McpServer]:
    """`tables` are those of the settings, each with its file."""
    return read_registry(state) | {
        name: parse_server(name, table, where) for name, (table, where) in tables.items()
    }


def read_registry(state: Path) -> dict[str, McpServer]:
    path = state / REGISTRY
    try:
        with open(open_private(str(path), os.O_RDONLY), encoding="utf-8") as file:
            read = json.load(file)
        tables = dict(read["servers"])
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(
            f"cannot read {path}: {error}", hint=f"rm {path}, then: ramherd mcp import"
        ) from None
    return {name: parse_server(name, table, str(path)) for name, table in tables.items()}


def write_registry(state: Path, servers: Mapping[str, McpServer]) -> None:
    """Environments may hold credentials: mode 0600."""
    path = state / REGISTRY
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_json(str(path), {"servers": {name: one.as_table() for name, one in servers.items()}})
