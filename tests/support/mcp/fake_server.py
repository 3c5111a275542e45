"""An MCP server on stdio for tests, of the standard library: it can do everything that a server may
do, well or badly. Tools: see `TOOLS`. It logs each start, cancelled request and call to the file in
FAKE_LOG.
"""

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

_lock = threading.Lock()
_answers: dict[str, Any] = {}
_ready = threading.Condition()
_cancelled: set[Any] = set()
_held: list[bytes] = []


def write(message: dict[str, Any]) -> None:
    with _lock:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def note(*words: Any) -> None:
    if path := os.environ.get("FAKE_LOG"):
        with open(path, "a", encoding="utf-8") as file:
            file.write(" ".join(map(str, words)) + "\n")


def ask(method: str, params: dict[str, Any]) -> Any:
    """A request to the client; waits for the answer."""
    id_ = f"s-{threading.get_ident()}-{time.monotonic_ns()}"
    write({"id": id_, "method": method, "params": params})
    with _ready:
        _ready.wait_for(lambda: id_ in _answers, 20)
    answer = _answers.pop(id_, {"error": {"message": "no answer"}})
    return answer.get("result", answer.get("error"))


def call(request: dict[str, Any]) -> None:
    name, given = request["params"]["name"], request["params"].get("arguments", {})
    note("call", name, given.get("text", ""))
    said = TOOLS[name](request, given)
    content = [
        {"type": "text", "text": json.dumps(given.get("text", "") if said is None else said)}
    ]
    write({"id": request["id"], "result": {"content": content}})


def slow(request: dict[str, Any], given: dict[str, Any]) -> None:
    deadline_s = time.monotonic() + given.get("seconds", 0.2)
    while time.monotonic() < deadline_s and request["id"] not in _cancelled:
        time.sleep(0.01)


def elicit(_request: dict[str, Any], given: dict[str, Any]) -> Any:
    return ask("elicitation/create", {"message": given["text"], "requestedSchema": {}})


def sample(_request: dict[str, Any], given: dict[str, Any]) -> Any:
    return ask("sampling/createMessage", {"messages": [], "maxTokens": 1, "text": given["text"]})


def log(_request: dict[str, Any], given: dict[str, Any]) -> None:
    write({"method": "notifications/message", "params": {"level": "info", "data": given["text"]}})


def progress(request: dict[str, Any], given: dict[str, Any]) -> None:
    token = request["params"].get("_meta", {}).get("progressToken")
    for step in range(3):
        report = {"progressToken": token, "progress": step, "message": given["text"]}
        write({"method": "notifications/progress", "params": report})


def garbage(_request: dict[str, Any], given: dict[str, Any]) -> None:
    os.write(1, b"this is no JSON\n" * given.get("lines", 10))


def flood(_request: dict[str, Any], given: dict[str, Any]) -> None:
    for _ in range(given["bytes"] >> 20):
        os.write(1, b"x" * (1 << 20))


def update(_request: dict[str, Any], given: dict[str, Any]) -> None:
    write({"method": "notifications/resources/updated", "params": {"uri": given["text"]}})


def add(_request: dict[str, Any], given: dict[str, Any]) -> int:
    """Reads the whole file and writes it again, as careless servers do."""
    path = os.environ["FAKE_STORE"]
    lines = []
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            lines = file.read().splitlines()
    time.sleep(0.002)
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join([*lines, given["text"]]))
    return len(lines) + 1


def grow(_request: dict[str, Any], given: dict[str, Any]) -> None:
    _held.append(b"x" * given["bytes"])


TOOLS: dict[str, Callable[[dict[str, Any], dict[str, Any]], Any]] = {
    "echo": lambda _request, _given: None, "slow": slow, "ask": elicit, "sample": sample,
    "log": log, "progress": progress, "hang": lambda _request, _given: time.sleep(3600),
    "die": lambda _request, _given: os._exit(7), "garbage": garbage, "flood": flood,
    "update": update, "add": add, "pid": lambda _request, _given: os.getpid(), "grow": grow,
}  # fmt: skip


def answer(request: dict[str, Any]) -> None:
    id_, method = request["id"], request["method"]
    if method == "initialize":
        capabilities = {"tools": {}, "logging": {}, "resources": {"subscribe": True}}
        info = {"name": "fake", "version": "1"}
        write({"id": id_, "result": {
            "protocolVersion": request["params"]["protocolVersion"], "serverInfo": info,
            "capabilities": capabilities, "_meta": {"asked": request["params"]["capabilities"]},
        }})  # fmt: skip
    elif method == "tools/list":
        tools = [{"name": name, "inputSchema": {"type": "object"}} for name in TOOLS]
        write({"id": id_, "result": {"tools": tools}})
    elif method == "tools/call":
        threading.Thread(target=call, args=(request,), daemon=True).start()
    elif method in ("ping", "resources/subscribe", "resources/unsubscribe", "logging/setLevel"):
        note(method, request.get("params", {}).get("uri", ""))
        write({"id": id_, "result": {}})
    else:
        write({"id": id_, "error": {"code": -32601, "message": f"no {method}"}})


def main() -> None:
    note("start", os.getpid())
    if "FAKE_DEAF" in os.environ:  # ignores the end of its input, and TERM
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        threading.Thread(target=time.sleep, args=(3600,)).start()
    for line in sys.stdin:
        message = json.loads(line)
        if "method" in message and "id" in message:
            answer(message)
        elif message.get("method") == "notifications/cancelled":
            _cancelled.add(message["params"]["requestId"])
            note("cancelled", message["params"]["requestId"])
        elif "id" in message:
            with _ready:
                _answers[message["id"]] = message
                _ready.notify_all()


main()
