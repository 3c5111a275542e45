"""Measured sizes that a plan adds to its agents: MCP servers, browser pages, single operations.

`make measure-agents` measures them, and writes docs/capacity.md.
"""

from typing import NamedTuple

from ramherd.core.memory import MB
from ramherd.core.units import MIB


class ServerSize(NamedTuple):
    """PSS of one copy alone, and of each of fifty, which share their program's pages."""

    name: str
    version: str
    one_mb: float
    of_many_mb: float


# Measured 2026-11, kernel 6.18, Node 20, Python 3.11: initialised, without work.
MCP_SERVERS = (
    ServerSize("server-everything", "2026.8.31", 65, 28.3),
    ServerSize("server-memory", "2026.8.31", 65, 27.7),
    ServerSize("context7-mcp", "4.1.1", 86, 45.9),
    ServerSize("mcp-server-time", "2026.10.19", 64, 46.1),
    ServerSize("mcp-server-fetch", "2026.10.24", 77, 54.5),
)
# `--mcp 5` means these five, fewer or more of them are means.
ONE_MCP_BYTES = int(sum(server.one_mb for server in MCP_SERVERS) / len(MCP_SERVERS) * MB)
EACH_MCP_BYTES = int(sum(server.of_many_mb for server in MCP_SERVERS) / len(MCP_SERVERS) * MB)
# The lease of a gateway beside its servers.
GATEWAY_BYTES = 64 * MIB
# A page opened by a browser MCP server: 11 processes, 362 to 390 MiB.
PAGE_BYTES = 376 * MIB
SUBAGENT_BYTES = 8 * MB
# zram with lz4 keeps 374 MB of an idle agent in 144 MB. ramherd moves 64 MiB of an idle agent at a
# time, and leaves half of the swap alone.
ZRAM_RATIO = 2.6
RECLAIMED_BYTES = 64 * MIB
SWAP_USED_SHARE = 0.5
# The share of a run in which the agent waits for its model: tool calls take the rest.
IDLE_SHARE = 0.6


def mcp_bytes_each(servers: int) -> int:
    """What the servers of one agent take, if each agent has its own."""
    return servers * EACH_MCP_BYTES


def mcp_bytes_shared(servers: int) -> int:
    """What one copy of each takes behind a gateway, for all agents together."""
    return servers * ONE_MCP_BYTES + GATEWAY_BYTES if servers else 0
