"""JSON-RPC messages of MCP: their shapes, the errors that the gateway answers with, and the methods
that it treats specially. Unknown fields pass through it unchanged.
"""

from collections.abc import Mapping
from typing import Any

Message = dict[str, Any]
# A request id: a text or a number.
RequestId = str | int | float

LEGACY, MODERN = "legacy", "modern"
LEGACY_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
LATEST_LEGACY = LEGACY_VERSIONS[-1]
MODERN_VERSIONS = ("2026-07-28",)

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND = -32700, -32600, -32601
INVALID_PARAMS, INTERNAL_ERROR = -32602, -32603
HEADER_MISMATCH, MISSING_CAPABILITY, UNSUPPORTED_VERSION = -32020, -32021, -32022
# Of the gateway: the server has ended, does not start, or was not asked.
SERVER_FAILED, CANCELLED = -32000, -32800

META = "_meta"
PROGRESS_TOKEN = "progressToken"  # noqa: S105 - the name of a field
SUBSCRIPTION_ID = "io.modelcontextprotocol/subscriptionId"
RELATED_TASK = "io.modelcontextprotocol/related-task"
LOG_LEVEL = "io.modelcontextprotocol/logLevel"

LISTS = ("tools/list", "prompts/list", "resources/list", "resources/templates/list")
LISTEN = "subscriptions/listen"
# Requests that cause no request of the server and no log message, as far as the gateway has to
# know: they do not wait for a call that is in progress.
FREE_METHODS = frozenset(
    (*LISTS, LISTEN, "ping", "initialize", "server/discover", "logging/setLevel",
     "resources/subscribe", "resources/unsubscribe",
     "tasks/get", "tasks/list", "tasks/cancel", "tasks/result", "tasks/update")
)  # fmt: skip
# Requests about one task, which has to be the client's own.
TASK_METHODS = ("tasks/get", "tasks/result", "tasks/cancel", "tasks/update")
LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")


def is_request(message: Message) -> bool:
    return "method" in message and "id" in message


def is_notification(message: Message) -> bool:
    return "method" in message and "id" not in message


def params_of(message: Message) -> dict[str, Any]:
    params = message.get("params")
    return params if isinstance(params, dict) else {}


def meta_of(message: Message) -> dict[str, Any]:
    meta = params_of(message).get(META)
    return meta if isinstance(meta, dict) else {}


def with_params(message: Message, **changes: Any) -> Message:
    return {**message, "params": {**params_of(message), **changes}}


def with_meta(message: Message, **changes: Any) -> Message:
    return with_params(message, **{META: {**meta_of(message), **changes}})


def make_request(id_: RequestId, method: str, params: Mapping[str, Any] | None = None) -> Message:
    request: Message = {"jsonrpc": "2.0", "id": id_, "method": method}
    return request if params is None else {**request, "params": dict(params)}


def make_notification(method: str, params: Mapping[str, Any] | None = None) -> Message:
    notification: Message = {"jsonrpc": "2.0", "method": method}
    return notification if params is None else {**notification, "params": dict(params)}


def make_result(id_: RequestId, result: Any) -> Message:
    return {"jsonrpc": "2.0", "id": id_, "result": result}


def make_error(id_: RequestId | None, code: int, message: str, data: Any = None) -> Message:
    error: dict[str, Any] = {"code": code, "message": message}
    if data is not None:
        error["data"] = data
    return {"jsonrpc": "2.0", "id": id_, "error": error}
