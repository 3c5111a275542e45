"""The gateway's state: clients by their tokens, their sessions, and the servers that they share."""

import os
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from ramherd import __version__
from ramherd.act.pens.selection import Fleet
from ramherd.gateway.catalogue import FOLDER, Catalogue, stamp_files
from ramherd.gateway.protocol.jsonrpc import LEGACY, MODERN
from ramherd.gateway.resolve_command import resolve_command
from ramherd.gateway.server_process import ServerLaunch
from ramherd.gateway.sharing import (
    AGENT,
    WORKSPACE,
    ClientTraits,
    ShareChoice,
    choose_share,
    filter_environment,
    share_key,
)
from ramherd.gateway.upstream import Opening, Upstream
from ramherd.store.mcp_clients import McpClient, read_client
from ramherd.store.mcp_servers import McpServer

# How long a token stays known after its file was read, and how often settings are read again.
KNOWN_S = 2.0
# A client may not make the gateway remember more than this.
MOST_SESSIONS_OF_CLIENT = 64
# The user's own agents have one token together.
MOST_SESSIONS_OF_USER = 1024
# An agent of the user that was killed never ends its session. One that is alive opens another.
USER_SESSION_S = 4 * 3600.0
ALL_SERVERS = "*"
OWN_INFO = {"name": "ramherd", "version": __version__}


class NoServer(Exception):
    """There is no server of that name for this client."""


class KnownClient(NamedTuple):
    token_hash: str
    client: McpClient

    @property
    def is_user(self) -> bool:
        """Whether the token is that of all agents that the user starts."""
        return self.client.run is None

    def may_use(self, server: str) -> bool:
        return server in self.client.servers or ALL_SERVERS in self.client.servers


class GatewaySettings(NamedTuple):
    """For servers that set no values of their own."""

    memory_limit_bytes: int
    idle_s: float
    pids_limit: int
    nofile: tuple[int, int]


@dataclass(slots=True)
class McpSession:
    id: str
    client: KnownClient
    server: str
    upstream: Upstream
    used_s: float = 0.0
    # Which of its GET requests is the current one: a new one replaces the last.
    stream: int = 0


class Clients:
    """Looks tokens up by their hashes, in files of `store/mcp_clients.py`."""

    def __init__(self, bases: Callable[[], Sequence[Path]]) -> None:
        self._bases = bases
        self._known: dict[str, tuple[KnownClient, float]] = {}

    def find(self, token_hash: str) -> KnownClient | None:
        found, until_s = self._known.get(token_hash, (None, 0.0))
        if found is not None and time.monotonic() < until_s:
            return found
        read = read_client(self._bases(), token_hash)
        if read is None:
            self._known.pop(token_hash, None)
            return None
        found = KnownClient(token_hash, read)
        self._known[token_hash] = (found, time.monotonic() + KNOWN_S)
        return found


@dataclass
class Gateway:
    clients: Clients
    read_servers: Callable[[], Mapping[str, McpServer]]
    read_verdicts: Callable[[], Mapping[str, ShareChoice]]
    settings: GatewaySettings
    state: Path
    fleet: Fleet
    log: Callable[[str], None]
    # Called after each start of a server.
    on_start: Callable[[], None]
    sessions: dict[str, McpSession] = field(default_factory=dict)
    # The processes of a key: one, or as many as `pool:N` says.
    upstreams: dict[str, list[Upstream]] = field(default_factory=dict)
    _servers: tuple[Mapping[str, McpServer], float] = ({}, 0.0)

    def find_servers(self) -> Mapping[str, McpServer]:
        servers, until_s = self._servers
        if time.monotonic() >= until_s:
            servers = self.read_servers()
            self._servers = (servers, time.monotonic() + KNOWN_S)
        return servers

    def find_server(self, name: str, client: KnownClient) -> McpServer:
        """A client learns nothing about servers that it may not use."""
        server = self.find_servers().get(name) if client.may_use(name) else None
        if server is None or not server.command:
            raise NoServer(f"no MCP server {name!r} for this client")
        return server

    def choose_share(self, server: McpServer) -> ShareChoice:
        return choose_share(server, self.read_verdicts())

    def find_upstream(
        self, server: McpServer, client: KnownClient, *, is_modern: bool,
        capabilities: dict[str, Any], client_info: dict[str, Any] | None = None,
    ) -> Upstream:  # fmt: skip
        """The process that this client shares, made if there is none. A pool's processes get
        sessions in turn.
        """
        choice = self.choose_share(server)
        mode = choice.mode
        if mode == WORKSPACE and not client.client.cwd:
            mode = AGENT
        env = filter_environment(os.environ) | dict(server.env)
        era = MODERN if is_modern else LEGACY
        agent = name_agent(client, is_modern=is_modern)
        traits = ClientTraits(era, capabilities, client.client.cwd, agent)
        key = share_key(server, mode, env, traits)
        found = self.upstreams.setdefault(key, [])
        if len(found) >= choice.copies:
            return min(found, key=lambda one: (len(one.streams), len(one.router.calls)))
        info = client_info if mode == AGENT and client_info is not None else OWN_INFO
        launch = self._make_launch(server, mode, env, client.client.cwd)
        catalogue_key = share_key(server, mode, env, traits._replace(token_hash=""))
        made = Upstream(
            key, launch, Opening(is_modern, capabilities, info),
            Catalogue(self.state / FOLDER, catalogue_key, stamp_files(launch.argv)), self.fleet,
            is_serial=choice.is_serial, log=self.log, on_start=self.on_start,
        )  # fmt: skip
        made.is_private = mode == AGENT
        made.idle_s = self._choose_idle_s(server, mode)
        found.append(made)
        return made

    def _choose_idle_s(self, server: McpServer, mode: str) -> float | None:
        """None: a server that one agent has for itself keeps its state until the agent ends."""
        if server.idle_s is not None:
            return server.idle_s
        return None if mode == AGENT else self.settings.idle_s

    def _make_launch(
        self, server: McpServer, mode: str, env: Mapping[str, str], cwd: str
    ) -> ServerLaunch:
        home = Path(env.get("HOME", "/"))
        place = server.cwd or (cwd if mode in (WORKSPACE, AGENT) else str(home))
        return ServerLaunch(
            server.name, resolve_command(server.command, env, home), env,
            place if os.path.isdir(place) else "/",
            server.memory_limit_bytes or self.settings.memory_limit_bytes,
            self.settings.pids_limit, self.settings.nofile,
        )  # fmt: skip

    # Sessions

    def add_session(self, client: KnownClient, server: str, upstream: Upstream) -> McpSession:
        """A client with too many sessions loses the one that it has not used for the longest time:
        an agent that is killed never ends its own.
        """
        own = [one for one in self.sessions.values() if one.client.token_hash == client.token_hash]
        most = MOST_SESSIONS_OF_USER if client.is_user else MOST_SESSIONS_OF_CLIENT
        if len(own) >= most:
            self.remove_session(min(own, key=lambda one: one.used_s))
        session = McpSession(secrets.token_urlsafe(24), client, server, upstream, time.monotonic())
        self.sessions[session.id] = session
        upstream.add_session(session.id)
        return session

    def find_session(self, id_: str, client: KnownClient, server: str) -> McpSession | None:
        """A session belongs to its token and to its server."""
        found = self.sessions.get(id_)
        if found is None or found.client.token_hash != client.token_hash or found.server != server:
            return None
        found.used_s = time.monotonic()
        return found

    def remove_session(self, session: McpSession) -> None:
        self.sessions.pop(session.id, None)
        session.upstream.remove_session(session.id)

    def drop_lost_sessions(self) -> None:
        """Ends the sessions of clients whose runs have ended."""
        for session in list(self.sessions.values()):
            is_old = time.monotonic() - session.used_s > USER_SESSION_S
            is_gone = self.clients.find(session.client.token_hash) is None
            if is_gone or (session.client.is_user and is_old):
                self.remove_session(session)

    def every_upstream(self) -> Iterator[Upstream]:
        for found in self.upstreams.values():
            yield from found

    def forget_unused(self) -> None:
        """Keys without a process, a session or a waiting call: the next client makes them again."""
        for key, found in list(self.upstreams.items()):
            if all(one.is_unused for one in found):
                del self.upstreams[key]


def name_agent(client: KnownClient, *, is_modern: bool) -> str:
    """Whom a server belongs to that no two agents share: a run; or one session of the user, since
    all agents of the user have one token. The newer protocol has no sessions.
    """
    if not client.is_user or is_modern:
        return client.token_hash
    return f"{client.token_hash}:{secrets.token_hex(8)}"
