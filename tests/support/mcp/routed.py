"""A server and clients around a Router, without processes: each message records whose it is, so
that a message in the wrong place shows.
"""

from dataclasses import dataclass, field
from typing import Any

from ramherd.gateway.protocol.jsonrpc import Message, make_notification, make_request, make_result
from ramherd.gateway.protocol.router import Output, Router, ToCall, ToServer


@dataclass
class Scene:
    """`got` are the messages of each client: for a response with the client's request id, and of
    the session's own stream.
    """

    router: Router
    # What the server has been sent and has not answered.
    open: dict[int, Message] = field(default_factory=dict)
    to_server: list[Message] = field(default_factory=list)
    got: dict[str, list[tuple[Any, Message]]] = field(default_factory=dict)
    calls: dict[int, tuple[str, Any]] = field(default_factory=dict)
    ended: set[int] = field(default_factory=set)

    def join(self, *clients: str) -> None:
        for client in clients:
            self.router.add_session(client)
            self.got[client] = []

    def apply(self, outputs: list[Output]) -> None:
        for output in outputs:
            if isinstance(output, ToServer):
                self.to_server.append(output.message)
                if "method" in output.message and "id" in output.message:
                    self.open[output.message["id"]] = output.message
            elif isinstance(output, ToCall):
                if output.call not in self.calls:
                    continue  # of the gateway itself
                client, id_ = self.calls[output.call]
                assert output.call not in self.ended, "a message after the last one"
                if output.is_last:
                    self.ended.add(output.call)
                self.got[client].append((id_, output.message))
            elif output.session in self.got:
                self.got[output.session].append((None, output.message))

    def ask(self, client: str, id_: Any, method: str = "tools/call", /, **params: Any) -> int:
        number, outputs = self.router.request(client, client, make_request(id_, method, params))
        self.calls[number] = (client, id_)
        self.apply(outputs)
        return number

    def tell(self, client: str, method: str, /, **params: Any) -> None:
        self.apply(self.router.notify(client, make_notification(method, params)))

    def reply(self, client: str, message: Message) -> None:
        self.apply(self.router.answer(client, message))

    def serve(self, number: int, result: Any) -> None:
        """The server answers a request."""
        self.open.pop(number, None)
        self.apply(self.router.receive(make_result(number, result)))

    def say(self, message: Message) -> None:
        self.apply(self.router.receive(message))
