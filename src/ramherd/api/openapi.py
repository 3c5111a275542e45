"""The description of the API as OpenAPI 3.1, made from the routing table and the keys of a job;
`make generate` writes docs/openapi.json.
"""

import re
from http import HTTPStatus

from ramherd import __version__
from ramherd.api.answers import JSON
from ramherd.api.response_shapes import SCHEMAS, ref
from ramherd.api.routes import EVENT_STREAM, OPERATIONS, Operation, Work
from ramherd.core.api_version import FIELD
from ramherd.core.values import Schema

# Errors that any request may get, with their reasons.
ERRORS = {
    400: "the request makes no sense", 401: "no or a wrong token (127.0.0.1 only)",
    403: "sent by a web page", 404: "there is none", 405: "another method",
    408: "the client sends too slowly", 409: "not in its state",
    411: "the body has no Content-Length", 413: "too large", 415: "no JSON",
    429: "too many connections or streams", 431: "too many header fields",
    503: "the store cannot be used now", 505: "not HTTP/1.1",
}  # fmt: skip
VERSION: Schema = {FIELD: {"description": "the version of the API", "schema": {"type": "string"}}}


def describe() -> Schema:
    paths: dict[str, Schema] = {}
    for operation in OPERATIONS:
        path = paths.setdefault(operation.path, {})
        path[operation.method.lower()] = describe_operation(operation)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "ramherd",
            "version": __version__,
            "description": "On a unix socket of the user, and on 127.0.0.1 with a token.",
        },
        "security": [{"token": []}, {}],
        "paths": paths,
        "components": {
            "schemas": SCHEMAS,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def describe_operation(operation: Operation) -> Schema:
    body = {"required": operation.needs_body, "content": {JSON: {"schema": ref(operation.body)}}}
    return {
        "summary": operation.summary,
        "operationId": operation.summary.replace(" ", "_"),
        "parameters": [
            *map(path_part, re.findall(r"{(\w+)}", operation.path)),
            *(one.describe() for one in operation.query),
        ],
        "responses": describe_responses(operation),
        **({"requestBody": body} if operation.body else {}),
    }


def describe_responses(operation: Operation) -> Schema:
    content = {operation.media_type: {"schema": ref(operation.gives)}}
    if operation.work is Work.EVENTS:
        content[EVENT_STREAM] = {"schema": ref("Text")}
    good = {
        "description": HTTPStatus(operation.status).phrase, "headers": VERSION, "content": content,
    }  # fmt: skip
    error = {JSON: {"schema": ref("Error")}}
    return {
        str(operation.status): good,
        **{
            str(code): {"description": text, "headers": VERSION, "content": error}
            for code, text in ERRORS.items()
        },
    }


def path_part(name: str) -> Schema:
    return {
        "name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1},
    }  # fmt: skip
