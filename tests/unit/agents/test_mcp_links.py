"""MCP servers for one run, as each CLI takes them."""

import json
from pathlib import Path

import pytest

from ramherd.agents import Launch, LaunchRequest
from ramherd.agents.mcp_links import (
    CONFIGURE,
    TOKEN_VARIABLE,
    McpLinks,
    add_args,
    add_config,
    configure,
)
from ramherd.core.agent_names import MCP_AGENTS

URL = "http://127.0.0.1:1/mcp/time"


def links_in(folder: Path, **urls: str) -> McpLinks:
    return McpLinks(urls, str(folder / "configs"), {"HOME": str(folder)}, str(folder))


def test_every_agent_of_the_list_can_be_configured() -> None:
    """`mcp` in a job is accepted for these agents."""
    assert set(CONFIGURE) == set(MCP_AGENTS)


@pytest.mark.parametrize("agent", MCP_AGENTS)
def test_the_token_is_read_from_the_environment(agent: str, tmp_path: Path) -> None:
    """The name of its variable is in the settings; the URL is there once."""
    config = configure(agent, links_in(tmp_path, time=URL))
    text = " ".join([*config.args, *config.env.values(), *(file.text for file in config.files)])

    assert TOKEN_VARIABLE in text
    assert text.count(URL) == 1
    assert config.servers == ("time",)


@pytest.mark.parametrize("agent", MCP_AGENTS)
def test_equal_servers_give_equal_arguments(agent: str, tmp_path: Path) -> None:
    """Warm processes are shared by jobs with equal arguments and variables."""
    one, two = (configure(agent, links_in(tmp_path, time=URL)) for _ in range(2))

    assert one == two
    assert one != configure(agent, links_in(tmp_path, memory=URL))


def test_claude_starts_no_other_servers(tmp_path: Path) -> None:
    """Also without any server of the gateway."""
    config = configure("claude", links_in(tmp_path))

    assert config.args[1] == "--strict-mcp-config"
    assert json.loads(config.files[0].text) == {"mcpServers": {}}


def test_codex_turns_its_own_servers_off(tmp_path: Path) -> None:
    """It merges tables; a server of the same name is replaced."""
    (tmp_path / ".codex").mkdir()
    text = '[mcp_servers.own]\ncommand = "x"\n[mcp_servers.time]\ncommand = "x"\n'
    (tmp_path / ".codex/config.toml").write_text(text)
    args = configure("codex", links_in(tmp_path, time=URL)).args

    assert "mcp_servers.own.enabled=false" in args
    assert "mcp_servers.time.enabled=true" in args
    assert f'mcp_servers.time.url="{URL}"' in args


def test_codex_takes_no_dots_in_names(tmp_path: Path) -> None:
    """A dot would begin another key."""
    args = configure("codex", links_in(tmp_path, **{"a.b": URL})).args
    assert f'mcp_servers.a_b.url="{URL}"' in args


def test_opencode_keeps_what_its_variable_has(tmp_path: Path) -> None:
    """Settings in OPENCODE_CONFIG_CONTENT stay."""
    links = links_in(tmp_path, time=URL)
    given = {**links.env, "OPENCODE_CONFIG_CONTENT": '{"theme": "x"}'}
    config = configure("opencode", McpLinks(links.urls, links.folder, given, links.cwd))

    settings = json.loads(config.env["OPENCODE_CONFIG_CONTENT"])
    assert (settings["theme"], list(settings["mcp"])) == ("x", ["time"])


def test_gemini_keeps_the_users_settings(tmp_path: Path) -> None:
    """In a home directory of its own, with links to the user's files."""
    (tmp_path / ".gemini").mkdir()
    own = {"ui": {"theme": "x"}, "mcpServers": {"own": {"command": "x"}}}
    (tmp_path / ".gemini/settings.json").write_text(json.dumps(own))
    config = configure("gemini", links_in(tmp_path, time=URL))

    settings = json.loads(config.files[0].text)
    assert (settings["ui"], list(settings["mcpServers"])) == ({"theme": "x"}, ["time"])
    assert config.files[1].links_to == str(tmp_path / ".gemini")
    assert config.args == ("--allowed-mcp-server-names=time",)


def test_a_launch_gets_all_of_it(tmp_path: Path) -> None:
    """Arguments come after the user's own; without servers nothing changes."""
    config = configure("claude", links_in(tmp_path, time=URL))
    request = add_args(LaunchRequest("x", args=("--verbose",)), config)
    launch = add_config(Launch(("claude",), {"A": "b"}), config)

    assert request.args == ("--verbose", *config.args)
    assert (launch.servers, launch.files, launch.env) == (("time",), config.files, {"A": "b"})
    assert add_config(Launch(()), None) == Launch(())
