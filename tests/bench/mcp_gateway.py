"""What the MCP gateway costs and saves, beside a private server for each client and other gateways.

    cd tests && ../.venv/bin/python -m bench.mcp_gateway [--write FILE] [--clients N] [--calls N]

One load generator, one run: 50 clients make calls of `echo` to server-everything, one after another
in each client. Then the same clients open sessions to five real servers, and the memory of the
gateway with its servers is compared with that of a private copy for each client, which is measured
server by server: 250 processes at once need 10 GB.
"""

import argparse
import asyncio
import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.tables import publish
from ramherd.act.gateway_process import read_gateway
from ramherd.store.mcp_clients import register_client
from ramherd.system.procfs import read_descendants, read_process, read_pss_bytes, read_rss_bytes
from support.mcp.http_client import CLIENT_INFO, McpHttp, request
from support.mcp.tools import REAL_SERVERS, TOOLS

EVERYTHING = REAL_SERVERS["everything"][0]
START_S = 60.0
MOST_CPU_MS, MOST_RSS_BYTES, MOST_SHARE = 0.3, 36e6, 0.10
LENGTH = re.compile(rb"(?i)\r\ncontent-length: (\d+)")
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass
class Load:
    name: str
    times_ms: list[float]
    wall_s: float
    cpu_ms: float | None = None
    rss_bytes: int | None = None

    def at(self, share: float) -> float:
        return self.times_ms[int(share * len(self.times_ms))]

    def row(self) -> str:
        cpu = "" if self.cpu_ms is None else f"{self.cpu_ms:.2f}"
        rss = "" if self.rss_bytes is None else f"{self.rss_bytes / 1e6:.1f}"
        rate = len(self.times_ms) / self.wall_s
        times = f"{self.at(0.5):.1f} / {self.at(0.99):.1f}"
        return f"| {self.name} | {times} | {rate:.0f} | {cpu} | {rss} |"


class StdioClient:
    """A private server process."""

    async def open(self) -> None:
        self._process = await asyncio.create_subprocess_exec(
            *EVERYTHING, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            limit=32 << 20,
        )  # fmt: skip
        params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": CLIENT_INFO}
        await self.ask("initialize", params)
        self._write({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def _write(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message).encode() + b"\n")

    async def ask(self, method: str, params: dict[str, Any]) -> Any:
        assert self._process.stdout is not None
        self._write(request(1, method, params))
        while True:
            message = json.loads(await self._process.stdout.readline())
            if message.get("id") == 1 and "method" not in message:
                return message

    async def echo(self) -> Any:
        return await self.ask("tools/call", {"name": "echo", "arguments": {"message": "hello"}})

    async def close(self) -> None:
        self._process.kill()
        await self._process.wait()


class HttpClient(asyncio.Protocol):
    """One connection. The bytes of a call are made once: the generator shares two cores with what
    it measures.
    """

    def __init__(self, port: int, path: str, token: str = "") -> None:
        self._http = McpHttp(port, "", token)
        self._http.path = path
        self._call = b""
        self._received = b""
        self._answered: asyncio.Future[bytes] | None = None
        self._transport: asyncio.Transport | None = None

    async def open(self) -> None:
        await self._http.initialize()
        self._http.close()
        params = {"name": "echo", "arguments": {"message": "hello"}}
        body = json.dumps(request(1, "tools/call", params)).encode()
        self._call = self._http.render("POST", body)
        loop = asyncio.get_running_loop()
        await loop.create_connection(lambda: self, "127.0.0.1", self._http.port)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """A response ends with its length, or with the last chunk."""
        self._received += data
        head, _, body = self._received.partition(b"\r\n\r\n")
        length = LENGTH.search(head)
        is_whole = len(body) >= int(length[1]) if length else body.endswith(b"0\r\n\r\n")
        if body and is_whole and self._answered is not None:
            self._received = b""
            self._answered.set_result(body)

    async def echo(self) -> Any:
        assert self._transport is not None
        self._answered = asyncio.get_running_loop().create_future()
        self._transport.write(self._call)
        body = await self._answered
        return {"result": body} if b'"result"' in body else {"error": body}

    async def close(self) -> None:
        assert self._transport is not None
        self._transport.close()


async def load(
    name: str, clients: list[StdioClient] | list[HttpClient], calls: int, pid: int | None
) -> Load:
    """Every client is open before the first call."""
    for client in clients:
        await client.open()
    times: list[float] = []

    async def call(client: StdioClient | HttpClient) -> None:
        for _ in range(calls):
            began_s = time.perf_counter()
            answer = await client.echo()
            times.append(1000 * (time.perf_counter() - began_s))
            assert "result" in answer, answer

    await asyncio.gather(*(call(client) for client in clients))
    times.clear()
    cpu_s, began_s = read_cpu_s(pid), time.perf_counter()
    await asyncio.gather(*(call(client) for client in clients))
    wall_s, cpu_s = time.perf_counter() - began_s, read_cpu_s(pid) - cpu_s
    rss = read_rss_bytes(pid) if pid is not None else None
    for client in clients:
        await client.close()
    cpu_ms = 1000 * cpu_s / len(times) if pid is not None else None
    return Load(name, sorted(times), wall_s, cpu_ms, rss)


def read_cpu_s(pid: int | None) -> float:
    found = read_process(pid) if pid is not None else None
    return found.cpu_ticks / TICKS if found is not None else 0.0


@dataclass
class GatewayUnderTest:
    pid: int
    port: int
    token: str


@contextlib.contextmanager
def running_gateway() -> Iterator[GatewayUnderTest]:
    with tempfile.TemporaryDirectory(prefix="ramherd-mcp-") as place:
        folder = Path(place)
        runtime, config = folder / "ramherd-run", folder / "config" / "ramherd"
        runtime.mkdir(0o700)
        config.mkdir(parents=True)
        (config / "config.toml").write_text("\n".join(
            f"[mcp.servers.{name}]\ncommand = {json.dumps(command)}\nshare = {json.dumps(mode)}\n"
            f'env = {{MEMORY_FILE_PATH = "{folder}/memory.json"}}'
            for name, (command, mode) in REAL_SERVERS.items()
        ))  # fmt: skip
        env = {
            **os.environ, "RAMHERD_RUNTIME_DIR": str(runtime), "XDG_STATE_HOME": str(folder),
            "XDG_CONFIG_HOME": str(folder / "config"),
        }  # fmt: skip
        command = [sys.executable, "-m", "ramherd", "mcp", "serve", "--port", "0"]
        process = subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL)
        try:
            deadline_s = time.monotonic() + START_S
            while (found := read_gateway(runtime)) is None:
                assert time.monotonic() < deadline_s
                time.sleep(0.05)
            token = register_client(runtime, servers=("*",), run=None, cwd="/", agent="bench")
            yield GatewayUnderTest(process.pid, found.port, token)
        finally:
            process.terminate()
            process.wait(START_S)


@contextlib.asynccontextmanager
async def running_peer(*command: str, port: int) -> AsyncIterator[int]:
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        start_new_session=True,
    )  # fmt: skip
    try:
        deadline_s = time.monotonic() + START_S
        while not is_listening(port):
            assert process.poll() is None, command
            assert time.monotonic() < deadline_s
            await asyncio.sleep(0.1)
        yield process.pid
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def is_listening(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def compare_loads(clients: int, calls: int) -> list[Load]:
    found = [await load("a private server for each client",
                        [StdioClient() for _ in range(clients)], calls, None)]  # fmt: skip
    with running_gateway() as gateway:
        some = [HttpClient(gateway.port, "/mcp/everything", gateway.token) for _ in range(clients)]
        found.append(await load("**ramherd mcp**", some, calls, gateway.pid))
    port = free_port()
    peers = {
        "mcp-proxy 0.13.0 (PyPI)": (
            str(TOOLS / "mcp-proxy/bin/mcp-proxy"), "--port", str(port), "--", *EVERYTHING,
        ),
        "fastmcp 4.1.2, its proxy": (
            str(TOOLS / "fastmcp/bin/python"), str(Path(__file__).with_name("fastmcp_proxy.py")),
            str(port), *EVERYTHING,
        ),
    }  # fmt: skip
    for name, command in peers.items():
        if not Path(command[0]).exists():
            print(f"{name} is not installed: make mcp-peers")
            continue
        async with running_peer(*command, port=port) as pid:
            some = [HttpClient(port, "/mcp") for _ in range(clients)]
            found.append(await load(name, some, max(calls // 5, 4), pid))
    return found


@dataclass
class Sharing:
    server: str
    processes: int
    shared_bytes: int
    private_bytes: int


async def measure_shared(clients: int) -> tuple[dict[str, tuple[int, int]], int]:
    """Processes and PSS of each server, and the gateway's own."""
    with running_gateway() as gateway:
        opened = []
        for name in REAL_SERVERS:
            for _ in range(clients):
                client = McpHttp(gateway.port, name, gateway.token)
                await client.initialize()
                await client.ask("tools/list")
                opened.append(client)
            await call_something(opened[-1], name)
        found: dict[str, tuple[int, int]] = {}
        pids = [pid for pid in read_descendants(gateway.pid) if pid != gateway.pid]
        for name, (command, _mode) in REAL_SERVERS.items():
            own = [pid for pid in pids if runs(pid, command)]
            found[name] = (len(own), sum(read_pss_bytes(pid) or 0 for pid in own))
        own_bytes = read_pss_bytes(gateway.pid) or 0
        for client in opened:
            client.close()
    return found, own_bytes


def runs(pid: int, command: tuple[str, ...]) -> bool:
    words = Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")
    return words[: len(command)] == list(command)


async def call_something(client: McpHttp, server: str) -> None:
    """The first real call, which needs a process."""
    calls: dict[str, tuple[str, dict[str, Any]]] = {
        "everything": ("echo", {"message": "x"}), "memory": ("read_graph", {}),
        "time": ("get_current_time", {"timezone": "UTC"}),
        "fetch": ("fetch", {"url": "http://127.0.0.1:1/"}),
        "context7": ("resolve-library-id", {"query": "x", "libraryName": "x"}),
    }  # fmt: skip
    tool, arguments = calls[server]
    await client.call(tool, **arguments)


def measure_private(command: tuple[str, ...], copies: int) -> int:
    """PSS of so many initialised copies."""
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": CLIENT_INFO}
    hello = json.dumps(request(1, "initialize", params)).encode() + b"\n"
    started = [
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        for _ in range(copies)
    ]
    try:
        for one in started:
            assert one.stdin is not None
            assert one.stdout is not None
            one.stdin.write(hello)
            one.stdin.flush()
            one.stdout.readline()
        return sum(read_pss_bytes(one.pid) or 0 for one in started)
    finally:
        for one in started:
            one.kill()
            one.communicate()


def render(loads: list[Load], sharing: list[Sharing], own_bytes: int, clients: int) -> list[str]:
    lines = [
        f"| {clients} clients, `echo` of server-everything | p50 / p99 ms | calls a second | "
        "CPU ms a call | RSS MB |",
        "|---|---|---|---|---|", *(one.row() for one in loads), "",
        f"| {clients} clients | processes | shared, PSS MB | private, PSS MB |",
        "|---|---|---|---|",
    ]  # fmt: skip
    for one in sharing:
        shared, private = one.shared_bytes / 1e6, one.private_bytes / 1e6
        lines.append(f"| {one.server} | {one.processes} | {shared:.0f} | {private:.0f} |")
    shared = own_bytes + sum(one.shared_bytes for one in sharing)
    private = sum(one.private_bytes for one in sharing)
    lines.append(
        f"| all, with the gateway | {1 + sum(one.processes for one in sharing)} | "
        f"{shared / 1e6:.0f} ({100 * shared / private:.1f} %) | {private / 1e6:.0f} |"
    )
    return lines


def find_excesses(loads: list[Load], sharing: list[Sharing], own_bytes: int) -> list[str]:
    """The bars that are not kept."""
    private, gateway = loads[0], loads[1]
    assert gateway.cpu_ms is not None
    assert gateway.rss_bytes is not None
    share = (own_bytes + sum(one.shared_bytes for one in sharing)) / sum(
        one.private_bytes for one in sharing
    )
    kept = {
        f"CPU {gateway.cpu_ms:.2f} ms a call, {MOST_CPU_MS} at most": gateway.cpu_ms <= MOST_CPU_MS,
        f"RSS {gateway.rss_bytes / 1e6:.1f} MB, {MOST_RSS_BYTES / 1e6:.0f} at most":
            gateway.rss_bytes <= MOST_RSS_BYTES,
        "p50 above that of private servers": gateway.at(0.5) <= private.at(0.5),
        "p99 above that of private servers": gateway.at(0.99) <= private.at(0.99),
        f"memory {100 * share:.1f} % of private servers": share <= MOST_SHARE,
        "a server has several processes": all(one.processes <= 1 for one in sharing),
    }  # fmt: skip
    return [what for what, is_kept in kept.items() if not is_kept]


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", type=Path)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--calls", type=int, default=40)
    options = parser.parse_args()
    loads = asyncio.run(compare_loads(options.clients, options.calls))
    shared, own_bytes = asyncio.run(measure_shared(options.clients))
    sharing = [
        Sharing(name, *shared[name], measure_private(command, options.clients))
        for name, (command, _mode) in REAL_SERVERS.items()
    ]
    publish(render(loads, sharing, own_bytes, options.clients), "bench-mcp", options.write)
    for excess in (excesses := find_excesses(loads, sharing, own_bytes)):
        print(f"EXCEEDED: {excess}")
    # On a machine that is busy with other things it is its scheduler that is measured.
    return 1 if excesses and os.getloadavg()[0] < (os.cpu_count() or 1) else 0


if __name__ == "__main__":
    sys.exit(main())
