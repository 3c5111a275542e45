"""OpenAI Chat Completions: what qwen and opencode speak."""

import json
from collections.abc import Iterator

from llm.talk import Asked, Json, Reply, Said
from llm.text import halves, new_id, text_of


def read(body: Json, _path: str) -> Asked:
    talk = [said for message in body["messages"] for said in parts(message)]
    names = [tool["function"]["name"] for tool in body.get("tools", ())]
    schema = body.get("response_format", {}).get("json_schema", {}).get("schema")
    return Asked(talk, names, body.get("model", ""), bool(body.get("stream")), schema)


def parts(message: Json) -> Iterator[Said]:
    match message["role"]:
        case "user":
            yield Said("user", text_of(message["content"]))
        case "tool":
            yield Said("result", text_of(message["content"]))
        case "assistant":
            if message.get("content"):
                yield Said("model", text_of(message["content"]))
            for call in message.get("tool_calls") or ():
                yield Said("call", call["function"]["arguments"])


def calls_of(reply: Reply) -> list[Json]:
    return [
        {
            "index": index, "id": new_id("call"), "type": "function",
            "function": {"name": call.name, "arguments": json.dumps(call.args)},
        }
        for index, call in enumerate(reply.calls)
    ]  # fmt: skip


def usage_of(reply: Reply) -> Json:
    total = reply.tokens_in + reply.tokens_out
    return {
        "prompt_tokens": reply.tokens_in, "completion_tokens": reply.tokens_out,
        "total_tokens": total,
    }  # fmt: skip


def completion(asked: Asked, kind: str, choice: Json | None, usage: Json | None = None) -> Json:
    choices = [] if choice is None else [{"index": 0, **choice}]
    made = {
        "id": new_id("chatcmpl"), "object": kind, "created": 1_700_000_000, "model": asked.model,
        "choices": choices,
    }  # fmt: skip
    return {**made, "usage": usage} if usage else made


def whole(reply: Reply, asked: Asked) -> Json:
    message: Json = {"role": "assistant", "content": reply.text or None}
    if reply.calls:
        message["tool_calls"] = calls_of(reply)
    choice = {"message": message, "finish_reason": "tool_calls" if reply.calls else "stop"}
    return completion(asked, "chat.completion", choice, usage_of(reply))


def stream(reply: Reply, asked: Asked) -> Iterator[tuple[str, Json]]:
    deltas: list[Json] = [{"role": "assistant", "content": ""}]
    deltas += [{"content": half} for half in halves(reply.text)]
    deltas += [{"tool_calls": [call]} for call in calls_of(reply)]
    kind = "chat.completion.chunk"
    for delta in deltas:
        yield "", completion(asked, kind, {"delta": delta, "finish_reason": None})
    reason = "tool_calls" if reply.calls else "stop"
    yield "", completion(asked, kind, {"delta": {}, "finish_reason": reason})
    yield "", completion(asked, kind, None, usage_of(reply))


def error(status: int, text: str) -> Json:
    kinds = {429: "rate_limit_exceeded", 400: "invalid_request_error"}
    kind = kinds.get(status, "server_error")
    return {"error": {"message": text, "type": kind, "code": kind}}
