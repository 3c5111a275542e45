"""One server for the clients of one key: its router, and its process while there is one.

The process starts at the first message for it, stops when nobody has used it for a while, and is
started again after a crash, with growing delays. A call that a process has got is never repeated.
"""

import asyncio
import json
import time
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, NamedTuple

from ramherd.act.pens.selection import Fleet
from ramherd.decide.back_off import back_off_s
from ramherd.decide.governor.leaks import IdleSamples
from ramherd.gateway.catalogue import Catalogue
from ramherd.gateway.protocol.envelope import Annotated, find_annotated
from ramherd.gateway.protocol.jsonrpc import (
    LATEST_LEGACY,
    LISTS,
    MODERN_VERSIONS,
    PROGRESS_TOKEN,
    Message,
    make_notification,
    params_of,
)
from ramherd.gateway.protocol.router import LIST_CHANGED, Output, Router, ToCall, ToServer
from ramherd.gateway.server_process import MOST_LINE_BYTES, ServerLaunch, ServerProcess
from ramherd.system.ids import new_id

# npx may download the package first.
START_S = 120.0
# After a crash; a server that lived this long starts at once.
FIRST_BACK_OFF_S, MOST_BACK_OFF_S, HEALTHY_S = 0.5, 60.0, 60.0
# Calls wait this long for a server that is about to be started again; otherwise they fail now.
PATIENCE_S = 5.0
# A server that ignores a cancelled call keeps others waiting this long.
CANCEL_S = 2.0
# A server that is asked after a client gave up a call.
ALIVE_S = 30.0
# Messages for a client that has no stream open, or does not read it.
MOST_FRAME_BYTES = 2 * MOST_LINE_BYTES
# The gateway's own list of tools: a server that does not end it gets no checks of headers.
LIST_S, MOST_PAGES = 10.0, 100
VERSION_META = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES_META = "io.modelcontextprotocol/clientCapabilities"
INFO_META = "io.modelcontextprotocol/clientInfo"


class ServerError(Exception):
    """The server cannot be used now; one sentence."""


class LegacyOnly(Exception):
    """The server does not speak the newer era."""


class Opening(NamedTuple):
    """How the gateway introduces the clients of a key to the server."""

    is_modern: bool
    capabilities: dict[str, Any]
    client_info: dict[str, Any]


class Frame(NamedTuple):
    """One message, encoded. `error` is the code of a response that is an error."""

    data: bytes
    is_last: bool
    error: int | None


class Exchange:
    """The messages for one response: the HTTP side reads them, in order. A client that does not
    read loses the oldest.
    """

    __slots__ = ("_bytes", "_frames", "_waiter", "is_ended", "number")

    def __init__(self) -> None:
        self._frames: deque[Frame] = deque()
        self._bytes = 0
        self._waiter: asyncio.Future[None] | None = None
        self.is_ended = False
        self.number = 0

    def put(self, message: Message, *, is_last: bool) -> None:
        if self.is_ended:
            return
        error = message.get("error")
        code = error.get("code") if isinstance(error, dict) else None
        data = json.dumps(message, separators=(",", ":"), ensure_ascii=False).encode()
        self._frames.append(Frame(data, is_last, code))
        self._bytes += len(data)
        while self._bytes > MOST_FRAME_BYTES and len(self._frames) > 1:
            self._bytes -= len(self._frames.popleft().data)
        self.is_ended = is_last
        self.wake()

    def wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def close(self) -> None:
        self.is_ended = True
        self.wake()

    async def next(self, timeout_s: float) -> Frame | None:
        """None after the time, or if the exchange was closed."""
        if not self._frames and not self.is_ended:
            loop = asyncio.get_running_loop()
            self._waiter = loop.create_future()
            timer = loop.call_later(timeout_s, self.wake)
            waiter = self._waiter
            try:
                await waiter
            finally:
                timer.cancel()
                if self._waiter is waiter:
                    self._waiter = None
        if not self._frames:
            return None
        frame = self._frames.popleft()
        self._bytes -= len(frame.data)
        return frame


class ServerUsage:
    """What `ramherd mcp status` shows."""

    def __init__(self) -> None:
        self.calls = self.restarts = 0
        self.started_s = self.used_s = time.time()
        self.last_error = ""


class Upstream:
    """`streams` are the sessions' own streams, by session."""

    def __init__(
        self, key: str, launch: ServerLaunch, opening: Opening, catalogue: Catalogue,
        fleet: Fleet, *, is_serial: bool, log: Callable[[str], None], on_start: Callable[[], None],
    ) -> None:  # fmt: skip
        self.key, self.launch, self.catalogue = key, launch, catalogue
        self.opening, self._fleet, self._log, self._on_start = opening, fleet, log, on_start
        self.router = Router(is_modern=opening.is_modern, is_serial=is_serial, asks=catalogue.asks)
        self.streams: dict[str, Exchange] = {}
        self.child: ServerProcess | None = None
        self.usage = ServerUsage()
        self.opened: dict[str, Any] | None = catalogue.opening
        self._exchanges: dict[int, Exchange] = {}
        self._listed: dict[int, Message] = {}
        self._outbox: list[Message] = []
        self._own: dict[int, asyncio.Future[Message]] = {}
        self._starting: asyncio.Task[None] | None = None
        self._is_ready = False
        self._failures = 0
        self._not_before_s = 0.0
        self._is_checking = False
        self._tasks: set[asyncio.Task[None]] = set()
        # The parameters of each tool that headers repeat, once they were needed.
        self._annotated: dict[str, list[Annotated]] | None = None
        # No two agents share it; `idle_s` None: it stays until the agent ends.
        self.is_private = False
        self.used_bytes = 0
        self.samples = IdleSamples()
        self.idle_s: float | None = None

    @property
    def state(self) -> str:
        if self._is_ready:
            return "running"
        if self._starting is not None:
            return "starting"
        return "back-off" if time.monotonic() < self._not_before_s else "idle"

    @property
    def is_idle(self) -> bool:
        return self._is_ready and not self.router.is_busy

    @property
    def is_unused(self) -> bool:
        has_work = self.child or self.streams or self.router.calls
        return not has_work and self.state == "idle"

    # Clients

    def add_session(self, session: str) -> None:
        self.router.add_session(session)
        self.streams[session] = Exchange()

    def remove_session(self, session: str) -> None:
        if (stream := self.streams.pop(session, None)) is not None:
            stream.close()
        self._deliver(self.router.remove_session(session))

    def submit(self, session: str, owner: str, message: Message) -> Exchange:
        """A request: its response, and what belongs to it, arrives in the exchange."""
        self.usage.calls += 1
        self.usage.used_s = time.time()
        exchange = Exchange()
        if (found := self._find_known(message)) is not None:
            exchange.put(found, is_last=True)
            return exchange
        number, outputs = self.router.request(session, owner, message)
        exchange.number = number
        self._exchanges[number] = exchange
        if message["method"] in LISTS:
            self._listed[number] = message
        self._deliver(outputs)
        return exchange

    def _find_known(self, message: Message) -> Message | None:
        """A list of the catalogue, while no process runs."""
        if self._is_ready or self.router.is_modern:
            return None
        found = self.catalogue.find_list(message["method"], params_of(message))
        return None if found is None else {"jsonrpc": "2.0", "id": message["id"], "result": found}

    def notify(self, session: str, message: Message) -> None:
        self._deliver(self.router.notify(session, message))

    def answer(self, session: str, message: Message) -> None:
        self._deliver(self.router.answer(session, message))

    def cancel(self, exchange: Exchange) -> None:
        """The client has gone before its response."""
        if not exchange.is_ended:
            self._deliver(self.router.cancel(exchange.number, "the client disconnected"))

    # Messages

    def _deliver(self, outputs: list[Output]) -> None:
        for output in outputs:
            if isinstance(output, ToServer):
                self._send(output.message)
            elif isinstance(output, ToCall):
                self._deliver_to_call(output)
            elif (stream := self.streams.get(output.session)) is not None:
                stream.put(output.message, is_last=False)

    def _deliver_to_call(self, output: ToCall) -> None:
        if (own := self._own.pop(output.call, None)) is not None:
            if not own.done():
                own.set_result(output.message)
            return
        if (exchange := self._exchanges.get(output.call)) is None:
            return
        exchange.put(output.message, is_last=output.is_last)
        if output.is_last:
            del self._exchanges[output.call]
            request = self._listed.pop(output.call, None)
            if request is not None and "result" in output.message:
                method, params = request["method"], params_of(request)
                self.catalogue.store_list(method, params, output.message["result"])
            if output.call in self.router.calls:  # cancelled, and the server still has it
                loop = asyncio.get_running_loop()
                loop.call_later(CANCEL_S, self._release, output.call)

    def _release(self, number: int) -> None:
        """The server has not answered a call that its client gave up: does it answer at all?"""
        if (child := self.child) is not None and self._is_ready and not self._is_checking:
            self._is_checking = True
            self._spawn_task(self._check(child))
        self._deliver(self.router.release(number))

    async def _check(self, child: ServerProcess) -> None:
        meta = {"_meta": self.meta()} if self.router.is_modern else None
        method = "server/discover" if self.router.is_modern else "ping"
        try:
            async with asyncio.timeout(ALIVE_S):
                await self.ask(method, meta)
        except TimeoutError:
            child.abort(f"it did not answer a {method} within {ALIVE_S:.0f} s")
        finally:
            self._is_checking = False

    def _send(self, message: Message) -> None:
        if self._is_ready and self.child is not None:
            self.child.send(message)
            return
        if "method" in message and "id" in message:
            self._outbox.append(message)
            self._start_soon()

    def _receive_from(self, child: ServerProcess, message: Message) -> None:
        """A process that is being stopped is no longer heard."""
        if child is not self.child:
            return
        method = message.get("method", "")
        if method.endswith(LIST_CHANGED):
            self.catalogue.drop_lists()
            self._annotated = None
        asked = self.router.asks
        self._deliver(self.router.receive(message))
        if self.router.asks and not asked:
            self.catalogue.store_asks()

    # The process

    async def open(self) -> dict[str, Any]:
        """The result of `initialize`, from the catalogue or from the server. ServerError."""
        if self.opened is None:
            await self.start()
        assert self.opened is not None
        return self.opened

    async def ask(self, method: str, params: dict[str, Any] | None = None) -> Message:
        """A request of the gateway itself, to a server that runs."""
        number, output = self.router.own_request(method, params)
        future: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._own[number] = future
        assert isinstance(output, ToServer)
        assert self.child is not None
        self.child.send(output.message)
        return await future

    async def find_annotated(self, tool: str, meta: dict[str, Any]) -> list[Annotated]:
        """The parameters of a tool that headers repeat. A server that does not list its tools has
        none.
        """
        if self._annotated is None:
            found = await self._list_tools({**meta, PROGRESS_TOKEN: None})
            self._annotated = {
                str(one.get("name")): find_annotated(one.get("inputSchema"))
                for one in found if isinstance(one, dict)
            }  # fmt: skip
        return self._annotated.get(tool, [])

    async def _list_tools(self, meta: dict[str, Any]) -> list[Any]:
        tools: list[Any] = []
        params: dict[str, Any] = {"_meta": {k: v for k, v in meta.items() if v is not None}}
        for _page in range(MOST_PAGES):
            try:
                async with asyncio.timeout(LIST_S):
                    answer = await self.ask("tools/list", params)
            except TimeoutError:
                return tools
            result = answer.get("result")
            if not isinstance(result, dict) or not isinstance(result.get("tools"), list):
                return tools
            tools += result["tools"]
            if not result.get("nextCursor"):
                return tools
            params = {**params, "cursor": result["nextCursor"]}
        return tools

    def _spawn_task(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def start(self) -> None:
        """ServerError, or LegacyOnly."""
        if not self._is_ready:
            await asyncio.shield(self._start_soon())

    def _start_soon(self) -> "asyncio.Task[None]":
        """Callers at the same time start one process."""
        if self._starting is None:
            self._starting = asyncio.create_task(self._start_or_fail())
            self._starting.add_done_callback(self._forget_start)
        return self._starting

    async def _start_or_fail(self) -> None:
        try:
            await self._start_once()
        except (ServerError, LegacyOnly) as error:
            self._outbox.clear()
            self._deliver(self.router.fail(str(error), with_waiting=True))
            raise

    def _forget_start(self, task: "asyncio.Task[None]") -> None:
        self._starting = None
        if not task.cancelled():
            task.exception()

    async def _start_once(self) -> None:
        wait_s = self._not_before_s - time.monotonic()
        if wait_s > PATIENCE_S:
            raise ServerError(
                f"{self.launch.name} failed {self._failures} times and starts again in "
                f"{wait_s:.0f} s: {self.usage.last_error}"
            )
        await asyncio.sleep(max(wait_s, 0.0))
        child = ServerProcess(
            self.launch,
            lambda message: self._receive_from(child, message),
            lambda why: self._on_end(child, why),
        )
        self.child = child
        try:
            await child.start(self._fleet, new_id())
            self._on_start()
            async with asyncio.timeout(START_S):
                await self._introduce()
        except OSError as error:
            self.child = None
            raise self._fail(f"cannot start {self.launch.argv[0]}: {error.strerror}") from None
        except TimeoutError:
            child.kill()
            raise self._fail(f"it did not answer within {START_S:.0f} s") from None
        self._is_ready = True
        self.usage.started_s = time.time()
        outbox, self._outbox = self._outbox, []
        for message in outbox:
            self._send(message)
        self._deliver(self.router.restart())

    async def _introduce(self) -> None:
        if self.opening.is_modern:
            await self._discover()
            return
        answer = await self.ask("initialize", {
            "protocolVersion": LATEST_LEGACY, "capabilities": self.opening.capabilities,
            "clientInfo": self.opening.client_info,
        })  # fmt: skip
        if not isinstance(answer.get("result"), dict):
            raise self._fail(f"it refused to initialize: {describe(answer)}")
        self.opened = answer["result"]
        self.catalogue.store_opening(answer["result"])
        assert self.child is not None
        self.child.send(make_notification("notifications/initialized"))

    async def _discover(self) -> None:
        """A server of the older era refuses the first request, or does not answer it."""
        answer = await self.ask("server/discover", {"_meta": self.meta()})
        if not isinstance(answer.get("result"), dict):
            self.catalogue.store_legacy_only()
            self._spawn_task(self.stop())
            raise LegacyOnly(f"it has no protocol {MODERN_VERSIONS[0]}: {describe(answer)}")
        self.opened = answer["result"]
        self.catalogue.store_opening(answer["result"])

    def meta(self) -> dict[str, Any]:
        return {
            VERSION_META: MODERN_VERSIONS[0], CAPABILITIES_META: {},
            INFO_META: self.opening.client_info,
        }  # fmt: skip

    def _fail(self, why: str) -> ServerError:
        self._failures += 1
        delay_s = back_off_s(self._failures, FIRST_BACK_OFF_S, MOST_BACK_OFF_S)
        self._not_before_s = time.monotonic() + delay_s
        self.usage.last_error = why
        self._log(f"{self.launch.name}: {why}")
        return ServerError(f"MCP server {self.launch.name}: {why}")

    def _on_end(self, child: ServerProcess, why: str) -> None:
        """The process has ended by itself: what it has gets an error at once."""
        if child is not self.child:
            return
        was_ready, self._is_ready, self._annotated = self._is_ready, False, None
        for future in self._own.values():
            if not future.done():
                future.set_result({"error": {"message": why}})
        self._own.clear()
        if not was_ready:
            return
        if time.time() - self.usage.started_s > HEALTHY_S:
            self._failures = 0
        self.usage.restarts += 1
        error = self._fail(why)
        self._deliver(self.router.fail(str(error)))
        if self.router.is_busy:
            self._start_soon()

    def read_used(self) -> int | None:
        """None while there is no process."""
        if self.child is None or self.child.pen is None:
            return None
        try:
            self.used_bytes = self.child.pen.read().used_bytes
        except OSError:
            return None
        return self.used_bytes

    def forget(self) -> None:
        """What the server said before may be wrong now; failures count from the start."""
        self.opened, self._failures, self._not_before_s = None, 0, 0.0
        self.catalogue.drop()

    def stop_soon(self) -> None:
        self._spawn_task(self.stop())

    async def stop(self) -> None:
        """The next message starts the server again."""
        child, self.child = self.child, None
        self._is_ready, self._annotated = False, None
        self.used_bytes, self.samples = 0, IdleSamples()
        if child is not None:
            self._deliver(self.router.fail(f"MCP server {self.launch.name} was stopped"))
            await child.stop()


def describe(answer: Message) -> str:
    error = answer.get("error")
    return str(error.get("message", error)) if isinstance(error, dict) else str(answer)[:200]
