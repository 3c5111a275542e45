"""HTTP requests to the service: each returns a response or a one-line error within seconds."""

import http.client
import json
import socket
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult

from ramherd.core.api_version import API, FIELD, parse_api
from ramherd.core.errors import NoService, RamherdError, ServiceBusy, UsageError
from ramherd.system.unix_socket import connect
from ramherd.system.wait import wait_readable

# The service replaces an API that hangs within 5 s; requests that can be repeated are repeated.
ANSWERS_WITHIN_S = 10.0
AGAIN_S = 0.2
# During a long request, such as a large submission, the client checks this often that the service
# is alive, which has PROBE_S to answer.
PROBE_EVERY_S = 5.0
PROBE_S = 4.0
# The longest silence of an event stream.
STREAM_S = 45.0
# The longest wait for a request that cannot be repeated, even if the service is alive.
RESPONSE_S = 600.0
RESTART = "start the service again with this version: ramherd up"


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: Path, timeout_s: float | None) -> None:
        super().__init__("localhost", timeout=timeout_s)
        self._path = path
        self._timeout_s = timeout_s

    def connect(self) -> None:
        self.sock = connect(self._path, self._timeout_s)


class HttpLink:
    """A link to the user's socket at `path`, or to an address with a token."""

    def __init__(
        self, path: Path | None, address: SplitResult | None, token: str | None, timeout_s: float
    ) -> None:
        self._path, self._address, self._token = path, address, token
        self._timeout_s = timeout_s
        # The API version of the last response.
        self.api = API

    def ask(self, method: str, target: str, body: Any = None) -> dict[str, Any]:
        data = None if body is None else json.dumps(body).encode()
        with self.open(method, target, data=data) as answer:
            try:
                value = json.loads(answer.read_all())
            except ValueError:
                raise self.no_common_version(f"{target} is not JSON") from None
        if not isinstance(value, dict):
            raise self.no_common_version(f"{target} is no object")
        return value

    def open(
        self, method: str, target: str, *, data: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> "Response":  # fmt: skip
        until_s = time.monotonic() + self._timeout_s
        was_there = False
        while True:
            try:
                return self._open(method, target, data, headers or {})
            except (FileNotFoundError, ConnectionRefusedError) as error:
                lost: Exception = error
                is_worth_it = was_there
            except (ConnectionError, http.client.HTTPException) as error:
                lost, was_there, is_worth_it = error, True, method == "GET"
            except OSError as error:
                lost, is_worth_it = error, False
            if not is_worth_it or time.monotonic() >= until_s:
                raise no_service(lost, self._timeout_s) from None
            time.sleep(AGAIN_S)

    def no_common_version(self, what: str) -> NoService:
        return NoService(
            f"this ramherd and the service are incompatible: {what} "
            f"(the service has API {self.api}, this command API {API})",
            hint=RESTART,
        )

    def _open(
        self, method: str, target: str, data: bytes | None, headers: Mapping[str, str]
    ) -> "Response":
        link = self._connect(self._timeout_s)
        try:
            link.request(method, target, data, self._fields(data, headers))
            if data is not None:
                self._await_response(link)
            # The link closes its socket after it has read the head of a response.
            sock = link.sock
            answer = link.getresponse()
        except (OSError, http.client.HTTPException):
            link.close()
            raise
        self.api = parse_api(answer.headers.get(FIELD))
        response = Response(answer, sock, self._timeout_s)
        if answer.status >= 400:
            raise self._explain(response, method, target)
        return response

    def _connect(self, timeout_s: float) -> http.client.HTTPConnection:
        if self._address is not None:
            host, port = self._address.hostname or "127.0.0.1", self._address.port
            return http.client.HTTPConnection(host, port, timeout=timeout_s)
        assert self._path is not None
        return UnixConnection(self._path, timeout_s)

    def _fields(self, data: bytes | None, headers: Mapping[str, str]) -> dict[str, str]:
        fields = {"Connection": "close", **headers}
        if data is not None:
            fields["Content-Type"] = "application/json"
        if self._token is not None:
            fields["Authorization"] = f"Bearer {self._token}"
        return fields

    def _await_response(self, link: http.client.HTTPConnection) -> None:
        """Waits for a request that cannot be repeated, while the service is alive."""
        assert link.sock is not None
        until_s = time.monotonic() + RESPONSE_S
        while not wait_readable(link.sock.fileno(), min(PROBE_EVERY_S, self._timeout_s)):
            if time.monotonic() >= until_s:
                raise TimeoutError
            probe = self._connect(min(PROBE_S, self._timeout_s))
            try:
                probe.request("GET", "/v1/version", headers=self._fields(None, {}))
                probe.getresponse()
            finally:
                probe.close()

    def _explain(self, response: "Response", method: str, target: str) -> RamherdError:
        answer = response.answer
        with response:
            try:
                body = json.loads(response.read_all())
                message, hint = str(body["error"]), str(body.get("hint", ""))
            except (ValueError, KeyError, TypeError):
                return NoService(f"the service answers {answer.status} {answer.reason}")
        if answer.status in (404, 405) and message.endswith("path"):
            return self.no_common_version(f"it does not know {method} {target.partition('?')[0]}")
        if answer.status == 429:
            return ServiceBusy(message, hint=hint)
        return (UsageError if answer.status < 500 else NoService)(message, hint=hint)


class Response:
    """The body of a response, with a limit on silence."""

    def __init__(
        self, answer: http.client.HTTPResponse, sock: socket.socket | None, silence_s: float
    ) -> None:
        self.answer, self._sock = answer, sock
        self._silence_s = silence_s

    def __enter__(self) -> "Response":
        return self

    def __exit__(self, *_error: object) -> None:
        self.answer.close()

    def read_all(self) -> bytes:
        try:
            return self.answer.read()
        except (OSError, http.client.HTTPException) as error:
            raise no_service(error, self._silence_s) from None

    def read_chunk(self, within_s: float | None) -> bytes:
        """b"" at the end. Raises TimeoutError if none comes within this time (None: no limit)."""
        self._allow_silence(within_s)
        try:
            return self.answer.read1(1 << 16)
        except TimeoutError:
            raise
        except (OSError, http.client.HTTPException) as error:
            raise no_service(error) from None

    def read_line(self, within_s: float) -> bytes:
        """b"" when the other end has closed, or was silent for longer than this."""
        self._allow_silence(within_s)
        try:
            return self.answer.readline()
        except (OSError, http.client.HTTPException):
            return b""

    def _allow_silence(self, within_s: float | None) -> None:
        if self._sock is not None and self._sock.fileno() >= 0:
            self._sock.settimeout(within_s)


def no_service(error: Exception, within_s: float = ANSWERS_WITHIN_S) -> RamherdError:
    if isinstance(error, FileNotFoundError | ConnectionRefusedError):
        return NoService("no ramherd service is running", hint="start one: ramherd up")
    if isinstance(error, TimeoutError | BlockingIOError):
        return NoService(
            f"the ramherd service has not answered for {within_s:g} s",
            hint="try again: a service replaces its API when it hangs",
        )
    return NoService(f"the ramherd service does not answer: {error}", hint="see ramherd up")
