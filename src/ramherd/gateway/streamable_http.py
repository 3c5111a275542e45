"""Streamable HTTP for `/mcp/NAME`: protocol 2025-11-25 and earlier with sessions, and 2026-07-28
without. The version header of a request decides which of the two it is.

A response is JSON if its first message is the last one too; otherwise, and after ten seconds, it is
a stream of events with a comment now and then: the HTTP client of Node gives up on a silent
response after five minutes.
"""

import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import unquote

from ramherd.gateway.gateway import Gateway, KnownClient, McpSession, NoServer
from ramherd.gateway.protocol.envelope import (
    STATUS,
    VERSION_HEADER,
    Headers,
    Refused,
    check_parameters,
    check_request,
    check_version,
)
from ramherd.gateway.protocol.jsonrpc import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    LATEST_LEGACY,
    LEGACY_VERSIONS,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    SERVER_FAILED,
    Message,
    is_request,
    make_error,
    make_result,
    params_of,
)
from ramherd.gateway.upstream import Exchange, LegacyOnly, ServerError, Upstream

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

SSE_AFTER_S, KEEP_ALIVE_S = 10.0, 15.0
MOST_BODY_BYTES = 16 << 20
SESSION_HEADER = "mcp-session-id"
JSON_TYPE = (b"content-type", b"application/json")
EVENT_HEADERS = [
    (b"content-type", b"text/event-stream"), (b"cache-control", b"no-cache, no-transform"),
]  # fmt: skip


class Reply(Exception):
    """An answer that ends the request."""

    def __init__(self, status: int, body: Message | None = None, **headers: str) -> None:
        super().__init__(status)
        self.status, self.body = status, body
        self.headers = [
            (name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()
        ]


class GatewayApp:
    """The ASGI application."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self._answer(scope, receive, send)
        except Reply as reply:
            await send_reply(send, reply)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        client: KnownClient = scope["state"]["client"]
        name = find_name(scope["path"])
        headers = [decode_header(*pair) for pair in scope["headers"]]
        values = dict(headers)
        version = values.get(VERSION_HEADER, LATEST_LEGACY)
        try:
            server = self._gateway.find_server(name, client)
        except NoServer as error:
            raise Reply(404, make_error(None, INVALID_REQUEST, str(error))) from None
        if version not in LEGACY_VERSIONS:
            if scope["method"] != "POST":
                raise Reply(405, allow="POST")
            modern = ModernRequest(self._gateway, client, server.name, headers)
            await modern.answer(scope, await read_message(receive), send)
            return
        legacy = LegacyRequest(self._gateway, client, server.name, values)
        if scope["method"] == "POST":
            await legacy.answer(scope, await read_message(receive), send)
        elif scope["method"] == "GET":
            await legacy.stream(scope, send)
        elif scope["method"] == "DELETE":
            legacy.end()
        else:
            raise Reply(405, allow="GET, POST, DELETE")


class LegacyRequest:
    """With `initialize` and sessions."""

    def __init__(
        self, gateway: Gateway, client: KnownClient, server: str, headers: dict[str, str]
    ) -> None:
        self._gateway, self._client, self._server = gateway, client, server
        self._headers = headers

    async def answer(self, scope: Scope, message: Message, send: Send) -> None:
        if message.get("method") == "initialize" and "id" in message:
            await self._initialize(message)
        session = self._find_session()
        upstream = session.upstream
        if is_request(message):
            exchange = upstream.submit(session.id, self._client.token_hash, message)
            await respond(scope, send, upstream, exchange)
        elif "method" in message:
            upstream.notify(session.id, message)
            raise Reply(202)
        else:
            upstream.answer(session.id, message)
            raise Reply(202)

    async def _initialize(self, message: Message) -> None:
        params = params_of(message)
        capabilities = params.get("capabilities")
        if not isinstance(capabilities, dict):
            raise Reply(400, make_error(message["id"], INVALID_PARAMS, "no capabilities"))
        server = self._gateway.find_server(self._server, self._client)
        upstream = self._gateway.find_upstream(
            server, self._client, is_modern=False, capabilities=capabilities,
            client_info=params.get("clientInfo"),
        )  # fmt: skip
        try:
            opened = await upstream.open()
        except ServerError as error:
            failure = make_error(message["id"], SERVER_FAILED, str(error))
            raise Reply(200, failure) from None
        session = self._gateway.add_session(self._client, self._server, upstream)
        version = choose_version(params.get("protocolVersion"), opened.get("protocolVersion"))
        result = make_result(message["id"], {**opened, "protocolVersion": version})
        raise Reply(200, result, **{SESSION_HEADER: session.id})

    async def stream(self, scope: Scope, send: Send) -> None:
        """Messages that belong to no request. The newest stream of a session gets them."""
        session = self._find_session()
        if "text/event-stream" not in self._headers.get("accept", ""):
            raise Reply(406)
        session.stream += 1
        number, exchange = session.stream, session.upstream.streams[session.id]
        exchange.wake()
        await start_events(send)

        def leave() -> None:
            session.stream += 1
            exchange.wake()

        scope["state"]["on_lost"] = leave
        while not exchange.is_ended and session.stream == number:
            frame = await exchange.next(KEEP_ALIVE_S)
            await send_event(send, None if frame is None else frame.data)
        await send({"type": "http.response.body", "body": b""})

    def end(self) -> None:
        self._gateway.remove_session(self._find_session())
        raise Reply(204)

    def _find_session(self) -> McpSession:
        """404 makes a client initialise again."""
        id_ = self._headers.get(SESSION_HEADER)
        if id_ is None:
            error = make_error(None, INVALID_REQUEST, "no Mcp-Session-Id: initialize first")
            raise Reply(400, error)
        session = self._gateway.find_session(id_, self._client, self._server)
        if session is None:
            raise Reply(404, make_error(None, INVALID_REQUEST, "no such session"))
        return session


class ModernRequest:
    """Each request for itself."""

    def __init__(
        self, gateway: Gateway, client: KnownClient, server: str, headers: Headers
    ) -> None:
        self._gateway, self._client, self._server = gateway, client, server
        self._headers = headers

    async def answer(self, scope: Scope, message: Message, send: Send) -> None:
        if not is_request(message):
            self._acknowledge(message)
        id_ = message["id"]
        if message["method"] == "initialize":
            raise refusal(id_, Refused(METHOD_NOT_FOUND, "initialize is of an older protocol"))
        if (refused := check_request(message, self._headers)) is not None:
            raise refusal(id_, refused)
        server = self._gateway.find_server(self._server, self._client)
        upstream = self._gateway.find_upstream(
            server, self._client, is_modern=True, capabilities={}
        )
        try:
            if upstream.catalogue.is_legacy_only:
                raise LegacyOnly("it has an older protocol only")
            await upstream.start()
        except LegacyOnly as error:
            raise refusal(id_, Refused(METHOD_NOT_FOUND, str(error))) from None
        except ServerError as error:
            raise Reply(200, make_error(id_, SERVER_FAILED, str(error))) from None
        if message["method"] == "tools/call":
            await self._check_parameters(upstream, message)
        exchange = upstream.submit(new_session(), self._client.token_hash, message)
        await respond(scope, send, upstream, exchange)

    def _acknowledge(self, message: Message) -> None:
        """A client cancels by closing its response: no notification has an effect."""
        if "method" not in message:
            raise Reply(400, make_error(None, INVALID_REQUEST, "the body is no request"))
        refused = check_version(dict(self._headers)[VERSION_HEADER])
        if refused is not None:
            raise refusal(None, refused)
        raise Reply(202)

    async def _check_parameters(self, upstream: Upstream, message: Message) -> None:
        params = params_of(message)
        annotated = await upstream.find_annotated(str(params.get("name")), params["_meta"])
        refused = check_parameters(annotated, params.get("arguments"), self._headers)
        if refused is not None:
            raise refusal(message["id"], refused)


def new_session() -> str:
    """Requests of the newer era belong to no session: each is a client of its own."""
    from ramherd.system.ids import new_id  # noqa: PLC0415

    return new_id()


def refusal(id_: Any, refused: Refused) -> Reply:
    body = make_error(id_, refused.code, refused.message, refused.data)
    return Reply(STATUS.get(refused.code, 200), body)


def decode_header(name: bytes, value: bytes) -> tuple[str, str]:
    """httptools leaves the white space at the end of a value."""
    return name.decode("latin-1"), value.decode("latin-1").strip(" \t")


def find_name(path: str) -> str:
    root, mcp, *rest = path.split("/")
    if root or mcp != "mcp" or len(rest) != 1 or not rest[0]:
        raise Reply(404, make_error(None, INVALID_REQUEST, "the path is /mcp/NAME"))
    return unquote(rest[0])


def choose_version(asked: Any, offered: Any) -> str:
    """The older of the two, if the gateway knows it: versions are dates."""
    known = [one for one in (asked, offered) if one in LEGACY_VERSIONS]
    return min(known) if asked in LEGACY_VERSIONS else str(offered or LATEST_LEGACY)


async def read_message(receive: Receive) -> Message:
    """One JSON-RPC message; batches are of a protocol that nobody speaks any more."""
    parts, size = [], 0
    while True:
        event = await receive()
        if event["type"] == "http.disconnect":
            raise Reply(400)
        parts.append(event.get("body", b""))
        size += len(parts[-1])
        if size > MOST_BODY_BYTES:
            raise Reply(413)
        if not event.get("more_body"):
            break
    try:
        message = json.loads(b"".join(parts))
    except (ValueError, RecursionError):
        raise Reply(400, make_error(None, PARSE_ERROR, "the body is no JSON")) from None
    if not is_message(message):
        raise Reply(400, make_error(None, INVALID_REQUEST, "the body is no JSON-RPC message"))
    return message  # type: ignore[no-any-return]


def is_message(value: Any) -> bool:
    if not isinstance(value, dict) or value.get("jsonrpc") != "2.0":
        return False
    id_ = value.get("id", "")
    has_id = isinstance(id_, str | int | float) and not isinstance(id_, bool)
    if "method" in value:
        return has_id and isinstance(value["method"], str)
    return "id" in value and has_id and ("result" in value or "error" in value)


async def respond(scope: Scope, send: Send, upstream: Upstream, exchange: Exchange) -> None:
    scope["state"]["on_lost"] = lambda: upstream.cancel(exchange)
    frame = await exchange.next(SSE_AFTER_S)
    if frame is not None and frame.is_last:
        status = STATUS.get(frame.error or 0, 200) if upstream.router.is_modern else 200
        await send_json(send, status, frame.data)
        return
    await start_events(send)
    while frame is not None or not exchange.is_ended:
        await send_event(send, None if frame is None else frame.data)
        if frame is not None and frame.is_last:
            break
        frame = await exchange.next(KEEP_ALIVE_S)
    await send({"type": "http.response.body", "body": b""})


async def send_reply(send: Send, reply: Reply) -> None:
    body = b"" if reply.body is None else json.dumps(reply.body).encode()
    headers = [*reply.headers, (b"content-length", str(len(body)).encode())]
    if body:
        headers.append(JSON_TYPE)
    await send({"type": "http.response.start", "status": reply.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def send_json(send: Send, status: int, body: bytes) -> None:
    headers = [JSON_TYPE, (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def start_events(send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": EVENT_HEADERS})
    await send({"type": "http.response.body", "body": b": open\n\n", "more_body": True})


async def send_event(send: Send, data: bytes | None) -> None:
    """None is a comment, so that the connection stays."""
    body = b": wait\n\n" if data is None else b"event: message\ndata: " + data + b"\n\n"
    await send({"type": "http.response.body", "body": body, "more_body": True})
