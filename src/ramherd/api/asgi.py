"""The ASGI application: routes requests by the routing table, and turns errors into one line."""

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import unquote

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from ramherd.api.answers import Answers, find_job, json_response
from ramherd.api.connection_limits import describe_error
from ramherd.api.parameters import RequestParts
from ramherd.api.request_head import HttpError
from ramherd.api.routes import EVENT_STREAM, OPERATIONS, Operation, Work
from ramherd.api.store_threads import StoreThreads
from ramherd.api.streams import LogReader, Streams
from ramherd.api.submission import Submission, http_error
from ramherd.api.submit_request import Submitter, check_json
from ramherd.core.errors import RamherdError

# An environment is 2 MB at most on Linux, before it is JSON.
MOST_SMALL_BYTES = 4 << 20


@dataclass(frozen=True, slots=True)
class Api:
    """The parts that requests need. `wake` makes the service read the store."""

    answers: Answers
    threads: StoreThreads
    streams: Streams
    submitter: Submitter
    wake: Callable[[], None]

    async def answer(self, request: Request, operation: Operation) -> Response:
        given = request.query_params
        query = {one.name: one.parse(given.get(one.name)) for one in operation.query}
        asked = RequestParts(request.path_params, query, request.headers)
        if operation.body and operation.work is Work.WRITE:
            asked = replace(asked, body=await read_small_body(request))
        match operation.work:
            case Work.SUBMIT:
                value = await self.submitter.submit(request)
                self.wake()
                return json_response(value, operation.status)
            case Work.LOG:
                return await self._stream_log(asked, operation.media_type)
            case Work.EVENTS if EVENT_STREAM in request.headers.get("accept", ""):
                return self._stream_events(asked)
        return await self._call(operation, asked)

    async def _call(self, operation: Operation, asked: RequestParts) -> Response:
        assert operation.answer is not None
        answer = operation.answer.__get__(self.answers)
        if operation.work is Work.LOOP:
            response: Response = answer(asked)
        elif operation.work is Work.WRITE:
            response = await self.threads.write(answer, asked)
            self.wake()
        else:
            response = await self.threads.read(answer, asked)
        return response

    async def _stream_log(self, asked: RequestParts, media_type: str) -> Response:
        self.streams.check_room()
        job = await self.threads.read(find_job, asked)
        log = LogReader(
            self.answers.state / "runs", job["id"], asked.query["stream"], asked.query["from"],
            follow=asked.is_on("follow"), runtime=self.answers.runtime,
        )  # fmt: skip
        return StreamingResponse(self.streams.log(log), media_type=media_type)

    def _stream_events(self, asked: RequestParts) -> Response:
        self.streams.check_room()
        query = asked.query
        events = self.streams.events(last_event(asked), query["herd"], query["job"])
        return StreamingResponse(events, media_type=EVENT_STREAM)


async def read_small_body(request: Request) -> bytes:
    check_json(request)
    if int(request.headers.get("content-length", "0")) > MOST_SMALL_BYTES:
        raise HttpError(413, f"the body has more than {MOST_SMALL_BYTES} bytes")
    return await request.body()


def last_event(asked: RequestParts) -> int:
    """A client that reconnects names the last event that it received."""
    text = asked.headers.get("last-event-id", "")
    if text.isascii() and text.isdigit() and len(text) <= 18:
        return int(text)
    return int(asked.query["after"])


def make_application(api: Api) -> ASGIApp:
    paths: dict[str, dict[str, Operation]] = {}
    for operation in OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method] = operation
    application = Starlette(
        routes=[make_route(api, path, methods) for path, methods in paths.items()],
        exception_handlers={
            HttpError: on_http_error, RamherdError: on_ramherd_error, OSError: on_os_error,
            HTTPException: on_routing_error, ClientDisconnect: on_disconnect, Exception: on_bug,
        },
    )  # fmt: skip
    application.router.redirect_slashes = False
    return encoded_slashes(application)


def make_route(api: Api, path: str, methods: dict[str, Operation]) -> Route:
    async def answer(request: Request) -> Response:
        return await api.answer(request, methods[request.method])

    route = Route(path, answer, methods=list(methods))
    # Starlette adds HEAD to GET. The HEAD of a stream would never end.
    route.methods = set(methods)
    return route


def encoded_slashes(application: ASGIApp) -> ASGIApp:
    """A slash that is part of a name, %2F, does not separate parts of the path."""

    async def call(scope: Scope, receive: Receive, send: Send) -> None:
        parts = scope["raw_path"].decode("ascii").split("/")
        scope["path"] = "/".join(unquote(part).replace("/", "%2F") for part in parts)
        await application(scope, receive, send)

    return call


async def on_http_error(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HttpError)
    return json_response(describe_error(error), error.status)


async def on_ramherd_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, RamherdError)
    return await on_http_error(request, http_error(error))


async def on_os_error(request: Request, error: Exception) -> Response:
    """A full disk, or too many open files: an error of the machine, not of the request."""
    assert isinstance(error, OSError)
    hint = "ramherd doctor"
    return await on_http_error(request, HttpError(503, f"cannot do that: {error}", hint=hint))


async def on_routing_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code != 405:
        return await on_http_error(
            request, HttpError(error.status_code, "no such path", hint="GET /v1/openapi.json")
        )
    allowed = ", ".join(sorted(dict(error.headers or {}).get("Allow", "").split(", ")))
    refused = HttpError(405, f"{request.method} is not for this path", hint=allowed)
    response = await on_http_error(request, refused)
    response.headers["Allow"] = allowed
    return response


async def on_disconnect(_request: Request, _error: Exception) -> Response:
    """The client has disconnected: this is never read."""
    return Response(status_code=400)


async def on_bug(request: Request, error: Exception) -> Response:
    """Prints one line here and sends it to the client; then the connection is closed."""
    text = f"a bug: {type(error).__name__}: {error}"
    print(f"ramherd: {request.method} {request.url.path}: {text}", file=sys.stderr, flush=True)
    hint = "report it, with the last lines of the service"
    return await on_http_error(request, HttpError(500, text, hint=hint))


def make_api(state: Path, runtime: Path, rules: Submission, wake: Callable[[], None]) -> Api:
    threads = StoreThreads(state)
    answers, streams = Answers(state, runtime), Streams(threads)
    return Api(answers, threads, streams, Submitter(rules, threads), wake)
