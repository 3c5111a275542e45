"""The servers of this process, one for each listener, so that the port cannot starve the socket.

The lifeline to the service: this process sends a byte each second, so that a hang is noticed; the
service sends a line with the runtime directory in which to listen from then on; when the service
closes it, this process ends.
"""

import asyncio
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from ramherd.api.asgi import Api, make_application
from ramherd.api.auth import write_token
from ramherd.api.h11_protocol import LimitedProtocol
from ramherd.api.listener import Listener
from ramherd.api.listener_server import ListenerServer
from ramherd.api.streams import is_set_within
from ramherd.core.api_version import HEADERS

BEAT_S = 1.0


class ApiServers:
    def __init__(self, api: Api, listeners: Sequence[Listener], lifeline: int) -> None:
        self._api = api
        self._lifeline = lifeline
        self._servers = [
            ListenerServer(make_application(api), one, LimitedProtocol, HEADERS)
            for one in listeners
        ]
        self._ended = asyncio.Event()
        self._moving: asyncio.Task[None] | None = None

    async def serve(self) -> None:
        """Serves until the other end of the lifeline is closed."""
        serving = [
            asyncio.create_task(one.serve(sockets=[one.listener.socket])) for one in self._servers
        ]
        asyncio.get_running_loop().add_reader(self._lifeline, self._receive)
        while not all(server.started for server in self._servers):
            await asyncio.sleep(0.01)
        send(self._lifeline, b"r")
        while not self._ended.is_set():
            send(self._lifeline, b"h")
            await is_set_within(self._ended, BEAT_S)
        self._api.streams.close()
        for server in self._servers:
            server.should_exit = True
        await asyncio.gather(*serving)

    def _receive(self) -> None:
        try:
            message = os.read(self._lifeline, 1 << 16)
        except BlockingIOError:
            return
        except ConnectionError:
            message = b""
        if message:
            runtime = Path(os.fsdecode(message.splitlines()[-1]))
            self._moving = asyncio.create_task(self._listen_in(runtime))
        else:
            asyncio.get_running_loop().remove_reader(self._lifeline)
            self._ended.set()

    async def _listen_in(self, runtime: Path) -> None:
        """Listens in a new or changed runtime directory. If that fails, the service asks again."""
        self._api.answers.runtime = runtime
        try:
            for server in self._servers:
                if server.listener.port is None:
                    await server.replace_socket(runtime / "api.sock")
                else:
                    write_token(runtime / "token", server.listener.token)
        except OSError as error:
            print(f"ramherd: cannot listen in {runtime}: {error}", file=sys.stderr, flush=True)
        else:
            send(self._lifeline, b"r")


def send(lifeline: int, message: bytes) -> None:
    try:
        os.write(lifeline, message)
    except BlockingIOError:  # the service has not read the last bytes yet
        pass
    except ConnectionError:  # the service is gone, and reads the store when it starts again
        pass
