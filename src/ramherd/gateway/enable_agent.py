"""`ramherd mcp enable` and `disable`: the settings file of an agent, its token, and the gateway."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ramherd.act.edited_file import EditedFile, backup_name
from ramherd.act.gateway_process import ensure_gateway
from ramherd.act.gateway_unit import install_socket, uninstall_socket
from ramherd.agents.configured_servers import OwnServer, claude_files, codex_files, read_own_servers
from ramherd.core.agent_task import ALL_SERVERS
from ramherd.gateway.import_servers import find_twin, merge_servers
from ramherd.gateway.user_settings import (
    GatewayLinks,
    list_claude_links,
    list_codex_links,
    with_claude_links,
    with_codex_links,
    without_claude_links,
    without_codex_links,
)
from ramherd.store.mcp_clients import CLIENTS, drop_client, hash_token, register_client
from ramherd.store.mcp_servers import McpServer, read_registry, write_registry


class EnabledAgent(NamedTuple):
    """`names` are the servers at the gateway."""

    path: Path
    names: tuple[str, ...]
    is_changed: bool
    unit: Path | None = None

    def as_json(self) -> dict[str, Any]:
        unit = None if self.unit is None else str(self.unit)
        return {
            "path": str(self.path), "servers": list(self.names), "changed": self.is_changed,
            "unit": unit,
        }  # fmt: skip


class AgentSettings(NamedTuple):
    """Where an agent has its servers, and how links to the gateway are added and removed."""

    files: Callable[[Mapping[str, str]], tuple[str, ...]]
    with_links: Callable[[str, str, GatewayLinks], str]
    without_links: Callable[[str, str, str], str]
    # The servers of links, by name, with the token of each.
    list_links: Callable[[str], dict[str, str]]


SETTINGS = {
    "claude": AgentSettings(
        claude_files, with_claude_links, without_claude_links, list_claude_links
    ),
    "codex": AgentSettings(codex_files, with_codex_links, without_codex_links, list_codex_links),
}


def enable_agent(agent: str, env: Mapping[str, str], state: Path) -> EnabledAgent:
    """Imports the servers of the agent first. The gateway runs when this returns."""
    settings, file = SETTINGS[agent], open_settings(agent, env, state)
    where, before = str(file.shown), file.text()
    servers, own = import_own(agent, env, state)
    names = tuple(dict.fromkeys(twin for one in own if (twin := find_twin(one, servers))))
    linked = settings.list_links(before)
    if not names:
        return EnabledAgent(file.shown, tuple(linked), is_changed=False)
    gateway = ensure_gateway()
    links = GatewayLinks(servers, gateway.url, choose_token(linked, agent, state), env)
    original = file.read_original()
    is_changed = file.edit(
        lambda text: settings.with_links(text, where, links),
        lambda text: settings.without_links(text, where, original),
    )
    return EnabledAgent(
        file.shown, (*linked, *names), is_changed, unit=install_socket(gateway.port)
    )  # fmt: skip


def choose_token(linked: Mapping[str, str], agent: str, state: Path) -> str:
    """That of the links which the file has already, if it is still valid."""
    for token in linked.values():
        if (state / CLIENTS / f"{hash_token(token)}.json").exists():
            return token
    return register_client(state, servers=(ALL_SERVERS,), run=None, cwd="", agent=agent)


def disable_agent(agent: str, env: Mapping[str, str], state: Path) -> tuple[Path, bool]:
    """Returns the file, and whether it was changed. The imported servers stay for `--mcp`."""
    settings, file = SETTINGS[agent], open_settings(agent, env, state)
    where, original = str(file.shown), file.read_original()
    tokens = settings.list_links(file.text()).values()
    is_changed = file.restore(lambda text: settings.without_links(text, where, original))
    for token in set(tokens):
        drop_client(state, token)
    if not any((state / CLIENTS).glob("*.json")):
        uninstall_socket()
    return file.shown, is_changed


def open_settings(agent: str, env: Mapping[str, str], state: Path) -> EditedFile:
    """Links have tokens: the file becomes private to the user until `disable`."""
    home = env.get("HOME") or os.path.expanduser("~")
    path = Path(SETTINGS[agent].files(env)[0].replace("~", home, 1))
    return EditedFile(path, state / "mcp/settings" / backup_name(path), is_private=True)


def import_own(
    agent: str, env: Mapping[str, str], state: Path
) -> tuple[dict[str, McpServer], list[OwnServer]]:
    """The registry with the servers of the user's own file."""
    found = read_own_servers(agent, env, "/")
    own = [one for one in found if isinstance(one, OwnServer) and not one.problem]
    servers, _results = merge_servers(read_registry(state), own)
    write_registry(state, servers)
    return servers, own
