"""Who may connect: the limits of the API's protocol, and a token for each client."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from ramherd.api.auth import check_browser
from ramherd.api.connection_limits import ConnectionLimits
from ramherd.api.listener import Listener
from ramherd.api.request_head import HttpError, RequestHead
from ramherd.gateway.gateway import KnownClient
from ramherd.store.mcp_clients import hash_token

Find = Callable[[str], KnownClient | None]


class GatewayProtocol(ConnectionLimits, HttpToolsProtocol):  # type: ignore[misc]
    """Passes the client of a request to the application, and tells it when a client disconnects:
    a task for each request that waits for that would cost more than the rest of the call.
    """

    def __init__(self, listener: Listener, **given: Any) -> None:
        super().__init__(listener, **given)
        self.app_state = dict(self.app_state)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._is_busy and (on_lost := self.scope["state"].get("on_lost")) is not None:
            on_lost()
        super().connection_lost(exc)


@dataclass(eq=False)
class GatewayListener(Listener):
    """On a port. `find` returns the client of a token's hash."""

    find: Find = lambda _hash: None

    def admit(self, connection: ConnectionLimits, head: RequestHead) -> None:
        check_browser(head.headers, self.port)
        client = self.find_client(head)
        if client is None:
            raise HttpError(401, "no or a wrong token", hint="Authorization: Bearer TOKEN")
        connection.app_state["client"] = client
        self.strangers.pop(connection, None)
        self.known.add(connection)

    def find_client(self, head: RequestHead) -> KnownClient | None:
        scheme, _, token = head.headers.get("authorization", "").partition(" ")
        return self.find(hash_token(token)) if scheme.lower() == "bearer" and token else None
