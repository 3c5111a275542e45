"""`ramherd mcp import`: the servers of other programs, as servers of the gateway. Pure: the files
are read by `agents/configured_servers.py`, and the registry is written by `store/mcp_servers.py`.
"""

import re
from collections.abc import Iterable, Mapping
from itertools import chain, count
from typing import Any, NamedTuple

from ramherd.agents.configured_servers import OwnServer
from ramherd.store.mcp_servers import McpServer

NEW, CHANGED, SAME, TWIN, REFUSED = "new", "changed", "same", "twin", "refused"
NAME_LENGTH = 64
OUR_URL = re.compile(r"http://127\.0\.0\.1:\d+/mcp/[^/]+")


class ImportedServer(NamedTuple):
    """What became of one server: NEW, CHANGED or SAME in the registry under `name`; TWIN of
    another with the same definition; or REFUSED, with the reason.
    """

    own: OwnServer
    result: str
    name: str = ""
    reason: str = ""

    def as_json(self) -> dict[str, Any]:
        """Without arguments and variables, which may hold credentials."""
        return {
            "server": self.own.name, "agent": self.own.agent, "path": self.own.path,
            "result": self.result, "name": self.name, "reason": self.reason,
        }  # fmt: skip


def merge_servers(
    known: Mapping[str, McpServer], found: Iterable[OwnServer]
) -> tuple[dict[str, McpServer], list[ImportedServer]]:
    """The new registry, and what became of each server. Settings of known servers (share, limits)
    stay as they are.
    """
    servers = dict(known)
    # The names of this import: another server with such a name gets a name of its own.
    taken: set[str] = set()
    results = []
    for own in found:
        result = import_server(own, servers, taken)
        if result is not None:
            results.append(result)
    return servers, results


def import_server(
    own: OwnServer, servers: dict[str, McpServer], taken: set[str]
) -> ImportedServer | None:
    """None for a link to the gateway itself, which `ramherd mcp enable` wrote."""
    if OUR_URL.fullmatch(own.url):
        return None
    if own.problem:
        return ImportedServer(own, REFUSED, reason=own.problem)
    twin = find_twin(own, servers)
    if twin is not None:
        result = TWIN if twin in taken else SAME
        taken.add(twin)
        return ImportedServer(own, result, twin)
    others = {one.name for one in servers.values() if one.origin != own.agent}
    name = choose_name(own, taken | others)
    taken.add(name)
    result = CHANGED if name in servers else NEW
    base = servers.get(name, McpServer(name, origin=own.agent))
    servers[name] = base._replace(command=own.command, env=dict(own.env), cwd=own.cwd)
    return ImportedServer(own, result, name)


def find_twin(own: OwnServer, servers: Mapping[str, McpServer]) -> str | None:
    """The server with the same command, variables and directory."""
    wanted = own.command, dict(own.env), own.cwd
    same = [one.name for one in servers.values() if definition_of(one) == wanted]
    return own.name if own.name in same else same[0] if same else None


def definition_of(server: McpServer) -> tuple[tuple[str, ...], dict[str, str], str | None]:
    return server.command, dict(server.env), server.cwd


def choose_name(own: OwnServer, taken: set[str]) -> str:
    """Its own name as far as a URL can have it; if that is taken, with the name of the program."""
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", own.name).strip("-._") or own.agent
    ends = chain(("", f"-{own.agent}"), (f"-{number}" for number in count(2)))
    names = (plain[: NAME_LENGTH - len(end)] + end for end in ends)
    return next(name for name in names if name not in taken)
