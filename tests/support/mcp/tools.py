"""The programs that `make mcp-tools` installs."""

import os
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
TOOLS = ROOT / ".tools" / "mcp"
NODE = str(TOOLS / "node_modules" / "node" / "bin" / "node")
MODULES = TOOLS / "node_modules"
SUITE = str(MODULES / "@modelcontextprotocol" / "conformance" / "dist" / "index.js")
PYTHON = str(TOOLS / "venv" / "bin" / "python")
EXAMPLE = TOOLS / "sdist" / "mcp-2.3.0" / "examples" / "servers" / "everything-server"
CONFORMANCE_SERVER = (PYTHON, str(Path(__file__).parent / "conformance_server.py"), str(EXAMPLE))
# Servers that clients may share: name, command and share mode.
REAL_SERVERS: dict[str, tuple[tuple[str, ...], str]] = {
    "everything": (
        (NODE, str(MODULES / "@modelcontextprotocol/server-everything/dist/index.js"), "stdio"),
        "shared",
    ),
    "time": ((PYTHON, "-m", "mcp_server_time"), "shared"),
    "fetch": ((PYTHON, "-m", "mcp_server_fetch", "--allow-private-ips"), "shared"),
    "context7": ((NODE, str(MODULES / "@upstash/context7-mcp/dist/index.js")), "shared"),
    "memory": (
        (NODE, str(MODULES / "@modelcontextprotocol/server-memory/dist/index.js")), "serial",
    ),
}  # fmt: skip


def require_tools() -> None:
    if EXAMPLE.is_dir() and Path(SUITE).exists():
        return
    message = "the MCP tools are not installed: make mcp-tools"
    if os.environ.get("CI"):
        pytest.fail(message)
    pytest.skip(message)


def open_gateway() -> tuple[str, ...]:
    """The command of a gateway that asks for no token, on a free port."""
    return (sys.executable, "-m", "support.mcp.open_gateway")
