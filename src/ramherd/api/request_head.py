"""The head of a request, parsed from bytes: ambiguous input is refused, so that h11 and the
application behind it get one meaning.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl, unquote

MOST_HEAD_BYTES = 16 << 10
# Ten thousand jobs with prompts of a page each.
MOST_BODY_BYTES = 64 << 20
MOST_FIELDS = 64
_LINE = re.compile(rb"([A-Z]{1,16}) ([!-~]{1,8192}) HTTP/(\d)\.(\d)")
_HEADER = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([^\x00-\x08\x0a-\x1f\x7f]*?)[ \t]*")


class HttpError(Exception):
    """An answer that ends the request: its status, and one line."""

    def __init__(self, status: int, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.hint = hint


@dataclass(frozen=True, slots=True)
class RequestHead:
    method: str
    path: tuple[str, ...]
    query: Mapping[str, str]
    headers: Mapping[str, str]

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


def parse_head(data: bytes) -> RequestHead:
    """Parses everything before the blank line."""
    first, *lines = data.split(b"\r\n")
    match = _LINE.fullmatch(first)
    if match is None:
        raise HttpError(400, "the request line does not parse")
    if match[3] != b"1":
        raise HttpError(505, "this is HTTP/1.1")
    if len(lines) > MOST_FIELDS:
        raise HttpError(431, f"more than {MOST_FIELDS} header fields")
    path, query = parse_target(match[2].decode("ascii"))
    return RequestHead(match[1].decode("ascii"), path, query, parse_headers(lines))


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
    """Path and query, decoded; if a name is given twice, the last value counts."""
    if not target.startswith("/"):
        raise HttpError(400, "the target is no path")
    path, _, query = target.partition("?")
    try:
        parts = tuple(unquote(part, errors="strict") for part in path[1:].split("/"))
        pairs = dict(
            parse_qsl(query, keep_blank_values=True, errors="strict", max_num_fields=MOST_FIELDS)
        )
    except ValueError:  # also for bytes that are not text
        raise HttpError(400, "the target does not decode") from None
    return parts, pairs
