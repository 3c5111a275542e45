"""A uvicorn server for one listener, with the limits of `connection_limits.py`."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from uvicorn import Config, Server

from ramherd.api.connection_limits import ConnectionLimits
from ramherd.api.listener import Listener
from ramherd.system.unix_socket import listen

# When the process ends, requests in progress may take this long.
GRACE_S = 2
IDLE_S = 30


class ListenerServer(Server):
    """Signals are for the caller, which decides when the server ends."""

    def __init__(
        self, application: Any, listener: Listener, protocol: type[ConnectionLimits],
        headers: Mapping[str, str],
    ) -> None:  # fmt: skip
        config = Config(
            application, http=partial(protocol, listener),  # type: ignore[arg-type]
            loop="asyncio", ws="none", lifespan="off", interface="asgi3", log_config=None,
            access_log=False, proxy_headers=False, server_header=False,
            headers=list(headers.items()), timeout_keep_alive=IDLE_S,
            timeout_graceful_shutdown=GRACE_S,
        )  # fmt: skip
        super().__init__(config)
        self.listener = listener

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def replace_socket(self, path: Path) -> None:
        """Connections of the old socket go on."""
        old, self.listener.socket = self.servers, listen(path)
        await self.startup(sockets=[self.listener.socket])
        for server in old:
            server.close()
