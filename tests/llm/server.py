"""The HTTP side: routes, streams, waiting, failing, and the record of all that was asked."""

import json
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import ModuleType, TracebackType
from typing import Any
from urllib.parse import urlsplit

from llm import anthropic, chat, gemini, responses
from llm.script import SCRIPTS, Script, check, handed_on, name_in, place_in, reply_of
from llm.talk import Asked, Json, Reply, Talk
from llm.text import sample
from llm.usage import UsageWindows

DONE: Mapping[str, Any] = {"say": "Done."}
NONE: Mapping[str, str] = {}


class LLM:
    """A server for as long as the `with` block lasts; `scripts` add to the built-in ones."""

    def __init__(
        self,
        scripts: Mapping[str, Script] | None = None,
        port: int = 0,
        usage: UsageWindows | None = None,
    ) -> None:
        self.usage = usage
        self.scripts: dict[str, Script] = {**SCRIPTS}
        self.add(scripts or {})
        self.talks: list[Talk] = []
        self.failed: Counter[tuple[str, int, str]] = Counter()
        self.gates: dict[str, threading.Event] = {}
        self.closed = threading.Event()
        self.changed = threading.Condition()
        self.server = Server(("127.0.0.1", port), Handler)
        self.server.llm = self
        # Looking for the end every 20 ms, not every half second: tests close many of these.
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}"

    def __enter__(self) -> "LLM":
        self.thread.start()
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:  # fmt: skip
        self.closed.set()
        for gate in self.gates.values():
            gate.set()
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    def add(self, scripts: Mapping[str, Script]) -> None:
        check(scripts)
        self.scripts.update(scripts)

    def gate(self, name: str) -> threading.Event:
        return self.gates.setdefault(name, threading.Event())

    def open(self, name: str) -> None:
        self.gate(name).set()

    def of(self, script: str) -> list[Talk]:
        """What was asked in conversations that follow this script."""
        return [talk for talk in list(self.talks) if talk.script == script]

    def await_step(self, script: str, step: int, timeout_s: float = 60.0) -> Talk:
        """The first request that stands at this step of the script."""
        with self.changed:
            self.changed.wait_for(lambda: self.found(script, step), timeout_s)
        found = self.found(script, step)
        assert found, f"nobody asked for step {step} of {script} within {timeout_s} s"
        return found[0]

    def found(self, script: str, step: int) -> list[Talk]:
        return [talk for talk in self.of(script) if talk.step == step]

    def record(self, talk: Talk) -> None:
        with self.changed:
            self.talks.append(talk)
            self.changed.notify_all()

    def choose(self, asked: Asked) -> tuple[str, str, int, Mapping[str, Any]]:
        """Kind, script, step and what the step holds."""
        name, place = name_in(asked.talk)
        if not asked.tools:
            text = json.dumps(sample(asked.schema)) if asked.schema else "ok"
            return "side", name, -1, {"say": text, "tokens": (1, 1)}
        if name not in self.scripts:
            return "plain", name, 0, {"say": f"No script {name!r}."} if name else DONE
        at = place_in(self.scripts[name], asked.talk[place + 1 :])
        kind = "subagent" if self.is_handed_on(asked.talk[place].text) else "main"
        return kind, name, at, self.scripts[name][at] if at < len(self.scripts[name]) else DONE

    def is_handed_on(self, prompt: str) -> bool:
        """Whether some script's step gives a subagent this very prompt."""
        return any(
            args["prompt"] in prompt
            for script in self.scripts.values()
            for step in script
            for args in handed_on(step)
        )

    def next_failure(self, key: tuple[str, int, str], step: Mapping[str, Any]) -> int:
        """The status to fail with this time, or 0."""
        fail = step.get("fail")
        if fail and fail.get("shared"):
            key = (*key[:2], "")
        if not fail or self.failed[key] >= fail.get("times", 1):
            return 0
        self.failed[key] += 1
        return int(fail["status"])


class Server(ThreadingHTTPServer):
    daemon_threads = True
    # 50 agents may knock at once.
    request_queue_size = 128
    llm: LLM


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def do_HEAD(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_GET(self) -> None:
        path = urlsplit(self.path).path
        if path == "/requests":
            self.answer([asdict(talk) for talk in list(self.server.llm.talks)])
        elif path.endswith("/models"):
            self.answer({"object": "list", "data": [], "models": []})
        else:
            self.answer({"error": f"nothing at {path}"}, 404)

    def do_POST(self) -> None:
        path = urlsplit(self.path).path
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}")
        api = api_of(path)
        if path.endswith(("/count_tokens", ":countTokens")):
            self.answer({"input_tokens": 100, "totalTokens": 100})
        elif path == "/scripts":
            self.server.llm.add(body)
            self.answer({})
        elif path.startswith("/open/"):
            self.server.llm.open(path.removeprefix("/open/"))
            self.answer({})
        elif api is None:
            self.answer({"error": f"nothing at {path}"}, 404)
        else:
            self.converse(api, path, body)

    def converse(self, api: ModuleType, path: str, body: Json) -> None:
        llm = self.server.llm
        asked: Asked = api.read(body, path)
        kind, name, at, step = llm.choose(asked)
        usage = llm.usage
        is_counted = usage is not None and kind != "side" and usage.model in asked.model
        limit = usage.ask(time.time()) if usage is not None and is_counted else None
        status = llm.next_failure((name, at, self.whose(asked, name)), step)
        status = 429 if limit is not None else status
        llm.record(
            Talk(
                api.__name__.rpartition(".")[2], path, kind, name, at, status or 200,
                time.time(), asked, self.kept_headers(), body,
            )
        )  # fmt: skip
        llm.closed.wait(step.get("wait_s", 0.0))
        if "gate" in step:
            llm.gate(step["gate"]).wait()
        if limit is not None:
            self.answer(api.error(429, "limit reached"), 429, limit)
        elif status:
            text = step["fail"].get("message", "overloaded" if status in (429, 529) else "failed")
            error = step["fail"].get("body") or api.error(status, text)
            self.answer(error, status, step["fail"].get("headers", {}))
        else:
            self.reply_to(api, step, asked)

    def reply_to(self, api: ModuleType, step: Mapping[str, Any], asked: Asked) -> None:
        try:
            reply = reply_of(step, asked)
        except LookupError as error:
            self.answer(api.error(400, str(error)), 400)
        else:
            self.reply(api, reply, asked)

    def reply(self, api: ModuleType, reply: Reply, asked: Asked) -> None:
        if not asked.stream:
            self.answer(api.whole(reply, asked))
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        events = list(api.stream(reply, asked))
        try:
            for number, (kind, data) in enumerate(events):
                if number == len(events) // 2:
                    self.server.llm.closed.wait(reply.pause_s)
                self.wfile.write("".join(sse(kind, data)).encode())
            if api is chat:
                self.wfile.write(b"data: [DONE]\n\n")
        except (BrokenPipeError, ConnectionResetError):
            pass  # the agent was ended meanwhile

    def answer(self, data: Any, status: int = 200, headers: Mapping[str, str] = NONE) -> None:
        text = json.dumps(data).encode()
        try:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)
        except (BrokenPipeError, ConnectionResetError):
            pass

    def whose(self, asked: Asked, name: str) -> str:
        """What tells conversations apart: a session where the CLI says it, else the prompt."""
        sessions = ("x-claude-code-session-id", "session-id", "x-session-id")
        named = next(filter(None, map(self.headers.get, sessions)), "")
        prompts = (said.text for said in asked.talk if f"[script {name}]" in said.text)
        return named + next(prompts, "")

    def kept_headers(self) -> dict[str, str]:
        secret = ("authorization", "x-api-key", "x-goog-api-key")
        return {
            key.lower(): value for key, value in self.headers.items() if key.lower() not in secret
        }

    def log_message(self, *_args: object) -> None:
        pass


def sse(kind: str, data: Json) -> Iterator[str]:
    if kind:
        yield f"event: {kind}\n"
    yield f"data: {json.dumps(data)}\n\n"


def api_of(path: str) -> ModuleType | None:
    if path.endswith(("/messages", "/count_tokens")):
        return anthropic
    if path.endswith("/responses"):
        return responses
    if path.endswith("/chat/completions"):
        return chat
    return gemini if ":" in path and "enerateContent" in path else None
