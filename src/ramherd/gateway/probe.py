"""`ramherd mcp probe`: can two clients share one process of a server?

The same calls are made by two clients on one process, in turn and at the same time, and by two
clients with a process each. If a client gets other answers on the shared process, the server keeps
state between calls. Only tools that the user names, or that declare `readOnlyHint`, are called.
"""

import asyncio
import json
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from typing import Any, NamedTuple

from ramherd import __version__
from ramherd.core.errors import RamherdError, UsageError
from ramherd.core.units import count
from ramherd.core.values import nearest
from ramherd.gateway.sharing import AGENT, SERIAL, SHARED

VERSION = "2025-06-18"
# `npx` may have to fetch the server first.
START_S, CALL_S, END_S = 60.0, 30.0, 2.0
# Answers of a server are lines of this length at most.
LINE_BYTES = 16 << 20
ROUNDS = 2
MOST_TOOLS = 8


class ProbeCall(NamedTuple):
    tool: str
    args: Mapping[str, Any]


class ProbeAnswers(NamedTuple):
    """The answers to each call, in order: of two clients, `first` and `second`."""

    first: Sequence[Any]
    second: Sequence[Any]


class ProbeVerdict(NamedTuple):
    mode: str
    reason: str
    evidence: Mapping[str, Any]

    def as_json(self) -> dict[str, Any]:
        return {"mode": self.mode, "reason": self.reason, "evidence": dict(self.evidence)}


class ProbeRecord(NamedTuple):
    """Calls and their answers: with a process for each client, and with one for both, to which they
    send their calls in turn, or at the same time. `untested` are tools that were not called and do
    not declare that they only read.
    """

    calls: Sequence[ProbeCall]
    private: ProbeAnswers
    in_turn: ProbeAnswers
    at_once: ProbeAnswers
    untested: Sequence[str] = ()


def judge(probed: ProbeRecord) -> ProbeVerdict:
    """A call whose answers differ between two private processes shows nothing about sharing, and a
    tool that was not called might change what another client sees.
    """
    calls, private = probed.calls, probed.private
    pairs = list(zip(private.first, private.second, strict=True))
    stable = [at for at, (one, other) in enumerate(pairs) if one == other]
    tools = sorted({call.tool for call in calls})
    evidence: dict[str, Any] = {
        "tools": tools, "calls": len(calls), "compared": len(stable),
        "differ_in_turn": differences(stable, probed, probed.in_turn),
        "differ_at_once": differences(stable, probed, probed.at_once),
        "untested": list(probed.untested),
    }  # fmt: skip
    made = f"{count(len(stable), 'call')} of {', '.join(tools)}"
    if not stable:
        return ProbeVerdict(AGENT, "its answers differ even between private processes", evidence)
    if changed := evidence["differ_in_turn"]:
        what = f"{', '.join(changed)} answered differently with a second client"
        return ProbeVerdict(AGENT, f"probed: {what}", evidence)
    if probed.untested:
        what = f"{', '.join(probed.untested)[:100]} not tested (--tool NAME)"
        return ProbeVerdict(AGENT, f"probed: {made} agree, {what}", evidence)
    if changed := evidence["differ_at_once"]:
        what = f"{', '.join(changed)} answered differently during a call of another client"
        return ProbeVerdict(SERIAL, f"probed: {what}", evidence)
    return ProbeVerdict(SHARED, f"probed: two clients got the same answers to {made}", evidence)


def differences(stable: Sequence[int], probed: ProbeRecord, shared: ProbeAnswers) -> list[str]:
    """The tools whose answers on the shared process differ."""
    private = probed.private
    changed = {
        probed.calls[at].tool
        for at in stable
        if shared.first[at] != private.first[at] or shared.second[at] != private.second[at]
    }
    return sorted(changed)


def choose_calls(
    tools: Sequence[Mapping[str, Any]], asked: Mapping[str, Mapping[str, Any] | None]
) -> list[ProbeCall]:
    """The tools that the user names, with the arguments given; else those that only read."""
    known = {str(tool["name"]): tool for tool in tools}
    for name in asked:
        if name not in known:
            raise UsageError(f"the server has no tool {name!r}", hint=nearest(name, known))
    reads = [name for name, tool in known.items() if is_read_only(tool)]
    chosen = dict(asked) or dict.fromkeys(reads[:MOST_TOOLS])
    if not chosen:
        raise UsageError(
            "no tool of the server declares that it only reads",
            hint=f"name tools that do no harm: --tool NAME; it has {', '.join(known)[:200]}",
        )
    return [
        ProbeCall(name, args if args is not None else sample(known[name].get("inputSchema", {})))
        for name, args in chosen.items()
    ]


def is_read_only(tool: Mapping[str, Any]) -> bool:
    return (tool.get("annotations") or {}).get("readOnlyHint") is True


def sample(schema: Mapping[str, Any]) -> Any:
    """A value that the schema accepts, with the required keys only."""
    if "default" in schema:
        return schema["default"]
    if schema.get("enum"):
        return schema["enum"][0]
    least = schema.get("minimum", 1)
    plain = {"string": "test", "integer": least, "number": least, "boolean": False, "array": []}
    if (kind := schema.get("type", "object")) in plain:
        return plain[kind]
    properties = schema.get("properties", {})
    return {name: sample(properties.get(name, {})) for name in schema.get("required", ())}


async def probe_server(
    argv: Sequence[str], env: Mapping[str, str], cwd: str,
    asked: Mapping[str, Mapping[str, Any] | None],
) -> ProbeVerdict:  # fmt: skip
    """Starts four processes of the server: two private ones, and two that are shared."""
    async with AsyncExitStack() as stack:
        made = [await stack.enter_async_context(ProbeProcess(argv, env, cwd)) for _ in range(4)]
        first, second, in_turn, at_once = made
        listed = await first.request("tools/list", {})
        tools = listed.get("tools", [])
        calls = choose_calls(tools, asked) * ROUNDS
        called = {call.tool for call in calls}
        untested = [
            str(tool["name"])
            for tool in tools
            if tool["name"] not in called and not is_read_only(tool)
        ]
        private = ProbeAnswers(
            [await first.call(one) for one in calls], [await second.call(one) for one in calls]
        )
        pairs = [(await in_turn.call(one), await in_turn.call(one)) for one in calls]
        both = [await asyncio.gather(at_once.call(one), at_once.call(one)) for one in calls]
        return judge(ProbeRecord(calls, private, split(pairs), split(both), untested))


def split(pairs: Sequence[Sequence[Any]]) -> ProbeAnswers:
    return ProbeAnswers([pair[0] for pair in pairs], [pair[1] for pair in pairs])


class ProbeProcess:
    """One process of the server, initialised. It refuses what the server asks of its client."""

    def __init__(self, argv: Sequence[str], env: Mapping[str, str], cwd: str) -> None:
        self._argv, self._env, self._cwd = argv, env, cwd
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._number = 0

    async def __aenter__(self) -> "ProbeProcess":
        pipe = asyncio.subprocess.PIPE
        try:
            self._process = await asyncio.create_subprocess_exec(
                *self._argv, env=self._env, cwd=self._cwd, stdin=pipe, stdout=pipe,
                stderr=asyncio.subprocess.DEVNULL, limit=LINE_BYTES, start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            raise RamherdError(f"cannot start {self._argv[0]}: {error.strerror}") from None
        self._reading = asyncio.create_task(self._read())
        about = {"name": "ramherd", "version": __version__}
        params = {"protocolVersion": VERSION, "capabilities": {}, "clientInfo": about}
        await self.request("initialize", params, START_S)
        self._send({"method": "notifications/initialized"})
        return self

    async def __aexit__(self, *_error: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            await asyncio.wait_for(self._process.wait(), END_S)
        except TimeoutError:
            with suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()
        self._reading.cancel()

    async def call(self, call: ProbeCall) -> Any:
        """The result of a call without its `_meta`, or the text of its error."""
        try:
            answer = await self.request("tools/call", {"name": call.tool, "arguments": call.args})
        except RamherdError as error:
            return {"error": str(error)}
        return {key: value for key, value in answer.items() if key != "_meta"}

    async def request(self, method: str, params: Any, wait_s: float = CALL_S) -> Any:
        self._number += 1
        number, answer = self._number, asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        self._send({"id": number, "method": method, "params": params})
        try:
            return await asyncio.wait_for(answer, wait_s)
        except TimeoutError:
            raise RamherdError(f"no answer to {method} within {wait_s:.0f} s") from None
        finally:
            self._waiting.pop(number, None)

    def _send(self, message: Mapping[str, Any]) -> None:
        assert self._process.stdin is not None
        with suppress(OSError, RuntimeError):
            self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    async def _read(self) -> None:
        assert self._process.stdout is not None
        with suppress(ValueError):  # a longer line
            async for line in self._process.stdout:
                self._receive(line)
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_exception(RamherdError("the server ended"))

    def _receive(self, line: bytes) -> None:
        try:
            message = json.loads(line)
        except ValueError:
            return
        if "method" in message and "id" in message:
            refusal = {"code": -32601, "message": "not supported"}
            self._send({"id": message["id"], "error": refusal})
            return
        answer = self._waiting.get(message.get("id"))
        if answer is None or answer.done():
            return
        if "error" in message:
            answer.set_exception(RamherdError(str(message["error"].get("message", "error"))))
        else:
            answer.set_result(message.get("result") or {})
