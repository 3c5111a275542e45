"""Gemini generateContent: what gemini speaks."""

import json
import re
from collections.abc import Iterator

from llm.talk import Asked, Json, Reply, Said
from llm.text import halves


def read(body: Json, path: str) -> Asked:
    talk = [said for content in body["contents"] for said in parts(content)]
    names = [
        function["name"]
        for tool in body.get("tools", ())
        for function in tool.get("functionDeclarations", ())
    ]
    named = re.search(r"/models/([^:/]+):", path)
    wanted = body.get("generationConfig", {})
    schema = wanted.get("responseJsonSchema", wanted.get("responseSchema"))
    return Asked(talk, names, named[1] if named else "", ":stream" in path, schema)


def parts(content: Json) -> Iterator[Said]:
    for part in content.get("parts", ()):
        if "functionCall" in part:
            yield Said("call", json.dumps(part["functionCall"].get("args")))
        elif "functionResponse" in part:
            yield Said("result", json.dumps(part["functionResponse"].get("response")))
        elif "text" in part:
            yield Said("model" if content.get("role") == "model" else "user", part["text"])


def chunk(reply: Reply, asked: Asked, pieces: list[Json], *, last: bool) -> Json:
    candidate: Json = {"content": {"role": "model", "parts": pieces}, "index": 0}
    if not last:
        return {"candidates": [candidate], "modelVersion": asked.model}
    usage = {
        "promptTokenCount": reply.tokens_in, "candidatesTokenCount": reply.tokens_out,
        "totalTokenCount": reply.tokens_in + reply.tokens_out,
    }  # fmt: skip
    return {
        "candidates": [{**candidate, "finishReason": "STOP"}],
        "modelVersion": asked.model, "usageMetadata": usage,
    }  # fmt: skip


def pieces_of(reply: Reply, texts: list[str]) -> list[Json]:
    calls = [{"functionCall": {"name": call.name, "args": call.args}} for call in reply.calls]
    return [*({"text": text} for text in texts), *calls] or [{"text": ""}]


def whole(reply: Reply, asked: Asked) -> Json:
    return chunk(reply, asked, pieces_of(reply, [reply.text]), last=True)


def stream(reply: Reply, asked: Asked) -> Iterator[tuple[str, Json]]:
    pieces = pieces_of(reply, halves(reply.text))
    for piece in pieces[:-1]:
        yield "", chunk(reply, asked, [piece], last=False)
    yield "", chunk(reply, asked, pieces[-1:], last=True)


def error(status: int, text: str) -> Json:
    kinds = {429: "RESOURCE_EXHAUSTED", 400: "INVALID_ARGUMENT", 503: "UNAVAILABLE"}
    return {"error": {"code": status, "message": text, "status": kinds.get(status, "INTERNAL")}}
