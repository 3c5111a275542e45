"""The limits of a connection, around a protocol of uvicorn: how long a client may take to send a
request and to read its response, how much it may send, and which clients are allowed.

Bytes reach uvicorn once the head that they belong to is complete, unambiguous and allowed; the next
request of a connection waits until the last one is answered.
"""

import asyncio
import json
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from ramherd.api.listener import Listener
from ramherd.api.request_head import MOST_HEAD_BYTES, HttpError, parse_head
from ramherd.core.api_version import HEADERS

if TYPE_CHECKING:
    from uvicorn.protocols.http.h11_impl import H11Protocol as Base
else:
    Base = object

HEAD_S = 10.0
BODY_S = 60.0
# The limit for a client that does not read its response.
UNREAD_S = 30.0
END = b"\r\n\r\n"


class ConnectionLimits(Base):
    """For a protocol of uvicorn, which comes after it among the base classes."""

    def __init__(self, listener: Listener, **given: Any) -> None:
        super().__init__(**given)
        self._listener = listener
        self._inbox = bytearray()
        self._body_left = 0
        self._request_timer: asyncio.TimerHandle | None = None
        self._response_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._start_request_timer(HEAD_S, "head")
        self._listener.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._listener.remove(self)
        self._stop_request_timer()
        self.resume_writing()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._inbox += data
        self._advance()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._advance()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._response_timer = self.loop.call_later(UNREAD_S, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._response_timer is not None:
            self._response_timer.cancel()
            self._response_timer = None

    def send_400_response(self, msg: str) -> None:
        self.refuse(HttpError(400, msg))

    def refuse(self, error: HttpError) -> None:
        """The start of the next request is no longer known, so the connection is closed."""
        self._stop_request_timer()
        self._inbox.clear()
        if self.transport.is_closing():
            return
        if not self._is_busy or not self.cycle.response_started:
            self.transport.write(render_refusal(error))
        self.transport.close()

    @property
    def _is_busy(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _advance(self) -> None:
        try:
            while self._inbox and not self.transport.is_closing():
                if self._body_left:
                    self._pass_on_body()
                elif self._is_busy:
                    self._bound_inbox()
                    return
                elif not self._pass_on_head():
                    return
        except HttpError as error:
            self.refuse(error)

    def _pass_on_head(self) -> bool:
        """Returns whether the head is complete."""
        end = self._inbox.find(END, 0, MOST_HEAD_BYTES + len(END))
        if end < 0:
            if len(self._inbox) > MOST_HEAD_BYTES:
                raise HttpError(431, f"the head has more than {MOST_HEAD_BYTES} bytes")
            if self._request_timer is None:
                self._start_request_timer(HEAD_S, "head")
            return False
        head = parse_head(bytes(self._inbox[:end]))
        self._listener.admit(self, head)
        self._body_left = head.length
        self._stop_request_timer()
        if self._body_left:
            self._start_request_timer(BODY_S, "body")
        self._pass_on(end + len(END))
        return True

    def _pass_on_body(self) -> None:
        size = min(self._body_left, len(self._inbox))
        self._body_left -= size
        if not self._body_left:
            self._stop_request_timer()
        self._pass_on(size)

    def _pass_on(self, size: int) -> None:
        data = bytes(self._inbox[:size])
        del self._inbox[:size]
        super().data_received(data)

    def _bound_inbox(self) -> None:
        """Limits the bytes that a client may send before it has its response."""
        if len(self._inbox) > MOST_HEAD_BYTES:
            self.flow.pause_reading()

    def _start_request_timer(self, seconds: float, part: str) -> None:
        error = HttpError(408, f"the {part} of the request took longer than {seconds:.0f} s")
        self._request_timer = self.loop.call_later(seconds, self.refuse, error)

    def _stop_request_timer(self) -> None:
        if self._request_timer is not None:
            self._request_timer.cancel()
            self._request_timer = None


def render_refusal(error: HttpError) -> bytes:
    body = json.dumps(describe_error(error)).encode() + b"\n"
    fields = {
        **HEADERS, "Content-Type": "application/json", "Content-Length": len(body),
        "Connection": "close",
    }  # fmt: skip
    lines = [f"HTTP/1.1 {error.status} {HTTPStatus(error.status).phrase}"]
    lines += [f"{name}: {value}" for name, value in fields.items()]
    return "\r\n".join(lines).encode("latin-1") + END + body


def describe_error(error: HttpError) -> dict[str, str]:
    return {"error": str(error), **({"hint": error.hint} if error.hint else {})}
