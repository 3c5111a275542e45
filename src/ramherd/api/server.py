"""Connections: bytes in, requests to the application, bytes out. One thread, no waiting.

A slow client costs a connection and a bounded buffer, and delays no other client.
"""

import os
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from ramherd.api.auth import check_browser, check_token
from ramherd.api.http import (
    MOST_HEAD_BYTES,
    HttpError,
    Request,
    Response,
    Stream,
    error_response,
    parse_head,
    render_chunk,
    render_head,
)
from ramherd.system.wait import CLOSED, READ, WRITE, Poller

MOST_CONNECTIONS = 128
# How often streams are continued, and how long a silent client is waited for.
STREAM_EVERY_S = 0.2
PATIENCE_S = 30.0
MOST_UNREAD_BYTES = 256 << 10

Application = Callable[[Request], Response]


@dataclass(frozen=True, slots=True)
class Listener:
    """A listening socket; on a port, requests need the token."""

    socket: socket.socket
    port: int | None = None
    token: str = ""


@dataclass
class Connection:
    socket: socket.socket
    listener: Listener
    received_s: float
    inbox: bytearray = field(default_factory=bytearray)
    outbox: bytes = b""
    request: Request | None = None
    stream: Stream | None = None
    chunked: bool = False
    close_after: bool = False
    watched: int = READ

    @property
    def is_answered(self) -> bool:
        return not self.outbox and self.stream is None

    @property
    def has_room(self) -> bool:
        """A client that sends on before it got its answer may send little."""
        return self.is_answered or len(self.inbox) <= MOST_HEAD_BYTES


class Server:
    def __init__(
        self, application: Application, listeners: list[Listener], lifeline: int,
        on_message: Callable[[bytes], None],
    ) -> None:  # fmt: skip
        self._application = application
        self._lifeline, self._on_message = lifeline, on_message
        self._poller = Poller()
        self._listeners: dict[int, Listener] = {}
        self._connections: dict[int, Connection] = {}
        # A stream has more data than was sent.
        self._is_busy = False
        self._poller.add(lifeline)
        for one in listeners:
            self._add(one)

    def replace(self, listener: Listener) -> None:
        """The one on a socket, by another; connections that it accepted go on."""
        for fd, one in list(self._listeners.items()):
            if one.port is None:
                self._poller.remove(fd)
                del self._listeners[fd]
                one.socket.close()
        self._add(listener)

    def _add(self, listener: Listener) -> None:
        listener.socket.setblocking(False)
        self._listeners[listener.socket.fileno()] = listener
        self._poller.add(listener.socket.fileno())

    def serve(self) -> None:
        """Until the other end of the lifeline is closed."""
        while self.turn():
            pass

    def turn(self) -> bool:
        streams = any(one.stream is not None for one in self._connections.values())
        timeout_s = STREAM_EVERY_S if streams else PATIENCE_S if self._connections else -1
        timeout_s = 0 if self._is_busy else timeout_s
        self._is_busy = False
        for fd, events in self._poller.wait(timeout_s):
            if fd == self._lifeline and not self._receive_message():
                return False
            if fd in self._listeners:
                self._accept(self._listeners[fd])
            elif (connection := self._connections.get(fd)) is not None:
                self._serve(connection, events)
        now = time.monotonic()
        for connection in list(self._connections.values()):
            self._advance_or_drop(connection, now)
        return True

    def _receive_message(self) -> bool:
        """False when the service is gone."""
        try:
            message = os.read(self._lifeline, 1 << 16)
        except BlockingIOError:
            return True
        except ConnectionResetError:
            return False
        if message:
            self._on_message(message)
        return bool(message)

    def close(self) -> None:
        for connection in list(self._connections.values()):
            self._drop(connection)
        for one in self._listeners.values():
            one.socket.close()
        self._poller.close()

    def _accept(self, listener: Listener) -> None:
        try:
            accepted, _address = listener.socket.accept()
        except OSError:  # it went away again, or there are no descriptors
            return
        accepted.setblocking(False)
        connection = Connection(accepted, listener, time.monotonic())
        self._connections[accepted.fileno()] = connection
        self._poller.add(accepted.fileno())
        if len(self._connections) > MOST_CONNECTIONS:
            connection.close_after = True
            self._send(connection, error_response(HttpError(429, "too many connections")))
            self._advance(connection)

    def _serve(self, connection: Connection, events: int) -> None:
        if events & (READ | CLOSED):
            try:
                data = connection.socket.recv(1 << 16)
            except BlockingIOError:
                return
            except OSError:
                data = b""
            if not data or not connection.has_room:
                self._drop(connection)
                return
            connection.received_s = time.monotonic()
            connection.inbox += data
        self._advance(connection)

    def _advance(self, connection: Connection) -> None:
        """As many requests as are there, each after the answer to the one before."""
        try:
            while connection.is_answered and self._answer_next(connection):
                self._flush(connection)
            self._flush(connection)
        except OSError:
            self._drop(connection)

    def _answer_next(self, connection: Connection) -> bool:
        """Answer the next request, if all of it is there."""
        if connection.close_after:
            return False
        try:
            if not self._has_request(connection):
                return False
            request, connection.request = connection.request, None
            assert request is not None
            length = request.length
            body = bytes(connection.inbox[:length])
            del connection.inbox[:length]
            connection.close_after = not request.keeps_alive
            connection.chunked = not request.is_http_1_0
            response = self._answer(replace(request, body=body))
        except HttpError as error:
            # Where the next request begins is not known any more.
            connection.close_after = True
            response = error_response(error)
        self._send(connection, response)
        return True

    def _has_request(self, connection: Connection) -> bool:
        if connection.request is None:
            end = connection.inbox.find(b"\r\n\r\n", 0, MOST_HEAD_BYTES + 4)
            if end < 0:
                if len(connection.inbox) > MOST_HEAD_BYTES:
                    raise HttpError(431, f"the head has more than {MOST_HEAD_BYTES} bytes")
                return False
            head = bytes(connection.inbox[:end])
            del connection.inbox[: end + 4]
            connection.request = parse_head(head)
            check(connection.request, connection.listener)
            if connection.request.headers.get("expect", "").lower() == "100-continue":
                connection.outbox += b"HTTP/1.1 100 Continue\r\n\r\n"
        return len(connection.inbox) >= connection.request.length

    def _answer(self, request: Request) -> Response:
        try:
            return self._application(request)
        except HttpError as error:
            return error_response(error)

    def _send(self, connection: Connection, response: Response) -> None:
        chunked = connection.chunked and response.stream is not None
        connection.close_after = connection.close_after or (
            response.stream is not None and not chunked
        )
        connection.stream, connection.chunked = response.stream, chunked
        head = render_head(response, close=connection.close_after, chunked=chunked)
        connection.outbox += head + response.body

    def _advance_or_drop(self, connection: Connection, now: float) -> None:
        """Send more of a stream; drop a client that neither sends nor reads."""
        if connection.socket.fileno() < 0:
            return
        waits = bool(connection.outbox) or connection.stream is None
        if waits and now - connection.received_s >= PATIENCE_S:
            self._drop(connection)
        elif connection.stream is not None and len(connection.outbox) < MOST_UNREAD_BYTES:
            self._send_part(connection, connection.stream)
            self._advance(connection)

    def _send_part(self, connection: Connection, stream: Stream) -> None:
        data = stream()
        self._is_busy = self._is_busy or bool(data)
        if data is None:
            connection.stream = None
            connection.outbox += b"0\r\n\r\n" if connection.chunked else b""
        elif data:
            connection.outbox += render_chunk(data) if connection.chunked else data

    def _flush(self, connection: Connection) -> None:
        try:
            while connection.outbox:
                sent = connection.socket.send(connection.outbox[: 1 << 18])
                connection.outbox = connection.outbox[sent:]
                connection.received_s = time.monotonic()
        except BlockingIOError:
            pass
        if connection.is_answered and connection.close_after:
            self._drop(connection)
            return
        wanted = READ | (WRITE if connection.outbox else 0)
        if wanted != connection.watched:
            connection.watched = wanted
            self._poller.change(connection.socket.fileno(), wanted)

    def _drop(self, connection: Connection) -> None:
        fd = connection.socket.fileno()
        if self._connections.pop(fd, None) is not None:
            self._poller.remove(fd)
            connection.socket.close()


def check(request: Request, listener: Listener) -> None:
    check_browser(request.headers, listener.port)
    if listener.port is not None:
        check_token(request.headers, listener.token)
