"""What popular MCP servers take: initialised over stdio, without work, one copy and each of ten.

The servers of `make mcp-servers`. PSS has the share of the files that several copies map. With
--write the table goes into a document, between its two marks.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))
from bench.measure_agents import memory_of, tree_of
from bench.tables import publish

TOOLS = Path(__file__).parents[2] / ".tools/mcp-servers"
COPIES = 10
SETTLE_S = 2.0
HELLO = {
    "jsonrpc": "2.0", "id": 1, "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {},
               "clientInfo": {"name": "measure", "version": "1"}},
}  # fmt: skip


class Server(NamedTuple):
    """A package of npm, or of PyPI if it has no scope."""

    package: str
    args: tuple[str, ...] = ()


SERVERS = (
    Server("@modelcontextprotocol/server-everything"),
    Server("@modelcontextprotocol/server-memory"),
    Server("@modelcontextprotocol/server-filesystem", ("/tmp",)),
    Server("@modelcontextprotocol/server-sequential-thinking"),
    Server("@upstash/context7-mcp"),
    Server("@playwright/mcp", ("--headless", "--isolated")),
    Server("mcp-server-time"),
    Server("mcp-server-fetch"),
)


def find_program(server: Server) -> tuple[list[str], str]:
    """The package's own entry point, not `npx`, which adds two processes; and its version."""
    if not server.package.startswith("@"):
        found = next((TOOLS / "py/lib").glob(
            f"python*/site-packages/{server.package.replace('-', '_')}-*.dist-info"))  # fmt: skip
        version = found.name.removesuffix(".dist-info").rpartition("-")[2]
        return [str(TOOLS / "py/bin" / server.package), *server.args], version
    home = TOOLS / "node_modules" / server.package
    package: dict[str, Any] = json.loads((home / "package.json").read_text())
    entry = package["bin"]
    entry = entry if isinstance(entry, str) else next(iter(entry.values()))
    return ["node", str(home / entry), *server.args], package["version"]


@contextmanager
def initialised(command: Sequence[str]) -> Iterator[subprocess.Popen[bytes]]:
    """Answered `initialize`; ended when its stdin closes, or killed."""
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(HELLO).encode() + b"\n")
        process.stdin.flush()
        assert b'"result"' in process.stdout.readline(), command
        yield process
        process.stdin.close()
        try:
            process.wait(3)
        except subprocess.TimeoutExpired:
            process.kill()


def measure(command: Sequence[str], copies: int) -> tuple[int, float]:
    """Processes and PSS in MiB of all copies together."""
    with ExitStack() as stack:
        started = [stack.enter_context(initialised(command)) for _ in range(copies)]
        time.sleep(SETTLE_S)  # what the start took is given back
        pids = [pid for process in started for pid in tree_of(process.pid)]
        return len(pids), memory_of(pids)[0]


def row_of(server: Server) -> str:
    command, version = find_program(server)
    processes, one = measure(command, 1)
    each = measure(command, COPIES)[1] / COPIES
    return f"| {server.package} | {version} | {processes} | {one:.0f} | {each:.0f} |"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", type=Path, help="the document with the marks")
    args = parser.parse_args()
    if not TOOLS.is_dir():
        print("the servers are not installed: make mcp-servers", file=sys.stderr)
        return 3
    lines = [f"| server | version | processes | one copy, PSS MiB | each of {COPIES}, PSS MiB |"]
    lines += ["|---" * 5 + "|", *(row_of(server) for server in SERVERS)]
    when = datetime.now(UTC).date()
    publish([*lines, "", f"{when}, Linux {os.uname().release}."], "capacity-mcp", args.write)
    return 0


if __name__ == "__main__":
    sys.exit(main())
