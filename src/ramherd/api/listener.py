"""A listening socket, and its connections that have not sent a valid request yet."""

import socket
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from ramherd.api.auth import check_browser, check_token, make_token
from ramherd.api.request_head import HttpError, RequestHead
from ramherd.core.errors import UsageError
from ramherd.system.unix_socket import listen

if TYPE_CHECKING:
    from ramherd.api.connection_limits import ConnectionLimits

# Every program on the machine can connect to the port, only the user to the socket.
MOST_STRANGERS = 16
MOST_CONNECTIONS = 512


@dataclass(eq=False)
class Listener:
    """On a port, requests need the token."""

    socket: socket.socket
    port: int | None = None
    token: str = ""
    # The oldest first.
    strangers: "dict[ConnectionLimits, None]" = field(default_factory=dict)
    known: "set[ConnectionLimits]" = field(default_factory=set)
    most_strangers: int = MOST_STRANGERS
    most_connections: int = MOST_CONNECTIONS

    def add(self, connection: "ConnectionLimits") -> None:
        """A new connection replaces the oldest one that sent no valid request: a client that holds
        connections open and sends nothing keeps no other client out.
        """
        if len(self.known) >= self.most_connections:
            connection.refuse(HttpError(429, f"more than {self.most_connections} connections"))
            return
        self.strangers[connection] = None
        most = self.most_connections if self.port is None else self.most_strangers
        if len(self.strangers) > most:
            oldest = next(iter(self.strangers))
            oldest.refuse(HttpError(429, f"more than {most} connections without a request"))
            self.remove(oldest)

    def admit(self, connection: "ConnectionLimits", head: RequestHead) -> None:
        """Raises HttpError unless the request is allowed."""
        check_browser(head.headers, self.port)
        if self.port is not None:
            check_token(head.headers, self.token)
        self.strangers.pop(connection, None)
        self.known.add(connection)

    def remove(self, connection: "ConnectionLimits") -> None:
        self.strangers.pop(connection, None)
        self.known.discard(connection)


def listen_for_user(runtime: Path) -> Listener:
    return Listener(listen(runtime / "api.sock"))


def make_tcp_socket() -> socket.socket:
    """With the protocol's number: only then asyncio sets TCP_NODELAY for each connection. Without
    it, a response in two parts takes 40 ms more.
    """
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    return made


def listen_on_loopback(port: int, runtime: Path) -> Listener:
    made = make_tcp_socket()
    try:
        made.bind(("127.0.0.1", port))
    except OSError as error:
        made.close()
        raise UsageError(f"cannot listen on 127.0.0.1:{port}: {error.strerror}") from None
    made.listen(128)
    return Listener(made, made.getsockname()[1], make_token(runtime / "token"))
