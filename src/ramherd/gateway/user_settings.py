"""`ramherd mcp enable`: the servers in the user's own settings of Claude Code or Codex become links
to the gateway. Text in, text out; `act/edited_file.py` writes the files.

A server keeps its name, so that the names of its tools stay the same. Only servers that the gateway
has with the same definition are replaced.
"""

import json
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from ramherd.agents.configured_servers import OwnServer, parse_own
from ramherd.core.errors import UsageError
from ramherd.gateway.import_servers import OUR_URL, find_twin
from ramherd.hook.claude_settings import render, without_twins
from ramherd.store.mcp_servers import McpServer

# Keys of Codex that describe a process.
PROCESS_KEYS = ("command", "args", "env", "env_vars", "cwd")
HEADER = re.compile(r"^\[+[^\n]*$", re.MULTILINE)


class GatewayLinks(NamedTuple):
    """The servers of the gateway, its address, and the token of the user's sessions."""

    servers: Mapping[str, McpServer]
    url: Callable[[str], str]
    token: str
    env: Mapping[str, str]

    def find(self, agent: str, name: str, table: Any, cwd: str | None) -> str | None:
        """The URL of the gateway's server with this definition."""
        own = parse_own(OwnServer(agent, "", name, cwd=cwd), table, self.env)
        twin = None if own.problem else find_twin(own, self.servers)
        return None if twin is None else self.url(twin)

    @property
    def header(self) -> str:
        return f"Bearer {self.token}"


def with_claude_links(text: str, where: str, links: GatewayLinks) -> str:
    """Also servers that were added for one project (`claude mcp add` without `--scope user`)."""
    document = parse_json(text, where)
    for project, servers in claude_servers(document):
        for name, table in servers.items():
            if url := links.find("claude", name, table, project):
                headers = {"Authorization": links.header}
                servers[name] = {"type": "http", "url": url, "headers": headers}
    return render(document, text)


def without_claude_links(text: str, where: str, before: str) -> str:
    """The servers of `before`, the text that was edited, in place of links to the gateway."""
    document = parse_json(text, where)
    originals = dict(claude_servers(parse_json(before, where)))
    is_changed = False
    for project, servers in claude_servers(document):
        for name in [name for name, table in servers.items() if is_link(table)]:
            is_changed = True
            original = originals.get(project, {}).get(name)
            if original is None or is_link(original):
                del servers[name]
            else:
                servers[name] = original
    return render(document, text) if is_changed else text


def claude_servers(document: dict[str, Any]) -> Iterator[tuple[str | None, dict[str, Any]]]:
    """The user's servers, and those of each project."""
    if isinstance(servers := document.get("mcpServers"), dict):
        yield None, servers
    for project, kept in (document.get("projects") or {}).items():
        if isinstance(kept, dict) and isinstance(servers := kept.get("mcpServers"), dict):
            yield project, servers


def list_claude_links(text: str) -> dict[str, str]:
    """The servers of links to the gateway, with the token of each."""
    tables = (servers.values() for _project, servers in claude_servers(parse_json(text, "it")))
    return links_in((table for some in tables for table in some), "headers")


def list_codex_links(text: str) -> dict[str, str]:
    return links_in(parse_toml(text, "it").get("mcp_servers", {}).values(), "http_headers")


def links_in(tables: Iterable[Any], headers: str) -> dict[str, str]:
    return {
        table["url"].rpartition("/")[2]: str(
            (table.get(headers) or {}).get("Authorization", "")
        ).removeprefix("Bearer ")
        for table in tables
        if is_link(table)
    }


def is_link(table: Any) -> bool:
    url = table.get("url") if isinstance(table, dict) else None
    return isinstance(url, str) and OUR_URL.fullmatch(url) is not None


def parse_json(text: str, where: str) -> dict[str, Any]:
    try:
        document = json.loads(text, object_pairs_hook=without_twins) if text.strip() else {}
    except ValueError as error:
        raise UsageError(f"{where} is not JSON: {error}", hint="repair it by hand") from None
    if not isinstance(document, dict):
        raise UsageError(f"{where} is not a JSON object", hint="repair it by hand")
    return document


def with_codex_links(text: str, where: str, links: GatewayLinks) -> str:
    wanted = parse_toml(text, where)
    for name, table in wanted.get("mcp_servers", {}).items():
        if url := links.find("codex", name, table, None):
            kept = {key: value for key, value in table.items() if key not in PROCESS_KEYS}
            linked = {**kept, "url": url, "http_headers": {"Authorization": links.header}}
            wanted["mcp_servers"][name] = linked
            text = replace_block(text, name, render_block(name, linked))
    return check_toml(text, where, wanted)


def without_codex_links(text: str, where: str, before: str) -> str:
    wanted, originals = parse_toml(text, where), parse_toml(before, where).get("mcp_servers", {})
    for name, table in dict(wanted.get("mcp_servers", {})).items():
        if not is_link(table):
            continue
        if name in originals and not is_link(originals[name]):
            wanted["mcp_servers"][name] = originals[name]
            text = replace_block(text, name, find_block(before, name))
        else:
            del wanted["mcp_servers"][name]
            text = replace_block(text, name, "")
    return check_toml(text, where, wanted)


def parse_toml(text: str, where: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{where} is not TOML: {error}", hint="repair it by hand") from None


def check_toml(text: str, where: str, wanted: Mapping[str, Any]) -> str:
    """Blocks are found in the text: a server that is written in another way is not edited."""
    found = parse_toml(text, where)
    if {"mcp_servers": {}, **found} != {"mcp_servers": {}, **wanted}:
        raise UsageError(
            f"{where} has MCP servers in a form that cannot be edited",
            hint="write each as a table of its own: [mcp_servers.NAME]",
        )
    return text


def blocks_of(text: str, name: str) -> Iterator[tuple[int, int]]:
    """The tables of a server: [mcp_servers.NAME] and those below it, such as its env."""
    quoted = re.escape(name)
    own = re.compile(rf"\[\s*mcp_servers\s*\.\s*(?:{quoted}|\"{quoted}\"|'{quoted}')\s*[\].]")
    headers = list(HEADER.finditer(text))
    for at, header in enumerate(headers):
        if own.match(header[0]):
            end = headers[at + 1].start() if at + 1 < len(headers) else len(text)
            yield header.start(), end


def find_block(text: str, name: str) -> str:
    return "".join(text[start:end] for start, end in blocks_of(text, name))


def replace_block(text: str, name: str, block: str) -> str:
    """The new block is where the first one was."""
    places = list(blocks_of(text, name))
    for start, end in reversed(places[1:]):
        text = text[:start] + text[end:]
    if not places:
        return text
    start, end = places[0]
    return text[:start] + block + text[end:]


def render_block(name: str, table: Mapping[str, Any]) -> str:
    key = name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name)
    lines = [f"{part} = {render_value(value)}\n" for part, value in table.items()]
    return f"[mcp_servers.{key}]\n{''.join(lines)}\n"


def render_value(value: Any) -> str:
    """As TOML. JSON has the same texts, numbers, lists and truth values."""
    if isinstance(value, dict):
        pairs = ", ".join(f"{json.dumps(key)} = {render_value(one)}" for key, one in value.items())
        return f"{{ {pairs} }}"
    if isinstance(value, list):
        return f"[{', '.join(map(render_value, value))}]"
    return json.dumps(value, ensure_ascii=False)
