"""The routes of the API. All answers come from the store, or from the service's status."""

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ramherd.api.forked import answer_apart
from ramherd.api.http import HttpError, Request, Response, json_response
from ramherd.api.streams import EventStream, LogStream
from ramherd.core.errors import RamherdError, StoreError, UsageError
from ramherd.core.model import JobState
from ramherd.core.service_status import ServiceStatus, parse_status
from ramherd.core.values import parse_amount, parse_raw_text, parse_text, parse_variables
from ramherd.jobs.reader import Defaults, make_jobs, parse_defaults
from ramherd.jobs.schema import find_directory
from ramherd.show.metrics import Queue, render_metrics
from ramherd.store.events import read_event_page, read_event_range
from ramherd.store.herds import read_lost_herds
from ramherd.store.listing import (
    LAST_ID,
    list_herds,
    list_jobs,
    read_herd,
    read_job,
    read_job_counts,
    read_oldest_queued_s,
)
from ramherd.store.owner import Owner
from ramherd.store.protocol import Store
from ramherd.store.service_requests import (
    Wish,
    is_paused,
    retry,
    set_paused,
    submit,
    wish_for_herd,
    wish_for_job,
)
from ramherd.system.ids import new_id
from ramherd.system.procfs import read_rss_bytes

MOST_JOBS = 100_000
MOST_ROWS = 10_000
# Some thousand jobs.
BIG_BODY_BYTES = 256 << 10
# The modules that check agents take a megabyte, which is freed with the child.
PROMPT = b'"prompt"'
EVENT_STREAM = "text/event-stream"
HERD_KEYS = {"jobs", "env", "cwd", "defaults", "profiles", "source", "max_cost_usd"}


@dataclass
class Api:
    store: Store
    state: Path
    runtime: Path
    # Wakes the supervisor, which reads the store.
    wake: Callable[[], None] = lambda: None
    defaults: Defaults = field(default_factory=Defaults)

    def answer(self, request: Request) -> Response:
        methods, values = find_route(request.path)
        if request.method not in methods:
            allowed = ", ".join(sorted(methods))
            error = {"error": f"{request.method} is not for this path", "hint": allowed}
            return replace(json_response(error, 405), headers={"Allow": allowed})
        with as_http_errors():
            return methods[request.method](self, request, *values)

    def describe(self, _request: Request) -> Response:
        from ramherd.api.openapi import describe  # noqa: PLC0415 - 1 MB that few callers need

        return json_response(describe())

    def submit(self, request: Request) -> Response:
        if len(request.body) < BIG_BODY_BYTES and PROMPT not in request.body:
            answer = self._submit(self.store, request)
        else:
            answer = answer_apart(lambda: self._submit_apart(request))
        if answer.status == 201:
            self.wake()
        return answer

    def _submit_apart(self, request: Request) -> Response:
        with closing(self.store.open_another()) as store, as_http_errors():
            return self._submit(store, request)

    def _submit(self, store: Store, request: Request) -> Response:
        body = read_body(request, HERD_KEYS)
        tables, env, limit = body.get("jobs"), body.get("env"), body.get("max_cost_usd")
        if not isinstance(tables, list) or len(tables) > MOST_JOBS:
            raise UsageError(f"'jobs' is not a list of at most {MOST_JOBS} jobs")
        if env is not None:
            parse_variables(env)
        limit = self.defaults.max_cost_usd if limit is None else parse_amount(limit)
        herd = new_id()
        defaults = choose_defaults(self.defaults, body)
        jobs = make_jobs(tables, parse_text(body.get("source", "the request")), herd, defaults)
        if any(job.brief is not None for job in jobs):
            from ramherd.supervisor.check_agents import prepare  # noqa: PLC0415 - for these only

            folder = self.state / "worktrees"
            jobs = prepare(jobs, folder, path=defaults.path, max_cost_usd=limit)
        submit(store, self.state, herd, jobs, env, max_cost_usd=limit)
        return json_response({"herd": herd, "jobs": len(jobs)}, 201)

    def herds(self, request: Request) -> Response:
        before = request.query.get("before", LAST_ID)
        herds = list_herds(self.store, before=before, most=most(request), lost=self._lost())
        return json_response({"herds": herds})

    def herd(self, _request: Request, herd: str) -> Response:
        return json_response(found(read_herd(self.store, herd, self._lost()), "herd", herd))

    def jobs(self, request: Request) -> Response:
        state = request.query.get("state")
        if state is not None and state not in list(JobState):
            raise UsageError(f"{state!r} is not a state", hint=", ".join(JobState))
        jobs = list_jobs(
            self.store, herd=request.query.get("herd"), state=state,
            after=request.query.get("after", ""), most=most(request),
            runs=one_of(request, "runs", ("false", "true")) == "true", lost=self._lost(),
        )  # fmt: skip
        return json_response({"jobs": jobs})

    def job(self, _request: Request, job: str) -> Response:
        return json_response(found(read_job(self.store, job, self._lost()), "job", job))

    def logs(self, request: Request, job: str) -> Response:
        found(read_job(self.store, job), "job", job)
        stream = one_of(request, "stream", ("out", "err"))
        follow = one_of(request, "follow", ("false", "true")) == "true"
        start = number(request, "from", 0)
        log = LogStream(
            self.store, self.state / "runs", job, stream, start,
            follow=follow, runtime=self.runtime,
        )  # fmt: skip
        return Response(200, content_type="application/octet-stream", stream=log.next_part)

    def cancel(self, _request: Request, job: str) -> Response:
        return self._wish(job, Wish.CANCEL)

    def recycle(self, _request: Request, job: str) -> Response:
        shown = found(read_job(self.store, job), "job", job)
        if shown["state"] in (JobState.QUEUED, JobState.WAITING):
            raise HttpError(409, f"job {shown['name']!r} does not run: it is {shown['state']}")
        return self._wish(job, Wish.RECYCLE)

    def _wish(self, job: str, wish: Wish) -> Response:
        shown = found(read_job(self.store, job), "job", job)
        if not wish_for_job(self.store, job, wish):
            raise HttpError(409, why_not(shown))
        self.wake()
        return json_response({"job": job, "wish": wish.value}, 202)

    def cancel_herd(self, _request: Request, herd: str) -> Response:
        found(read_herd(self.store, herd), "herd", herd)
        number_of = wish_for_herd(self.store, herd, Wish.CANCEL)
        self.wake()
        return json_response({"herd": herd, "jobs": number_of}, 202)

    def retry(self, request: Request, job: str) -> Response:
        shown = found(read_job(self.store, job), "job", job)
        env = read_body(request, {"env"}).get("env") if request.body else None
        again = retry(self.store, self.state, job, env and parse_variables(env))
        if not again:
            raise HttpError(409, f"job {shown['name']!r} has not failed: it is {shown['state']}")
        self.wake()
        return json_response({"job": job, "jobs": again}, 202)

    def pause(self, _request: Request) -> Response:
        return self._set_paused(paused=True)

    def resume(self, _request: Request) -> Response:
        return self._set_paused(paused=False)

    def _set_paused(self, *, paused: bool) -> Response:
        set_paused(self.store, paused=paused)
        self.wake()
        return json_response({"paused": paused})

    def events(self, request: Request) -> Response:
        herd, job = request.query.get("herd"), request.query.get("job")
        if EVENT_STREAM in request.headers.get("accept", ""):
            stream = EventStream(self.store, last_event(request), herd, job)
            return Response(200, content_type=EVENT_STREAM, stream=stream.next_part)
        after = number(request, "after", 0)
        rows = read_event_page(self.store, after, herd=herd, job=job, most=most(request))
        first, last = read_event_range(self.store)
        return json_response({"events": rows, "first": first, "last": last})

    def snapshot(self, _request: Request) -> Response:
        status = self._status()
        shown = {
            **status.as_json(),
            "jobs": read_job_counts(self.store),
            "paused": is_paused(self.store),
        }
        return json_response(shown)

    def metrics(self, _request: Request) -> Response:
        queue = Queue(
            read_job_counts(self.store), read_oldest_queued_s(self.store), time.time(),
            is_paused(self.store), read_rss_bytes(os.getpid()),
        )  # fmt: skip
        text = render_metrics(self._status(), queue)
        return Response(200, text.encode(), "text/plain; version=0.0.4; charset=utf-8")

    def _lost(self) -> dict[str, Owner]:
        return read_lost_herds(self.store, self.runtime)

    def _status(self) -> ServiceStatus:
        try:
            return parse_status((self.runtime / "status.json").read_bytes())
        except FileNotFoundError:
            return ServiceStatus()


@contextmanager
def as_http_errors() -> Iterator[None]:
    try:
        yield
    except StoreError as error:
        raise HttpError(503, str(error), hint=error.hint) from None
    except RamherdError as error:
        raise HttpError(400, str(error), hint=error.hint) from None


Handler = Callable[..., Response]
ROUTES: dict[tuple[str, ...], dict[str, Handler]] = {
    ("v1", "openapi.json"): {"GET": Api.describe},
    ("v1", "herds"): {"GET": Api.herds, "POST": Api.submit},
    ("v1", "herds", "{herd}"): {"GET": Api.herd},
    ("v1", "herds", "{herd}", "cancel"): {"POST": Api.cancel_herd},
    ("v1", "jobs"): {"GET": Api.jobs},
    ("v1", "jobs", "{job}"): {"GET": Api.job},
    ("v1", "jobs", "{job}", "logs"): {"GET": Api.logs},
    ("v1", "jobs", "{job}", "cancel"): {"POST": Api.cancel},
    ("v1", "jobs", "{job}", "retry"): {"POST": Api.retry},
    ("v1", "jobs", "{job}", "recycle"): {"POST": Api.recycle},
    ("v1", "pause"): {"POST": Api.pause},
    ("v1", "resume"): {"POST": Api.resume},
    ("v1", "events"): {"GET": Api.events},
    ("v1", "snapshot"): {"GET": Api.snapshot},
    ("metrics",): {"GET": Api.metrics},
}


def find_route(path: tuple[str, ...]) -> tuple[dict[str, Handler], list[str]]:
    for pattern, methods in ROUTES.items():
        if len(pattern) == len(path):
            pairs = list(zip(pattern, path, strict=True))
            if all(part == given or (part[0] == "{" and given) for part, given in pairs):
                return methods, [given for part, given in pairs if part[0] == "{"]
    raise HttpError(404, "no such path", hint="GET /v1/openapi.json")


def read_body(request: Request, keys: set[str]) -> dict[str, Any]:
    kind = request.headers.get("content-type", "application/json").partition(";")[0].strip()
    if kind.lower() != "application/json":
        raise HttpError(415, f"the body is {kind[:40]!r}", hint="send application/json")
    try:
        value = json.loads(request.body)
    except (ValueError, RecursionError):
        raise HttpError(400, "the body is not JSON") from None
    if not isinstance(value, dict) or not set(value) <= keys:
        raise HttpError(400, f"the body is not an object with {' and '.join(sorted(keys))}")
    return value


def choose_defaults(own: Defaults, body: Mapping[str, Any]) -> Defaults:
    """What the request says for jobs that give no value, above the service's own settings."""
    profiles = body.get("profiles", {})
    if not isinstance(profiles, dict):
        raise UsageError("'profiles' is not an object")
    parsed = {name: parse_defaults(table, f"profile {name!r}") for name, table in profiles.items()}
    named = {name: {**own.values, **values} for name, values in parsed.items()}
    return replace(
        own,
        values={**own.values, **parse_defaults(body.get("defaults", {}), "the defaults")},
        profiles={**own.profiles, **named},
        here=find_directory(parse_raw_text(body["cwd"]), None) if "cwd" in body else None,
        path=None if body.get("env") is None else body["env"].get("PATH"),
    )


def found(value: dict[str, Any] | None, what: str, name: str) -> dict[str, Any]:
    if value is None:
        raise HttpError(404, f"no {what} {name[:40]!r}")
    return value


def why_not(shown: Mapping[str, Any]) -> str:
    if JobState(shown["state"]).is_final:
        return f"job {shown['name']!r} has ended: it is {shown['state']}"
    return f"job {shown['name']!r} is not the service's: it belongs to a `ramherd run`"


def most(request: Request) -> int:
    return min(number(request, "limit", 1000), MOST_ROWS)


def number(request: Request, name: str, default: int) -> int:
    text = request.query.get(name, str(default))
    # SQLite keeps 64 bits.
    if not (text.isascii() and text.isdigit()) or len(text) > 18:
        raise HttpError(400, f"{name} is not a whole number")
    return int(text)


def one_of(request: Request, name: str, words: tuple[str, ...]) -> str:
    """The first of the words is the default."""
    word = request.query.get(name, words[0])
    if word not in words:
        raise HttpError(400, f"{name} is none of {', '.join(words)}")
    return word


def last_event(request: Request) -> int:
    """A client that connects again names the last event it got."""
    text = request.headers.get("last-event-id", "")
    if text.isascii() and text.isdigit() and len(text) <= 18:
        return int(text)
    return number(request, "after", 0)
