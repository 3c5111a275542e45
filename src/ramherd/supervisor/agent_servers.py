"""The MCP servers of agents: which are known, and how a run reaches them at the gateway."""

import os
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress

from ramherd.act.gateway_process import ensure_gateway, read_gateway
from ramherd.act.gateway_start import start_in_background
from ramherd.act.mcp_access import CONFIGS, write_files
from ramherd.agents.mcp_links import TOKEN_VARIABLE, McpConfig, McpLinks, configure
from ramherd.config.load import load_config
from ramherd.config.paths import runtime_path, state_path
from ramherd.core.agent_task import ALL_SERVERS
from ramherd.core.errors import RamherdError, UsageError
from ramherd.core.model import Brief, Job, Reason
from ramherd.core.values import nearest
from ramherd.decide.missing_servers import explain_no_gateway
from ramherd.store.mcp_clients import drop_client, register_client
from ramherd.store.mcp_servers import read_servers

# A gateway that does not start is tried again after this time.
AGAIN_S = 30.0


def list_servers() -> list[str]:
    """The servers that the gateway knows: of the user's settings, and imported."""
    config = load_config(cwd="/", report=lambda _error: None)
    return list(read_servers(config.servers, state_path()))


def check_servers(jobs: Iterable[Job]) -> None:
    """Refuses a job with a server that the gateway does not have."""
    known: list[str] | None = None
    for job in jobs:
        for name in (job.brief.mcp if job.brief is not None else None) or ():
            if name == ALL_SERVERS:
                continue
            known = list_servers() if known is None else known
            if name not in known:
                hint = nearest(name, known) if known else "ramherd mcp import"
                raise UsageError(f"job {job.name}: no MCP server is named {name!r}", hint=hint)


def start_gateway() -> None:
    """Before the first run, which reports it if there is no gateway."""
    with suppress(RamherdError, OSError):
        ensure_gateway()


class AgentServers:
    def __init__(self) -> None:
        self._tried_s = float("-inf")

    def configure(self, brief: Brief, env: Mapping[str, str], cwd: str) -> McpConfig | None:
        """What the CLI gets for its servers. None: it keeps its own. The config of a run has no
        servers if the job wants none, or while the gateway does not run.
        """
        names = brief.mcp
        if names is not None and ALL_SERVERS in names:
            names = tuple(list_servers()) or None
        if names is None:
            return None
        runtime = runtime_path()
        gateway = read_gateway(runtime) if names else None
        if names and gateway is None:
            self._start_gateway()
        urls = {name: gateway.url(name) for name in names} if gateway is not None else {}
        return configure(brief.agent, McpLinks(urls, str(runtime / CONFIGS), env, cwd))

    def _start_gateway(self) -> None:
        """For later runs: the loop does not wait for it."""
        if time.monotonic() - self._tried_s < AGAIN_S:
            return
        self._tried_s = time.monotonic()
        start_in_background()

    def explain_missing(self, brief: Brief) -> Reason | None:
        """Why the agent starts without the servers of its job, if it has any."""
        names = [name for name in brief.mcp or () if name != ALL_SERVERS] or list_servers()
        return explain_no_gateway(names) if names else None


@contextmanager
def granted_servers(job: Job) -> Iterator[McpConfig | None]:
    """The servers of a job for a session of the user on this terminal: its token is in our
    environment, and is valid until the end.
    """
    brief = job.brief
    if brief is None or brief.mcp is None:
        yield None
        return
    start_gateway()
    cwd = brief.tree.directory if brief.tree is not None else job.cwd
    config = AgentServers().configure(brief, os.environ, cwd)
    token = ""
    if config is not None:
        write_files(config.files)
    if config is not None and config.servers:
        token = register_client(
            runtime_path(), servers=config.servers, run=job.id, cwd=cwd, agent=brief.agent
        )
        os.environ[TOKEN_VARIABLE] = token
    try:
        yield config
    finally:
        if token:
            drop_client(runtime_path(), token)
