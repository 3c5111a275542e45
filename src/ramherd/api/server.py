"""The servers of this process, one for each listener, so that the port cannot starve the socket;
and the lifeline to the service, which is sent a byte each second: a process that hangs is noticed.
"""

import asyncio
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from starlette.types import ASGIApp
from uvicorn import Config, Server

from ramherd.api.h11_protocol import LimitedProtocol
from ramherd.api.listener import Listener
from ramherd.api.streams import is_set_within
from ramherd.core.api_version import HEADERS

BEAT_S = 1.0
# What is being answered when the service ends may take so long; streams end at once.
GRACE_S = 2
IDLE_S = 30


class ListenerServer(Server):
    """Signals are for the service: the lifeline ends this process."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def make_server(application: ASGIApp, listener: Listener) -> Server:
    config = Config(
        application, http=partial(LimitedProtocol, listener),  # type: ignore[arg-type]
        loop="asyncio", ws="none", lifespan="off", interface="asgi3", log_config=None,
        access_log=False, proxy_headers=False, server_header=False, headers=list(HEADERS.items()),
        timeout_keep_alive=IDLE_S, timeout_graceful_shutdown=GRACE_S,
    )  # fmt: skip
    return ListenerServer(config)


async def serve(
    application: ASGIApp, listeners: Sequence[Listener], lifeline: int,
    on_end: Callable[[], None],
) -> None:  # fmt: skip
    """Until the other end of the lifeline is closed."""
    servers = [make_server(application, one) for one in listeners]
    serving = [
        asyncio.create_task(server.serve(sockets=[one.socket]))
        for server, one in zip(servers, listeners, strict=True)
    ]
    ended = asyncio.Event()
    asyncio.get_running_loop().add_reader(lifeline, ended.set)
    while not all(server.started for server in servers):
        await asyncio.sleep(0.01)
    send(lifeline, b"r")
    while not ended.is_set():
        send(lifeline, b"h")
        await is_set_within(ended, BEAT_S)
    on_end()
    for server in servers:
        server.should_exit = True
    await asyncio.gather(*serving)


def send(lifeline: int, message: bytes) -> None:
    try:
        os.write(lifeline, message)
    except BlockingIOError:  # the service has not read the last ones yet
        pass
    except ConnectionError:  # it is gone, and reads the store when it starts again
        pass
