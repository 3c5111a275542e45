"""`ramherd mcp enable`: links to the gateway in the user's own settings, and back."""

import json
import tomllib

import pytest

from ramherd.core.errors import UsageError
from ramherd.gateway.user_settings import (
    GatewayLinks,
    list_claude_links,
    list_codex_links,
    with_claude_links,
    with_codex_links,
    without_claude_links,
    without_codex_links,
)
from ramherd.store.mcp_servers import McpServer

SERVERS = {
    "time": McpServer("time", ("node", "time.js"), env={"A": "b"}),
    "here": McpServer("here", ("x",), cwd="/project"),
}
LINKS = GatewayLinks(SERVERS, lambda name: f"http://127.0.0.1:20000/mcp/{name}", "t0k", {})
TIME = {"command": "node", "args": ["time.js"], "env": {"A": "b"}}
CLAUDE = {
    "numStartups": 3,
    "mcpServers": {"clock": TIME, "other": {"command": "y"}},
    "projects": {"/project": {"mcpServers": {"here": {"command": "x"}}, "allowed": []}},
}
CODEX = """\
model = "gpt-5" # mine

[mcp_servers.clock]
command = "node"
args = [
  "time.js",
]
tool_timeout_sec = 30

[mcp_servers.clock.env]
A = "b"

[mcp_servers.other]
command = "y"

[tools]
web_search = true
"""


def test_claudes_servers_become_links() -> None:
    """Under the names they have, in the user's servers and in those of projects."""
    text = json.dumps(CLAUDE, indent=4)
    after = with_claude_links(text, "f", LINKS)
    found = json.loads(after)

    assert found["mcpServers"]["clock"] == {
        "type": "http", "url": "http://127.0.0.1:20000/mcp/time",
        "headers": {"Authorization": "Bearer t0k"},
    }  # fmt: skip
    assert found["mcpServers"]["other"] == {"command": "y"}
    assert found["projects"]["/project"]["mcpServers"]["here"]["url"].endswith("/mcp/here")
    assert list_claude_links(after) == {"time": "t0k", "here": "t0k"}
    assert with_claude_links(after, "f", LINKS) == after


def test_claude_gets_its_servers_back() -> None:
    """Also from a file that Claude Code has written again."""
    text = json.dumps(CLAUDE)
    after = json.loads(with_claude_links(text, "f", LINKS)) | {"numStartups": 4}
    restored = without_claude_links(json.dumps(after), "f", text)

    assert json.loads(restored) == CLAUDE | {"numStartups": 4}
    assert without_claude_links(text, "f", text) == text


def test_a_link_without_an_original_is_removed() -> None:
    """The backup may be gone."""
    after = with_claude_links(json.dumps(CLAUDE), "f", LINKS)
    assert "127.0.0.1" not in without_claude_links(after, "f", "")


def test_codexs_servers_become_links() -> None:
    """Comments, other tables and settings that are not about a process stay."""
    after = with_codex_links(CODEX, "f", LINKS)
    found = tomllib.loads(after)

    assert found["mcp_servers"]["clock"] == {
        "tool_timeout_sec": 30, "url": "http://127.0.0.1:20000/mcp/time",
        "http_headers": {"Authorization": "Bearer t0k"},
    }  # fmt: skip
    assert found["mcp_servers"]["other"] == {"command": "y"}
    assert 'model = "gpt-5" # mine' in after
    assert list_codex_links(after) == {"time": "t0k"}


def test_codex_gets_its_servers_back() -> None:
    """Also from a file that has changed since."""
    after = with_codex_links(CODEX, "f", LINKS)
    restored = without_codex_links(f"{after}[new]\nx = 1\n", "f", CODEX)

    assert tomllib.loads(restored) == {**tomllib.loads(CODEX), "new": {"x": 1}}
    assert without_codex_links(CODEX, "f", CODEX) == CODEX


@pytest.mark.parametrize(
    "text",
    [
        'mcp_servers.clock = {command = "node", args = ["time.js"], env = {A = "b"}}\n',
        '[mcp_servers]\nclock = {command = "node", args = ["time.js"], env = {A = "b"}}\n',
    ],
)
def test_a_form_that_cannot_be_edited(text: str) -> None:
    """It is an error, and nothing is changed."""
    with pytest.raises(UsageError, match="in a form that cannot be edited"):
        with_codex_links(text, "f", LINKS)


@pytest.mark.parametrize("edit", [with_claude_links, with_codex_links])
def test_a_broken_file_is_named(edit: object) -> None:
    """It is left as it is."""
    with pytest.raises(UsageError, match="f is not"):
        edit("{{", "f", LINKS)  # type: ignore[operator]
