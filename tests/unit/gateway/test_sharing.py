"""How a server is shared, and why."""

import pytest

from ramherd.gateway.sharing import ShareChoice, choose_share
from ramherd.store.mcp_servers import McpServer

PROBED = {"x": ShareChoice("shared", "probed")}


@pytest.mark.parametrize(
    ("command", "mode"),
    [
        (("npx", "-y", "@upstash/context7-mcp@latest"), "shared"),
        (("node", "/a/node_modules/@modelcontextprotocol/server-memory/dist/index.js"), "serial"),
        (("uvx", "mcp-server-time==1.2"), "shared"),
        (("python3", "-m", "mcp_server_fetch", "--allow-private-ips"), "shared"),
        (("/opt/bin/mcp-server-git", "--repository", "."), "per-workspace"),
        (("npx", "-y", "chrome-devtools-mcp"), "per-agent"),
        (("python3", "notes.py"), "per-agent"),
    ],
)
def test_a_server_is_known_by_its_package(command: tuple[str, ...], mode: str) -> None:
    """Whatever starts it; an unknown server is not shared."""
    assert choose_share(McpServer("x", command)).mode == mode


def test_who_decides() -> None:
    """The user, then a test of the whole server, then a probe, then the documentation."""
    memory = McpServer("x", ("npx", "@modelcontextprotocol/server-memory"))
    devtools, unknown = McpServer("x", ("chrome-devtools-mcp",)), McpServer("x", ("notes",))

    assert choose_share(memory._replace(share="per-agent"), PROBED).mode == "per-agent"
    assert choose_share(memory, PROBED).mode == "serial"
    assert choose_share(devtools, PROBED).mode == "shared"
    assert choose_share(unknown, PROBED) == PROBED["x"]
    assert "ramherd mcp probe NAME" in choose_share(unknown).reason
