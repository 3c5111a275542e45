"""HTTP/1.1 as far as this API needs it, on bytes alone.

Written by hand: `http.server` takes 8 MB, which is half of what the whole process has now.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, unquote

MOST_HEAD_BYTES = 16 << 10
# Ten thousand jobs with prompts of a page each.
MOST_BODY_BYTES = 64 << 20
MOST_FIELDS = 64
REASONS = {
    200: "OK", 201: "Created", 202: "Accepted", 400: "Bad Request", 401: "Unauthorized",
    403: "Forbidden", 404: "Not Found", 405: "Method Not Allowed", 408: "Request Timeout",
    409: "Conflict", 411: "Length Required", 413: "Content Too Large",
    415: "Unsupported Media Type", 429: "Too Many Requests",
    431: "Request Header Fields Too Large", 500: "Internal Server Error",
    503: "Service Unavailable", 505: "HTTP Version Not Supported",
}  # fmt: skip
_LINE = re.compile(rb"([A-Z]{1,16}) ([!-~]{1,8192}) HTTP/(\d)\.(\d)")
_HEADER = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([^\x00-\x08\x0a-\x1f\x7f]*?)[ \t]*")


class HttpError(Exception):
    """An answer that ends the request: its status, and one line."""

    def __init__(self, status: int, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.hint = hint


@dataclass(frozen=True, slots=True)
class Request:
    method: str
    path: tuple[str, ...]
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes = b""
    is_http_1_0: bool = False

    @property
    def length(self) -> int:
        """The length of the body, as the client gives it."""
        if "transfer-encoding" in self.headers:
            raise HttpError(411, "send the body with a Content-Length")
        text = self.headers.get("content-length", "0")
        if not re.fullmatch("[0-9]{1,18}", text):
            raise HttpError(400, "Content-Length is no number")
        if int(text) > MOST_BODY_BYTES:
            raise HttpError(413, f"the body has {text} bytes, the most is {MOST_BODY_BYTES}")
        return int(text)

    @property
    def keeps_alive(self) -> bool:
        return not self.is_http_1_0 and "close" not in self.headers.get("connection", "").lower()


# The next part of a body that goes on: b"" when there is nothing new, None after the last.
Stream = Callable[[], bytes | None]


@dataclass(frozen=True, slots=True)
class Response:
    status: int
    body: bytes = b""
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)
    stream: Stream | None = None


def json_response(value: Any, status: int = 200) -> Response:
    return Response(status, json.dumps(value, separators=(",", ":")).encode() + b"\n")


def error_response(error: HttpError) -> Response:
    body = {"error": str(error), **({"hint": error.hint} if error.hint else {})}
    return json_response(body, error.status)


def parse_head(data: bytes) -> Request:
    """Everything before the blank line. What can be read in two ways is refused."""
    first, *lines = data.split(b"\r\n")
    match = _LINE.fullmatch(first)
    if match is None:
        raise HttpError(400, "the request line does not parse")
    if match[3] != b"1":
        raise HttpError(505, "this is HTTP/1.1")
    if len(lines) > MOST_FIELDS:
        raise HttpError(431, f"more than {MOST_FIELDS} header fields")
    path, query = parse_target(match[2].decode("ascii"))
    return Request(
        method=match[1].decode("ascii"),
        path=path,
        query=query,
        headers=parse_headers(lines),
        is_http_1_0=match[4] == b"0",
    )


def parse_headers(lines: list[bytes]) -> dict[str, str]:
    headers: dict[str, str] = {}
    for line in lines:
        match = _HEADER.fullmatch(line)
        if match is None:
            raise HttpError(400, "a header field does not parse")
        name, value = match[1].decode("ascii").lower(), match[2].decode("latin-1")
        if name in headers and name in ("host", "content-length", "authorization", "origin"):
            raise HttpError(400, f"{name} is given twice")
        headers[name] = value
    return headers


def parse_target(target: str) -> tuple[tuple[str, ...], dict[str, str]]:
    """Path and query, decoded; of a name that is given twice, the last counts."""
    if not target.startswith("/"):
        raise HttpError(400, "the target is no path")
    path, _, query = target.partition("?")
    try:
        parts = tuple(unquote(part, errors="strict") for part in path[1:].split("/"))
        pairs = dict(
            parse_qsl(query, keep_blank_values=True, errors="strict", max_num_fields=MOST_FIELDS)
        )
    except ValueError:  # also bytes that are no text
        raise HttpError(400, "the target does not decode") from None
    return parts, pairs


def render_head(response: Response, *, close: bool, chunked: bool) -> bytes:
    lines = [f"HTTP/1.1 {response.status} {REASONS[response.status]}"]
    lines.append(f"Content-Type: {response.content_type}")
    if response.stream is None:
        lines.append(f"Content-Length: {len(response.body)}")
    elif chunked:
        lines.append("Transfer-Encoding: chunked")
    # Nothing of this is for a browser's cache, or for it to guess about.
    lines += ["Cache-Control: no-store", "X-Content-Type-Options: nosniff"]
    lines += [f"{name}: {value}" for name, value in response.headers.items()]
    if close:
        lines.append("Connection: close")
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n"


def render_chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)
