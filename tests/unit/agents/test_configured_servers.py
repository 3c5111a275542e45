"""MCP servers in the settings of other programs."""

import json
from pathlib import Path

import pytest

from ramherd.agents.configured_servers import (
    OwnServer,
    list_own_names,
    parse_jsonc,
    read_own_servers,
)
from ramherd.core.errors import UsageError

COMMAND = {"command": "node", "args": ["server.js"], "env": {"KEY": "${KEY}"}}
READ = ("node", "server.js")


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def servers_of(agent: str, home: Path, cwd: Path, **env: str) -> list[OwnServer]:
    found = list(read_own_servers(agent, {"HOME": str(home), "KEY": "k", **env}, str(cwd)))
    assert not any(isinstance(one, UsageError) for one in found), found
    return [one for one in found if isinstance(one, OwnServer)]


@pytest.mark.parametrize(
    ("agent", "file", "text"),
    [
        ("claude", ".claude.json", json.dumps({"mcpServers": {"x": COMMAND}})),
        (
            "codex", ".codex/config.toml",
            '[mcp_servers.x]\ncommand = "node"\nargs = ["server.js"]\nenv = {KEY = "${KEY}"}',
        ),
        ("gemini", ".gemini/settings.json", json.dumps({"mcpServers": {"x": COMMAND}})),
        ("qwen", ".qwen/settings.json", json.dumps({"mcpServers": {"x": COMMAND}})),
        ("cursor", ".cursor/mcp.json", json.dumps({"mcpServers": {"x": COMMAND}})),
        ("vscode", ".config/Code/User/mcp.json", json.dumps({"servers": {"x": COMMAND}})),
        (
            "opencode", ".config/opencode/opencode.jsonc",
            '{// mine\n"mcp": {"x": {"type": "local", "command": ["node", "server.js"],'
            '"environment": {"KEY": "{env:KEY}"},},},}',
        ),
    ],
)  # fmt: skip
def test_the_servers_of_each_program(agent: str, file: str, text: str, tmp_path: Path) -> None:
    """Where each has its file, and how it writes a server and a variable."""
    write(tmp_path / file, text)
    (found,) = servers_of(agent, tmp_path, tmp_path / "project")

    assert (found.name, found.command, found.env, found.problem) == ("x", READ, {"KEY": "k"}, "")
    assert (found.path, found.cwd) == (str(tmp_path / file), None)


@pytest.mark.parametrize(
    ("agent", "file", "key"),
    [
        ("claude", ".mcp.json", "mcpServers"),
        ("gemini", ".gemini/settings.json", "mcpServers"),
        ("vscode", ".vscode/mcp.json", "servers"),
    ],
)
def test_a_servers_project_is_its_directory(
    agent: str, file: str, key: str, tmp_path: Path
) -> None:  # fmt: skip
    """A server of a project works there, also when the gateway starts it."""
    project = tmp_path / "project"
    table = {"command": "node", "args": ["${workspaceFolder}/x"]}
    write(project / file, json.dumps({key: {"x": table}}))
    (found,) = servers_of(agent, tmp_path / "home", project)

    assert (found.cwd, found.command[1]) == (str(project), f"{project}/x")


def test_claudes_servers_of_one_project(tmp_path: Path) -> None:
    """In the user's file, below the path of the project; those of removed projects are left out."""
    project = tmp_path / "project"
    project.mkdir()
    kept = {str(project): {"mcpServers": {"x": COMMAND}}, "/gone": {"mcpServers": {"y": COMMAND}}}
    write(tmp_path / ".claude.json", json.dumps({"projects": kept}))

    assert [(one.name, one.cwd) for one in servers_of("claude", tmp_path, tmp_path)] == [
        ("x", str(project))
    ]


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        ({"url": "https://example.com"}, "runs elsewhere"),
        ({"httpUrl": "https://example.com"}, "runs elsewhere"),
        ({"command": "x", "env": {"A": "${NOPE}"}}, "needs NOPE, which is not set here"),
        ({"command": "x", "args": ["${input:key}"]}, "needs input:key, which is not set here"),
        ({"command": "x", "disabled": True}, "is turned off"),
        ({}, "has no command"),
        ({"command": "x", "args": [1]}, "has no command"),
        (1, "is not a table"),
    ],
)
def test_what_cannot_be_taken(table: object, problem: str, tmp_path: Path) -> None:
    """The reason is named; nothing is guessed."""
    write(tmp_path / ".cursor/mcp.json", json.dumps({"mcpServers": {"x": table}}))
    (found,) = servers_of("cursor", tmp_path, tmp_path)

    assert found.problem.startswith(problem)
    assert list_own_names("cursor", {"HOME": str(tmp_path)}, str(tmp_path)) == ["x"]


def test_variables_as_each_program_expands_them(tmp_path: Path) -> None:
    """A default, and `$NAME` only for programs that expand it."""
    table = {"command": "a${A:-b}c", "args": ["$KEY", "{x}"]}
    text = json.dumps({"mcpServers": {"x": table}})
    write(tmp_path / ".cursor/mcp.json", text)
    write(tmp_path / ".gemini/settings.json", text)

    assert servers_of("cursor", tmp_path, tmp_path)[0].command == ("abc", "$KEY", "{x}")
    assert servers_of("gemini", tmp_path, tmp_path)[0].command == ("abc", "k", "{x}")


@pytest.mark.parametrize("text", ["{", "[1]", '{"mcpServers": [1]}', "\udc80"])
def test_a_file_that_is_not_understood(text: str, tmp_path: Path) -> None:
    """One line for that file."""
    (tmp_path / ".cursor").mkdir()
    (tmp_path / ".cursor/mcp.json").write_bytes(text.encode(errors="surrogateescape"))
    (error,) = read_own_servers("cursor", {"HOME": str(tmp_path)}, str(tmp_path))

    assert "mcp.json is not understood" in str(error)


def test_comments_inside_of_texts_stay() -> None:
    """A URL is no comment."""
    assert parse_jsonc('{"a": "http://x/*y*/", /* b */ "c": [1,],}') == {
        "a": "http://x/*y*/",
        "c": [1],
    }
