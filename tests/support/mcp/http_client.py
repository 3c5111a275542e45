"""A small MCP client over Streamable HTTP, on asyncio streams: cheap enough to be a load generator,
and close enough to the wire to misbehave on purpose.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any, NamedTuple

CLIENT_INFO = {"name": "test", "version": "1"}


class HttpAnswer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def message(self) -> Any:
        return json.loads(self.body)


class McpHttp:
    """One connection, one request at a time; messages of a stream go to `on_message`."""

    def __init__(self, port: int, server: str, token: str = "", host: str = "") -> None:
        self.port, self.path, self.token = port, f"/mcp/{server}", token
        self.host = host or f"127.0.0.1:{port}"
        self.session = ""
        self.version = ""
        self.seen: list[dict[str, Any]] = []
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._last_id = 0

    async def connect(self) -> None:
        self._reader, self._writer = await asyncio.open_connection(
            "127.0.0.1", self.port, limit=32 << 20
        )

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = self._reader = None

    def abort(self) -> None:
        """As a killed process leaves a connection."""
        assert self._writer is not None
        self._writer.transport.abort()
        self._writer = self._reader = None

    def render(self, method: str, body: bytes = b"", **headers: str) -> bytes:
        fields = {
            "host": self.host, "accept": "application/json, text/event-stream",
            "content-length": str(len(body)), "content-type": "application/json",
        }  # fmt: skip
        if self.token:
            fields["authorization"] = f"Bearer {self.token}"
        if self.session:
            fields["mcp-session-id"] = self.session
        if self.version:
            fields["mcp-protocol-version"] = self.version
        fields |= {name.replace("_", "-"): value for name, value in headers.items()}
        lines = [f"{method} {self.path} HTTP/1.1", *(f"{k}: {v}" for k, v in fields.items())]
        return "\r\n".join(lines).encode() + b"\r\n\r\n" + body

    async def write(self, method: str, body: bytes = b"", **headers: str) -> None:
        if self._writer is None:
            await self.connect()
        assert self._writer is not None
        self._writer.write(self.render(method, body, **headers))

    async def read_head(self) -> tuple[int, dict[str, str]]:
        assert self._reader is not None
        head = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *lines = head.rstrip().split("\r\n")
        pairs = (line.partition(":") for line in lines)
        return int(first.split()[1]), {name.lower(): value.strip() for name, _, value in pairs}

    async def read_events(self) -> AsyncIterator[dict[str, Any]]:
        """The messages of an event stream in chunked encoding."""
        assert self._reader is not None
        text = b""
        while size := int(await self._reader.readline(), 16):
            text += (await self._reader.readexactly(size + 2))[:-2].replace(b"\r\n", b"\n")
            *events, text = text.split(b"\n\n")
            for event in events:
                for line in event.splitlines():
                    if line.startswith(b"data: "):
                        yield json.loads(line[6:])
        await self._reader.readline()

    async def send(self, method: str, body: bytes = b"", **headers: str) -> HttpAnswer:
        """A whole response; the last message of a stream is its body."""
        await self.write(method, body, **headers)
        status, fields = await self.read_head()
        if fields.get("content-type", "").startswith("text/event-stream"):
            last = b""
            async for message in self.read_events():
                self.seen.append(message)
                last = json.dumps(message).encode()
            return HttpAnswer(status, fields, last)
        assert self._reader is not None
        data = await self._reader.readexactly(int(fields.get("content-length", 0)))
        if fields.get("connection") == "close":
            self.close()
        return HttpAnswer(status, fields, data)

    async def post(self, message: dict[str, Any], **headers: str) -> HttpAnswer:
        return await self.send("POST", json.dumps(message).encode(), **headers)

    async def initialize(self, capabilities: dict[str, Any] | None = None) -> Any:
        params = {
            "protocolVersion": "2025-11-25", "capabilities": capabilities or {},
            "clientInfo": CLIENT_INFO,
        }  # fmt: skip
        self.session = ""
        answer = await self.post(request(0, "initialize", params))
        self.session = answer.headers.get("mcp-session-id", "")
        await self.post({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return answer.message

    async def ask(self, method: str, params: dict[str, Any] | None = None) -> Any:
        self._last_id += 1
        return (await self.post(request(self._last_id, method, params))).message

    async def call(self, tool: str, **arguments: Any) -> Any:
        return await self.ask("tools/call", {"name": tool, "arguments": arguments})


def request(id_: Any, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
    message: dict[str, Any] = {"jsonrpc": "2.0", "id": id_, "method": method}
    return message if params is None else {**message, "params": params}
