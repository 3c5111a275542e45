"""Anthropic Messages: what claude speaks."""

import json
from collections.abc import Iterator
from typing import Any

from llm.talk import Asked, Json, Reply, Said
from llm.text import halves, new_id, text_of


def read(body: Json, _path: str) -> Asked:
    talk = [said for message in body["messages"] for said in parts(message)]
    names = [tool["name"] for tool in body.get("tools", ())]
    return Asked(talk, names, body.get("model", ""), bool(body.get("stream")))


def parts(message: Json) -> Iterator[Said]:
    who = "model" if message["role"] == "assistant" else "user"
    content = message["content"]
    for part in [{"type": "text", "text": content}] if isinstance(content, str) else content:
        match part["type"]:
            case "text":
                yield Said(who, part["text"])
            case "tool_use":
                yield Said("call", json.dumps(part["input"]))
            case "tool_result":
                yield Said("result", text_of(part.get("content")))


def blocks(reply: Reply) -> list[Json]:
    said = [{"type": "text", "text": reply.text}] if reply.text or not reply.calls else []
    calls = [
        {"type": "tool_use", "id": new_id("toolu"), "name": call.name, "input": call.args}
        for call in reply.calls
    ]
    return [*said, *calls]


def message(reply: Reply, asked: Asked, content: list[Json], output: int) -> Json:
    usage = {"input_tokens": reply.tokens_in, "output_tokens": output}
    ended = ("tool_use" if reply.calls else "end_turn") if content else None
    return {
        "id": new_id("msg"), "type": "message", "role": "assistant", "model": asked.model,
        "content": content, "stop_reason": ended, "stop_sequence": None, "usage": usage,
    }  # fmt: skip


def whole(reply: Reply, asked: Asked) -> Json:
    return message(reply, asked, blocks(reply), reply.tokens_out)


def stream(reply: Reply, asked: Asked) -> Iterator[tuple[str, Json]]:
    yield event("message_start", message=message(reply, asked, [], 1))
    for index, block in enumerate(blocks(reply)):
        empty = {**block, "text": ""} if block["type"] == "text" else {**block, "input": {}}
        yield event("content_block_start", index=index, content_block=empty)
        for delta in deltas(block):
            yield event("content_block_delta", index=index, delta=delta)
        yield event("content_block_stop", index=index)
    ended = {"stop_reason": "tool_use" if reply.calls else "end_turn", "stop_sequence": None}
    usage = {"input_tokens": reply.tokens_in, "output_tokens": reply.tokens_out}
    yield event("message_delta", delta=ended, usage=usage)
    yield event("message_stop")


def deltas(block: Json) -> Iterator[Json]:
    if block["type"] == "text":
        yield from ({"type": "text_delta", "text": half} for half in halves(block["text"]))
    else:
        for half in halves(json.dumps(block["input"])):
            yield {"type": "input_json_delta", "partial_json": half}


def event(kind: str, **fields: Any) -> tuple[str, Json]:
    return kind, {"type": kind, **fields}


def error(status: int, text: str) -> Json:
    kinds = {429: "rate_limit_error", 529: "overloaded_error", 400: "invalid_request_error"}
    return {"type": "error", "error": {"type": kinds.get(status, "api_error"), "message": text}}
