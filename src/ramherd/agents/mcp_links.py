"""How each CLI is given MCP servers of the gateway for one run, instead of its own servers.

The CLI reads its token from the environment, so that no token is in an argument or in a file, and
runs with the same servers have the same arguments: warm processes can be reused.
"""

import hashlib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ramherd.agents import ConfigFile, Launch, LaunchRequest
from ramherd.agents.configured_servers import list_own_names, read_settings

# codex and opencode give up after 10 and 5 s: less than a server takes on a busy machine when it is
# started for the first time.
START_S = 60
TOKEN_VARIABLE = "RAMHERD_MCP_TOKEN"  # noqa: S105 - the name of a variable


@dataclass(frozen=True, slots=True)
class McpLinks:
    """The URL of each server at the gateway. Files are put into `folder`; `env` and `cwd` of the
    run say where the CLI has its own servers.
    """

    urls: Mapping[str, str]
    folder: str
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str = ""

    @property
    def name(self) -> str:
        """The same for all runs with the same servers."""
        text = json.dumps(sorted(self.urls.items()))
        return hashlib.sha256(text.encode()).hexdigest()[:12]


@dataclass(frozen=True, slots=True)
class McpConfig:
    """What a launch gets for its servers: arguments, variables and files."""

    servers: tuple[str, ...] = ()

    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    files: tuple[ConfigFile, ...] = ()


def configure(agent: str, links: McpLinks) -> McpConfig:
    return replace(CONFIGURE[agent](links), servers=tuple(links.urls))


def add_args(request: LaunchRequest, config: McpConfig | None) -> LaunchRequest:
    return request if config is None else replace(request, args=(*request.args, *config.args))


def add_config(launch: Launch, config: McpConfig | None) -> Launch:
    if config is None:
        return launch
    env = {**launch.env, **config.env}
    return replace(launch, env=env, files=config.files, servers=config.servers)


def http_servers(links: McpLinks, key: str, token: str, **more: Any) -> dict[str, Any]:
    headers = {"Authorization": f"Bearer {token}"}
    return {name: {**more, key: url, "headers": headers} for name, url in links.urls.items()}


def claude(links: McpLinks) -> McpConfig:
    """Without --strict-mcp-config, the user's and the project's own servers start as well."""
    servers = http_servers(links, "url", f"${{{TOKEN_VARIABLE}}}", type="http")
    path = f"{links.folder}/claude-{links.name}.json"
    file = ConfigFile(path, json.dumps({"mcpServers": servers}))
    return McpConfig(args=(f"--mcp-config={path}", "--strict-mcp-config"), files=(file,))


def codex(links: McpLinks) -> McpConfig:
    """codex merges tables, so that its own servers have to be turned off one by one. A name with a
    dot would be a path. `required`: without it, the first turn begins without the tools of servers
    that are still starting.
    """
    settings = {}
    for name in list_own_names("codex", links.env, links.cwd):
        settings[f"mcp_servers.{name}.enabled"] = "false"
    for name, url in links.urls.items():
        place = f"mcp_servers.{re.sub(r'[^A-Za-z0-9_-]', '_', name)}"
        settings |= {
            f"{place}.url": json.dumps(url),
            f"{place}.bearer_token_env_var": json.dumps(TOKEN_VARIABLE),
            f"{place}.startup_timeout_sec": str(START_S),
            f"{place}.required": "true",
            f"{place}.enabled": "true",
        }
    words = (word for key, value in settings.items() for word in ("-c", f"{key}={value}"))
    return McpConfig(args=tuple(words))


def gemini(links: McpLinks) -> McpConfig:
    """gemini accepts other settings files only from root, so that it gets a home directory with
    links to the user's files, except for the settings.
    """
    own = os.path.join(links.env.get("GEMINI_CLI_HOME") or home_of(links), ".gemini")
    folder = f"{links.folder}/gemini-{links.name}"
    settings = read_settings(f"{own}/settings.json")
    settings["mcpServers"] = http_servers(links, "httpUrl", f"${TOKEN_VARIABLE}")
    settings["mcp"] = {**settings.get("mcp", {}), "allowed": list(links.urls)}
    files = (
        ConfigFile(f"{folder}/.gemini/settings.json", json.dumps(settings)),
        ConfigFile(f"{folder}/.gemini", links_to=own),
    )
    allowed = tuple(f"--allowed-mcp-server-names={name}" for name in links.urls or ("none",))
    return McpConfig(args=allowed, env={"GEMINI_CLI_HOME": folder}, files=files)


def qwen(links: McpLinks) -> McpConfig:
    servers = http_servers(links, "httpUrl", f"${TOKEN_VARIABLE}")
    path = f"{links.folder}/qwen-{links.name}.json"
    variable = "QWEN_CODE_SYSTEM_SETTINGS_PATH"
    settings = read_settings(links.env.get(variable) or "/etc/qwen-code/settings.json")
    settings |= {"mcpServers": servers, "mcp": {"allowed": list(links.urls) or ["none"]}}
    return McpConfig(env={variable: path}, files=(ConfigFile(path, json.dumps(settings)),))


def opencode(links: McpLinks) -> McpConfig:
    """A text in a variable is merged over the settings files."""
    own = list_own_names("opencode", links.env, links.cwd)
    token = f"{{env:{TOKEN_VARIABLE}}}"
    more = {"type": "remote", "enabled": True, "oauth": False, "timeout": START_S * 1000}
    servers = http_servers(links, "url", token, **more)
    off: dict[str, Any] = {name: {"enabled": False} for name in own}
    variable = "OPENCODE_CONFIG_CONTENT"
    given = json.loads(links.env.get(variable) or "{}")
    return McpConfig(env={variable: json.dumps({**given, "mcp": {**off, **servers}})})


def home_of(links: McpLinks) -> str:
    return links.env.get("HOME") or os.path.expanduser("~")


CONFIGURE = {"claude": claude, "codex": codex, "gemini": gemini, "qwen": qwen, "opencode": opencode}
