"""The MCP servers in the settings of the CLIs themselves, of Cursor and of VS Code.

`ramherd mcp import` reads them for the gateway. Some adapters read them to turn them off for a run
that has other servers. Values are never printed: they may be credentials.
"""

import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from ramherd.core.errors import UsageError

Table = Mapping[str, Any]
# ${NAME}, ${NAME:-default}, ${env:NAME}, opencode's {env:NAME}; anything else like it is not known.
VARIABLE = re.compile(
    r"\$\{(?:env:)?(?P<name>[A-Za-z_]\w*)(?::-(?P<default>[^}]*))?\}|\{env:(?P<braced>[^}]+)\}"
    r"|\$\{(?P<other>[^}]*)\}|\{(?P<file>file:[^}]+)\}"
)
# These also expand $NAME.
BARE = re.compile(r"\$([A-Za-z_]\w*)")
BARE_AGENTS = ("gemini", "qwen")
# A text in quotes, a comment, or a comma before a closing bracket.
JSONC = re.compile(r'("(?:\\.|[^"\\])*")|//[^\n]*|/\*.*?\*/|,(?=\s*[}\]])', re.DOTALL)


class OwnServer(NamedTuple):
    """`problem`: why the gateway cannot start it. `cwd` is set for a server of a project."""

    agent: str
    path: str
    name: str
    command: tuple[str, ...] = ()
    env: Mapping[str, str] = {}
    cwd: str | None = None
    url: str = ""
    problem: str = ""


class SettingsText(NamedTuple):
    """A settings file. `project` is the directory of a project's file."""

    path: str
    text: str
    project: str | None


class McpSource(NamedTuple):
    """Where a program keeps its servers. `files` has paths of the user and of a project, in which
    ~ is the home directory.
    """

    agent: str
    user: Callable[[Mapping[str, str]], tuple[str, ...]]
    project: tuple[str, ...]
    # The servers in a file, each with the directory of its project.
    tables: Callable[[SettingsText], Iterator[tuple[str, Any, str | None]]]


def read_own_servers(
    agent: str, env: Mapping[str, str], cwd: str
) -> Iterator[OwnServer | UsageError]:
    """The servers of one program, for a user with this environment in this directory. A file that
    cannot be read is an error in the list, and the other files are still read.
    """
    source = SOURCES[agent]
    for path, project in list_files(source, env, cwd):
        try:
            with open(path, encoding="utf-8") as file:
                settings = SettingsText(path, file.read(), project)
            for name, table, own in source.tables(settings):
                yield parse_own(OwnServer(agent, path, str(name), cwd=own), table, env)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            yield UsageError(f"cannot read {path}: {error.strerror}")
        except (ValueError, AttributeError) as error:
            yield UsageError(f"{path} is not understood: {' '.join(str(error).split())[:100]}")


def list_files(
    source: McpSource, env: Mapping[str, str], cwd: str
) -> Iterator[tuple[str, str | None]]:
    home = env.get("HOME") or os.path.expanduser("~")
    for path in source.user(env):
        yield path.replace("~", home, 1) if path.startswith("~/") else path, None
    for path in source.project if cwd != home else ():
        yield os.path.join(cwd, path), cwd


def parse_own(found: OwnServer, table: Any, env: Mapping[str, str]) -> OwnServer:
    """`found` is the server without its table."""
    if not isinstance(table, dict):
        return found._replace(problem="is not a table")
    url = table.get("url") or table.get("httpUrl") or table.get("serverUrl")
    if url:
        return found._replace(url=str(url), problem="runs elsewhere: nothing to share here")
    if table.get("enabled") is False or table.get("disabled") is True:
        return found._replace(problem="is turned off")
    command, args = table.get("command"), table.get("args", [])
    words = [*([command] if isinstance(command, str) else command or []), *args]
    variables = table.get("env") or table.get("environment") or {}
    if not words or not all(isinstance(text, str) for text in (*words, *variables.values())):
        return found._replace(problem="has no command")
    try:
        return found._replace(
            command=tuple(expand(word, env, found) for word in words),
            env={key: expand(text, env, found) for key, text in variables.items()},
            cwd=table.get("cwd") or found.cwd,
        )
    except LookupError as error:
        return found._replace(problem=str(error.args[0]))


def expand(text: str, env: Mapping[str, str], server: OwnServer) -> str:
    """Replaces variables as the CLI does. LookupError names what has no value here."""

    def value(found: re.Match[str]) -> str:
        name = found["name"] or found["braced"]
        if name == "workspaceFolder" and server.cwd is not None:
            return server.cwd
        if name is not None and name in env:
            return env[name]
        if found["default"] is not None:
            return found["default"]
        raise LookupError(f"needs {name or found['other'] or found['file']}, which is not set here")

    if server.agent in BARE_AGENTS:
        text = BARE.sub(lambda found: env.get(found[1], found[0]), text)
    return VARIABLE.sub(value, text)


def parse_jsonc(text: str) -> Any:
    """JSON with comments and commas at the end, as VS Code and opencode accept it."""
    return json.loads(JSONC.sub(lambda found: found[1] or "", text) or "{}")


def tables_in(*keys: str) -> Callable[[SettingsText], Iterator[tuple[str, Any, str | None]]]:
    """The table below the first of these keys that the file has."""

    def tables(settings: SettingsText) -> Iterator[tuple[str, Any, str | None]]:
        document = parse_jsonc(settings.text)
        if not isinstance(document, dict):
            raise ValueError("it is not an object")
        for name, table in next((document[key] for key in keys if key in document), {}).items():
            yield name, table, settings.project

    return tables


def claude_tables(settings: SettingsText) -> Iterator[tuple[str, Any, str | None]]:
    """The user's servers, then those of each project that is still there."""
    document = json.loads(settings.text or "{}")
    for name, table in document.get("mcpServers", {}).items():
        yield name, table, settings.project
    for project, kept in document.get("projects", {}).items():
        if isinstance(kept, dict) and os.path.isdir(project):
            for name, table in (kept.get("mcpServers") or {}).items():
                yield name, table, project


def codex_tables(settings: SettingsText) -> Iterator[tuple[str, Any, str | None]]:
    import tomllib  # noqa: PLC0415 - only for codex, and imports take time

    for name, table in tomllib.loads(settings.text).get("mcp_servers", {}).items():
        yield name, table, settings.project


def claude_files(env: Mapping[str, str]) -> tuple[str, ...]:
    if chosen := env.get("CLAUDE_CONFIG_DIR"):
        return (os.path.join(chosen, ".claude.json"),)
    return ("~/.claude.json",)


def codex_files(env: Mapping[str, str]) -> tuple[str, ...]:
    return (os.path.join(env.get("CODEX_HOME") or "~/.codex", "config.toml"),)


def gemini_files(env: Mapping[str, str]) -> tuple[str, ...]:
    return (os.path.join(env.get("GEMINI_CLI_HOME") or "~", ".gemini/settings.json"),)


def opencode_files(env: Mapping[str, str]) -> tuple[str, ...]:
    folder = os.path.join(env.get("XDG_CONFIG_HOME") or "~/.config", "opencode")
    own = (env["OPENCODE_CONFIG"],) if env.get("OPENCODE_CONFIG") else ()
    return (*(f"{folder}/{name}" for name in OPENCODE_NAMES), *own)


def vscode_files(env: Mapping[str, str]) -> tuple[str, ...]:
    if sys.platform == "darwin":
        return ("~/Library/Application Support/Code/User/mcp.json",)
    return (os.path.join(env.get("XDG_CONFIG_HOME") or "~/.config", "Code/User/mcp.json"),)


OPENCODE_NAMES = ("opencode.json", "opencode.jsonc")
SERVERS = tables_in("mcpServers")
SOURCES = {
    source.agent: source
    for source in (
        McpSource("claude", claude_files, (".mcp.json",), claude_tables),
        McpSource("codex", codex_files, (".codex/config.toml",), codex_tables),
        McpSource("gemini", gemini_files, (".gemini/settings.json",), SERVERS),
        McpSource(
            "qwen", lambda _env: ("~/.qwen/settings.json",), (".qwen/settings.json",), SERVERS
        ),
        McpSource("cursor", lambda _env: ("~/.cursor/mcp.json",), (".cursor/mcp.json",), SERVERS),
        McpSource("opencode", opencode_files, OPENCODE_NAMES, tables_in("mcp")),
        McpSource(
            "vscode", vscode_files, (".vscode/mcp.json",), tables_in("servers", "mcpServers")
        ),
    )
}


def list_own_names(agent: str, env: Mapping[str, str], cwd: str) -> list[str]:
    """The names of its servers, also of those that the gateway cannot start."""
    found = read_own_servers(agent, env, cwd)
    return list(dict.fromkeys(one.name for one in found if isinstance(one, OwnServer)))


def read_settings(path: str) -> dict[str, Any]:
    """The user's settings of a CLI; empty if there are none that can be read."""
    with suppress(OSError, ValueError):
        settings = parse_jsonc(Path(path).read_text(encoding="utf-8"))
        if isinstance(settings, dict):
            return settings
    return {}
