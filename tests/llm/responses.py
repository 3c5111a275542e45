"""OpenAI Responses: what codex speaks."""

import json
from collections.abc import Iterator
from typing import Any

from llm.talk import Asked, Json, Reply, Said
from llm.text import halves, new_id, text_of


def read(body: Json, _path: str) -> Asked:
    given = body["input"]
    items = [{"role": "user", "content": given}] if isinstance(given, str) else given
    talk = [said for item in items for said in parts(item)]
    names = [tool.get("name", tool.get("type", "")) for tool in body.get("tools", ())]
    return Asked(talk, names, body.get("model", ""), bool(body.get("stream")))


def parts(item: Json) -> Iterator[Said]:
    kind = item.get("type", "message")
    if kind == "message" and item["role"] in ("user", "assistant"):
        yield Said("user" if item["role"] == "user" else "model", text_of(item["content"]))
    elif kind.endswith("_call_output"):
        yield Said("result", text_of(item.get("output")))
    elif kind.endswith("_call"):
        yield Said("call", text_of(item.get("arguments", item.get("action"))))


def named(name: str) -> Json:
    """A tool of an MCP server is in the namespace of the server: mcp__SERVER__TOOL."""
    server, _, tool = name.rpartition("__")
    return {"namespace": server, "name": tool} if server.startswith("mcp__") else {"name": name}


def items_of(reply: Reply) -> list[Json]:
    said: list[Json] = []
    if reply.text or not reply.calls:
        content = [{"type": "output_text", "text": reply.text, "annotations": []}]
        said.append(
            {
                "type": "message", "id": new_id("msg"), "role": "assistant",
                "status": "completed", "content": content,
            }
        )  # fmt: skip
    calls = [
        {
            "type": "function_call", "id": new_id("fc"), "call_id": new_id("call"),
            **named(call.name), "arguments": json.dumps(call.args), "status": "completed",
        }
        for call in reply.calls
    ]  # fmt: skip
    return [*said, *calls]


def response(reply: Reply, asked: Asked, status: str, items: list[Json]) -> Json:
    usage = {
        "input_tokens": reply.tokens_in, "output_tokens": reply.tokens_out,
        "total_tokens": reply.tokens_in + reply.tokens_out,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": 0},
    }  # fmt: skip
    return {
        "id": new_id("resp"), "object": "response", "created_at": 1_700_000_000, "status": status,
        "model": asked.model, "output": items, "usage": usage if items else None,
    }  # fmt: skip


def whole(reply: Reply, asked: Asked) -> Json:
    return response(reply, asked, "completed", items_of(reply))


def stream(reply: Reply, asked: Asked) -> Iterator[tuple[str, Json]]:
    items = items_of(reply)
    yield event("response.created", response=response(reply, asked, "in_progress", []))
    for index, item in enumerate(items):
        is_text = item["type"] == "message"
        begun = {**item, "content": []} if is_text else {**item, "arguments": ""}
        yield event("response.output_item.added", output_index=index, item=begun)
        for half in halves(reply.text) if is_text else ():
            yield event(
                "response.output_text.delta", item_id=item["id"], output_index=index,
                content_index=0, delta=half,
            )  # fmt: skip
        yield event("response.output_item.done", output_index=index, item=item)
    yield event("response.completed", response=response(reply, asked, "completed", items))


def event(kind: str, **fields: Any) -> tuple[str, Json]:
    return kind, {"type": kind, **fields}


def error(status: int, text: str) -> Json:
    kinds = {429: "rate_limit_exceeded", 400: "invalid_request_error"}
    kind = kinds.get(status, "server_error")
    return {"error": {"message": text, "type": kind, "code": kind}}
