"""The answers on the gateway's own socket, to which only this user can connect."""

import asyncio
import json
import os
from collections.abc import Awaitable, Callable
from typing import Any

from ramherd.gateway.gateway import Gateway
from ramherd.gateway.streamable_http import Receive, Scope, Send
from ramherd.gateway.upstream import Upstream
from ramherd.system.procfs import read_rss_bytes

Answer = tuple[int, Any]


class ControlApp:
    """`describe` adds what only the process knows; `end` ends it."""

    def __init__(
        self, gateway: Gateway, describe: Callable[[], dict[str, Any]], end: Callable[[], None]
    ) -> None:
        self._gateway, self._describe, self._end = gateway, describe, end

    async def __call__(self, scope: Scope, _receive: Receive, send: Send) -> None:
        status, value = await self._answer(scope["method"], scope["path"].split("/")[1:])
        body = json.dumps(value).encode()
        headers = [(b"content-type", b"application/json")]
        headers.append((b"content-length", str(len(body)).encode()))
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    async def _answer(self, method: str, path: list[str]) -> Answer:
        routes: dict[tuple[str, str, int], Callable[..., Awaitable[Answer]]] = {
            ("GET", "servers", 1): self._status, ("POST", "restart", 2): self._restart,
            ("POST", "stop", 1): self._stop,
        }  # fmt: skip
        route = routes.get((method, path[0], len(path)))
        if route is None:
            return 404, {"error": f"no such request: {method} /{'/'.join(path)}"}
        return await route(*path[1:])

    async def _status(self) -> Answer:
        servers = [self._describe_server(name) for name in self._gateway.find_servers()]
        own = {"pid": os.getpid(), "rss_bytes": read_rss_bytes(os.getpid())}
        return 200, {**own, **self._describe(), "servers": servers}

    def _describe_server(self, name: str) -> dict[str, Any]:
        server = self._gateway.find_servers()[name]
        choice = self._gateway.choose_share(server)
        ups = [one for one in self._gateway.every_upstream() if one.launch.name == name]
        processes = [describe_process(one) for one in ups if one.child is not None]
        states = [one.state for one in ups]
        used = [one.usage.used_s for one in ups if one.usage.calls]
        order = ("running", "starting", "back-off", "idle")
        return {
            "name": name, "share": choice.mode, "reason": choice.reason,
            "state": min(states, key=order.index, default="idle"), "processes": processes,
            "clients": sum(len(one.streams) for one in ups),
            "calls": sum(one.usage.calls for one in ups),
            "used_bytes": sum(one["used_bytes"] for one in processes),
            "last_used_at_s": max(used, default=None),
            "last_error": next((one.usage.last_error for one in ups if one.usage.last_error), ""),
        }  # fmt: skip

    async def _restart(self, name: str) -> Answer:
        if name not in self._gateway.find_servers():
            return 404, {"error": f"no MCP server is named {name!r}", "hint": "ramherd mcp list"}
        found = [one for one in self._gateway.every_upstream() if one.launch.name == name]
        running = [one for one in found if one.child is not None]
        await asyncio.gather(*(one.stop() for one in running))
        for one in found:
            one.forget()
        return 200, {"restarted": len(running)}

    async def _stop(self) -> Answer:
        self._end()
        return 200, {"stopped": os.getpid()}


def describe_process(upstream: Upstream) -> dict[str, Any]:
    child, usage = upstream.child, upstream.usage
    assert child is not None
    return {
        "pid": child.pid, "era": "2026-07-28" if upstream.router.is_modern else "legacy",
        "clients": len(upstream.streams), "used_bytes": upstream.used_bytes,
        "calls": usage.calls, "started_at_s": usage.started_s, "last_used_at_s": usage.used_s,
        "restarts": usage.restarts, "last_error": usage.last_error,
        "one_at_a_time": upstream.router.is_serial or upstream.router.asks,
    }  # fmt: skip
