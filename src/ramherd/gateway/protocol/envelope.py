"""The checks of a request of 2026-07-28 before it reaches a server: its envelope in `_meta`, and
headers that repeat parts of its body, so that a proxy may trust them.
"""

import base64
import binascii
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ramherd.gateway.protocol.jsonrpc import (
    HEADER_MISMATCH,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    MISSING_CAPABILITY,
    MODERN_VERSIONS,
    PARSE_ERROR,
    UNSUPPORTED_VERSION,
    Message,
    params_of,
)

VERSION = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
VERSION_HEADER, METHOD_HEADER, NAME_HEADER = "mcp-protocol-version", "mcp-method", "mcp-name"
PARAM_PREFIX = "mcp-param-"
ANNOTATION = "x-mcp-header"
# The parameter that Mcp-Name repeats.
NAMED_BY = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
STATUS = {
    PARSE_ERROR: 400, INVALID_REQUEST: 400, INVALID_PARAMS: 400, HEADER_MISMATCH: 400,
    MISSING_CAPABILITY: 400, UNSUPPORTED_VERSION: 400, METHOD_NOT_FOUND: 404,
}  # fmt: skip
_ENCODED = re.compile(r"=\?base64\?(.*)\?=")
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_DECIMAL = re.compile(r"(-?[0-9]+)(?:\.(0+))?")
# Keywords of JSON Schema whose values are schemas, where an annotation would be out of place.
_SCHEMA_KEYS = (
    "items", "contains", "additionalProperties", "propertyNames", "not", "if", "then", "else",
    "unevaluatedItems", "unevaluatedProperties", "contentSchema",
)  # fmt: skip
_SCHEMA_LISTS = ("allOf", "anyOf", "oneOf", "prefixItems")
_SCHEMA_MAPS = ("patternProperties", "dependentSchemas", "$defs", "definitions")

Headers = Sequence[tuple[str, str]]


class Refused(NamedTuple):
    code: int
    message: str
    data: Any = None


def check_request(message: Message, headers: Headers) -> Refused | None:
    """Header names are in lower case. The first thing that is wrong counts."""
    values = dict(headers)
    names = [name for name, _value in headers]
    for name in (VERSION_HEADER, METHOD_HEADER, NAME_HEADER):
        if names.count(name) > 1:
            return Refused(HEADER_MISMATCH, f"the header {name} is given twice")
    meta = params_of(message).get("_meta")
    if not isinstance(meta, dict):
        return Refused(INVALID_PARAMS, f"params._meta needs {VERSION!r} and {CAPABILITIES!r}")
    for key in (VERSION, CAPABILITIES):
        if key not in meta:
            return Refused(INVALID_PARAMS, f"params._meta has no {key!r}")
    return _check_headers(message, values, meta[VERSION]) or check_version(meta[VERSION])


def _check_headers(message: Message, values: Mapping[str, str], version: Any) -> Refused | None:
    if values.get(VERSION_HEADER) != version:
        return mismatch(VERSION_HEADER, "the protocol version in params._meta")
    method = message["method"]
    if values.get(METHOD_HEADER) != method:
        return mismatch(METHOD_HEADER, "the method")
    parameter = NAMED_BY.get(method)
    named = params_of(message).get(parameter) if parameter is not None else None
    if named is not None and decode(values.get(NAME_HEADER)) != named:
        return mismatch(NAME_HEADER, f"the parameter {parameter!r}")
    return None


def check_version(version: Any) -> Refused | None:
    if not isinstance(version, str):
        return Refused(INVALID_PARAMS, "the protocol version is no text")
    if version in MODERN_VERSIONS:
        return None
    data = {"supported": list(MODERN_VERSIONS), "requested": version}
    return Refused(UNSUPPORTED_VERSION, f"protocol version {version} is not supported", data)


def mismatch(header: str, what: str) -> Refused:
    return Refused(HEADER_MISMATCH, f"the header {header} does not match {what}")


def decode(value: str | None) -> str | None:
    """The text of a header: as it is, or in base64. None for a wrong encoding, which matches
    nothing.
    """
    match = _ENCODED.fullmatch(value) if value is not None else None
    if match is None:
        return value
    try:
        decoded = base64.b64decode(match[1], validate=True)
        is_exact = base64.b64encode(decoded).decode() == match[1]
        return decoded.decode() if is_exact else None
    except (binascii.Error, UnicodeDecodeError):
        return None


class Annotated(NamedTuple):
    """A parameter of a tool that a header repeats."""

    path: tuple[str, ...]
    header: str
    type: str


def find_annotated(schema: Any) -> list[Annotated]:
    """The parameters with a header; none if one annotation is wrong, because clients then drop the
    tool.
    """
    found: list[Annotated] = []
    for path, part in walk_schema(schema, ()):
        if ANNOTATION not in part:
            continue
        header, kind = part[ANNOTATION], part.get("type")
        is_right = isinstance(header, str) and _TOKEN.fullmatch(header)
        if not path or not is_right or kind not in ("string", "integer", "boolean"):
            return []
        found.append(Annotated(path, PARAM_PREFIX + header.lower(), kind))
    is_unique = len({one.header for one in found}) == len(found)
    return found if is_unique else []


def walk_schema(
    schema: Any, path: tuple[str, ...] | None
) -> Iterator[tuple[tuple[str, ...] | None, dict[str, Any]]]:
    """Each schema with its path of `properties`; None below any other keyword."""
    waiting = [(path, schema)]
    while waiting:
        at, part = waiting.pop()
        if not isinstance(part, dict):
            continue
        yield at, part
        for name, inner in as_map(part.get("properties")).items():
            waiting.append(((*at, name) if at is not None else None, inner))
        waiting += [(None, part[key]) for key in _SCHEMA_KEYS if key in part]
        for key in _SCHEMA_LISTS:
            waiting += [(None, inner) for inner in part.get(key, ()) if isinstance(inner, dict)]
        for key in _SCHEMA_MAPS:
            waiting += [(None, inner) for inner in as_map(part.get(key)).values()]


def as_map(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def check_parameters(
    annotated: Sequence[Annotated], arguments: Any, headers: Headers
) -> Refused | None:
    """A header and its parameter are both there and equal, or both missing."""
    names = [name for name, _value in headers]
    values = dict(headers)
    for one in annotated:
        if names.count(one.header) > 1:
            return Refused(HEADER_MISMATCH, f"the header {one.header} is given twice")
        shown = render(value_at(arguments, one.path))
        given = values.get(one.header)
        if shown is None and given is None:
            continue
        text = decode(given)
        if shown is None or text is None or not is_equal(one.type, shown, text):
            return mismatch(one.header, f"the argument {'.'.join(one.path)!r}")
    return None


def value_at(arguments: Any, path: Sequence[str]) -> Any:
    for name in path:
        arguments = arguments.get(name) if isinstance(arguments, dict) else None
    return arguments


def render(value: Any) -> str | None:
    """As a client writes it into a header; None if it has no such form."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value) if isinstance(value, str | int | float) else None


def is_equal(kind: str, shown: str, text: str) -> bool:
    number = _DECIMAL.fullmatch(text) if kind == "integer" else None
    return shown == text or (number is not None and shown == number[1])
