"""The limits of a connection, with a clock and a transport of the test."""

import asyncio
import json
from collections.abc import Callable, Coroutine
from typing import Any
from unittest.mock import Mock

import pytest
from uvicorn import Config
from uvicorn.server import ServerState

from ramherd.api.connection_limits import BODY_S, HEAD_S, UNREAD_S
from ramherd.api.h11_protocol import LimitedProtocol
from ramherd.api.listener import MOST_CONNECTIONS, MOST_STRANGERS, Listener
from ramherd.api.request_head import HttpError

GET = b"GET /v1/herds HTTP/1.1\r\nHost: 127.0.0.1:80\r\nAuthorization: Bearer secret\r\n\r\n"
POST = GET.replace(b"GET", b"POST").replace(b"\r\n\r\n", b"\r\nContent-Length: 10\r\n\r\n")


class Timer:
    def __init__(self, seconds: float, function: Callable[..., None], args: tuple[Any, ...]):
        self.seconds, self.function, self.args = seconds, function, args
        self.is_cancelled = False

    def cancel(self) -> None:
        self.is_cancelled = True


class Loop:
    """Time passes when a test says so; requests are counted, not answered."""

    def __init__(self) -> None:
        self.timers: list[Timer] = []
        self.requests = 0

    def call_later(self, seconds: float, function: Callable[..., None], *args: Any) -> Timer:
        self.timers.append(Timer(seconds, function, args))
        return self.timers[-1]

    def create_task(self, work: Coroutine[Any, Any, None]) -> Mock:
        work.close()
        self.requests += 1
        return Mock()

    def pass_time(self, seconds: float) -> None:
        for timer in [one for one in self.timers if not one.is_cancelled]:
            if timer.seconds <= seconds:
                timer.cancel()
                timer.function(*timer.args)


class Transport(asyncio.Transport):
    def __init__(self) -> None:
        super().__init__()
        self.sent = b""
        self.is_closed = self.is_reading_paused = False

    def write(self, data: Any) -> None:
        self.sent += bytes(data)

    def close(self) -> None:
        self.is_closed = True

    abort = close

    def is_closing(self) -> bool:
        return self.is_closed

    def pause_reading(self) -> None:
        self.is_reading_paused = True

    def resume_reading(self) -> None:
        self.is_reading_paused = False

    @property
    def status(self) -> int:
        return int(self.sent.split()[1]) if self.sent else 0


async def application(_scope: Any, _receive: Any, _send: Any) -> None:
    """Never called."""


class Connected:
    def __init__(self, listener: Listener) -> None:
        self.loop, self.transport = Loop(), Transport()
        config = Config(application, ws="none", lifespan="off", log_config=None)
        config.load()
        self.protocol = LimitedProtocol(
            listener, config=config, server_state=ServerState(), app_state={},
            _loop=self.loop,
        )  # fmt: skip
        self.protocol.connection_made(self.transport)

    def send(self, data: bytes) -> None:
        self.protocol.data_received(data)


@pytest.fixture
def port() -> Listener:
    return Listener(None, 80, "secret")  # type: ignore[arg-type]


@pytest.fixture
def user() -> Listener:
    return Listener(None)  # type: ignore[arg-type]


def test_a_head_has_ten_seconds(user: Listener) -> None:
    """However many bytes of it come."""
    link = Connected(user)
    link.send(GET[:20])
    link.loop.pass_time(HEAD_S)

    assert (link.transport.status, link.transport.is_closed) == (408, True)
    assert b"took longer than 10 s" in link.transport.sent


def test_a_body_has_a_minute(user: Listener) -> None:
    """From the end of its head."""
    link = Connected(user)
    link.send(POST + b"12345")
    link.loop.pass_time(HEAD_S)
    assert not link.transport.is_closed
    link.loop.pass_time(BODY_S)
    assert (link.transport.status, link.transport.is_closed) == (408, True)


def test_a_whole_request_has_no_deadline(user: Listener) -> None:
    """The application takes the time that it needs."""
    link = Connected(user)
    link.send(POST + b"1234567890")
    link.loop.pass_time(BODY_S)

    assert (link.loop.requests, link.transport.is_closed) == (1, False)


def test_a_client_that_does_not_read_is_dropped(user: Listener) -> None:
    """Unless it reads again in time."""
    link = Connected(user)
    link.send(GET)
    link.protocol.pause_writing()
    link.protocol.resume_writing()
    link.loop.pass_time(UNREAD_S)
    assert not link.transport.is_closed
    link.protocol.pause_writing()
    link.loop.pass_time(UNREAD_S)
    assert link.transport.is_closed


def test_requests_of_one_connection_are_passed_on_one_by_one(user: Listener) -> None:
    """What comes before the response waits in a bounded buffer."""
    link = Connected(user)
    link.send(GET + GET)
    assert link.loop.requests == 1
    link.send(b"x" * 20_000)
    assert link.transport.is_reading_paused
    assert link.loop.requests == 1


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"GET / HTTP/1.1\r\nA: b\r\n c", 400),
        (b"GET / HTTP/1.1\nHost: a", 400),
        (b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked", 411),
        (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2", 400),
        (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999", 413),
        (b"GET / HTTP/1.1", 400),
        (b"GET / HTTP/2.0\r\nHost: a", 505),
        (b"GET / HTTP/1.1\r\nHost: a\r\nA: " + b"x" * 20_000, 431),
        (b"GET / HTTP/1.1\r\nHost: a" + b"\r\nA: b" * 65, 431),
    ],
)
def test_what_h11_would_read_in_two_ways_never_reaches_it(
    head: bytes, status: int, user: Listener
) -> None:
    """Refused as JSON with the version of the API, and closed."""
    link = Connected(user)
    link.send(head + b"\r\n\r\n")

    assert (link.transport.status, link.loop.requests) == (status, 0)
    fields, _, body = link.transport.sent.partition(b"\r\n\r\n")
    assert b"Ramherd-Api: " in fields
    assert json.loads(body)["error"]
    assert link.transport.is_closed


@pytest.mark.parametrize("size", [1, 7, 50])
def test_a_request_may_come_in_pieces(size: int, user: Listener) -> None:
    """Of any size."""
    link = Connected(user)
    data = POST + b"1234567890"
    for at in range(0, len(data), size):
        link.send(data[at : at + size])
    assert (link.loop.requests, link.transport.sent) == (1, b"")
    assert bytes(link.protocol.cycle.body) == b"1234567890"
    assert not link.protocol.cycle.more_body


@pytest.mark.parametrize(
    ("old", "new", "status"),
    [
        (b"Bearer secret", b"Bearer wrong", 401),
        (b"127.0.0.1:80", b"evil.example", 403),
        (b"\r\n\r\n", b"\r\nOrigin: http://evil.example\r\n\r\n", 403),
    ],
)
def test_on_a_port_strangers_are_refused_before_their_body(
    old: bytes, new: bytes, status: int, port: Listener
) -> None:
    """The application does not see them."""
    link = Connected(port)
    link.send(POST.replace(old, new))
    assert (link.transport.status, link.loop.requests) == (status, 0)


def test_a_port_has_sixteen_connections_without_a_request(port: Listener) -> None:
    """A new one takes the place of the oldest; one that showed the token stays."""
    owner = Connected(port)
    owner.send(GET)
    links = [Connected(port) for _number in range(MOST_STRANGERS)]
    assert not any(link.transport.is_closed for link in links)
    last = Connected(port)

    assert [link.transport.is_closed for link in (owner, last, *links)] == [
        False, False, True, *(False for _link in links[1:]),
    ]  # fmt: skip
    assert links[0].transport.status == 429
    last.send(GET)
    assert last.loop.requests == 1


def test_a_listener_has_a_bound(user: Listener) -> None:
    """For connections that are in use."""
    for _number in range(MOST_CONNECTIONS):
        Connected(user).send(GET)
    refused = Connected(user)
    assert (refused.transport.status, refused.transport.is_closed) == (429, True)
    next(iter(user.known)).connection_lost(None)
    assert not Connected(user).transport.is_closed


def test_a_connection_that_is_refused_twice_is_closed_once(user: Listener) -> None:
    """The second reason comes too late."""
    link = Connected(user)
    link.protocol.refuse(HttpError(400, "first"))
    sent = link.transport.sent
    link.protocol.refuse(HttpError(400, "second"))
    assert link.transport.sent == sent
