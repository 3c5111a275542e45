"""The answer to each request: from the store, or from the service's status.

A function here gets the store of its thread and the parts of the request. routes.py has the path
and method of each.
"""

import json
import os
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from starlette.responses import Response

from ramherd import __version__
from ramherd.api.parameters import RequestParts
from ramherd.api.request_head import HttpError
from ramherd.api.submission import parse_body
from ramherd.core.api_version import API
from ramherd.core.errors import UsageError
from ramherd.core.memory_moment import MemoryMoment
from ramherd.core.model import JobState
from ramherd.core.service_status import ServiceStatus, parse_status
from ramherd.core.units import format_size
from ramherd.core.values import SIZE, WHOLE, parse_amount, parse_variables
from ramherd.show.metrics import Queue, render_metrics
from ramherd.store import listing
from ramherd.store import service_requests as requests
from ramherd.store.census import read_newest_total
from ramherd.store.events import read_event_page, read_event_range
from ramherd.store.herds import read_lost_herds, read_stored_job
from ramherd.store.interrupted_herds import check_free, has_interrupted_jobs
from ramherd.store.job_numbers import find_numbered_job
from ramherd.store.memory_history import read_moments
from ramherd.store.protocol import Store
from ramherd.store.service_requests import Wish
from ramherd.system.procfs import read_rss_bytes

JSON = "application/json"
RECENT_S = 600
# The keys of a queued job that can be changed, as in a job file.
EDITED = {"priority": WHOLE, "memory": SIZE}
METRICS = "text/plain; version=0.0.4; charset=utf-8"


@dataclass
class Answers:
    """`runtime` is the directory of the service's status."""

    state: Path
    runtime: Path

    def version(self, _asked: RequestParts) -> Response:
        return json_response({"api": API, "version": __version__})

    def describe(self, _asked: RequestParts) -> Response:
        from ramherd.api.openapi import describe  # noqa: PLC0415 - 1 MB that few callers need

        return json_response(describe())

    def herds(self, store: Store, asked: RequestParts) -> Response:
        herds = listing.list_herds(
            store, before=asked.query["before"], most=asked.query["limit"], lost=self._lost(store)
        )
        return json_page("herds", herds)

    def herd(self, store: Store, asked: RequestParts) -> Response:
        return json_response(find_herd(store, asked, self._lost(store)))

    def jobs(self, store: Store, asked: RequestParts) -> Response:
        query = asked.query
        jobs = listing.list_jobs(
            store, herd=query["herd"], state=query["state"], after=query["after"],
            most=query["limit"], runs=asked.is_on("runs"), lost=self._lost(store),
        )  # fmt: skip
        return json_page("jobs", jobs)

    def job(self, store: Store, asked: RequestParts) -> Response:
        return json_response(find_job(store, asked, self._lost(store)))

    def cancel(self, store: Store, asked: RequestParts) -> Response:
        return wish(store, find_job(store, asked), Wish.CANCEL)

    def recycle(self, store: Store, asked: RequestParts) -> Response:
        job = find_job(store, asked)
        if job["state"] in (JobState.QUEUED, JobState.WAITING):
            raise HttpError(409, f"job {job['name']!r} does not run: it is {job['state']}")
        return wish(store, job, Wish.RECYCLE)

    def cancel_herd(self, store: Store, asked: RequestParts) -> Response:
        herd = find_herd(store, asked)["herd"]
        wish = Wish.INTERRUPT if asked.is_on("interrupt") else Wish.CANCEL
        wished = requests.wish_for_herd(store, herd, wish)
        return json_response({"herd": herd, "jobs": wished}, 202)

    def resume_herd(self, store: Store, asked: RequestParts) -> Response:
        herd = find_herd(store, asked)["herd"]
        body = parse_body(asked.body, {"env", "max_cost_usd"}) if asked.body else {}
        env, limit = body.get("env"), body.get("max_cost_usd")
        try:
            free = check_free(store, herd, self.runtime)
        except UsageError as error:
            raise HttpError(409, str(error)) from None
        if not has_interrupted_jobs(store, herd):
            raise HttpError(409, f"herd {herd} is complete: there is nothing to resume")
        again = requests.resume_herd(
            store, self.state, free, env and parse_variables(env),
            max_cost_usd=None if limit is None else parse_amount(limit),
        )  # fmt: skip
        return json_response({"herd": herd, "jobs": len(again)}, 202)

    def retry(self, store: Store, asked: RequestParts) -> Response:
        job = find_job(store, asked)
        body = parse_body(asked.body, {"env", "allow"}) if asked.body else {}
        env, allow = body.get("env"), body.get("allow")
        rules = find_rules(store, job["id"], allow) if allow else ()
        again = requests.retry(store, self.state, job["id"], env and parse_variables(env), rules)
        if not again:
            error = requests.explain_no_retry(job["name"], job["state"], job["denied"])
            raise HttpError(409, str(error), hint=error.hint)
        return json_response({"job": job["id"], "jobs": again}, 202)

    def pause_job(self, store: Store, asked: RequestParts) -> Response:
        job = find_job(store, asked)
        if not requests.pause_job(store, job["id"]):
            raise HttpError(409, explain_not_queued(job), hint=hint_for_running(job))
        return json_response({"job": job["id"], "paused": True})

    def resume_job(self, store: Store, asked: RequestParts) -> Response:
        job = find_job(store, asked)
        if not requests.resume_job(store, job["id"]):
            raise HttpError(409, f"job {job['name']!r} is not paused")
        return json_response({"job": job["id"], "paused": False})

    def edit_job(self, store: Store, asked: RequestParts) -> Response:
        job = find_job(store, asked)
        body = parse_body(asked.body, set(EDITED))
        given = {name: kind.parse(body[name]) for name, kind in EDITED.items() if name in body}
        if not given:
            raise HttpError(400, f"nothing to change: give {' or '.join(EDITED)}")
        check_memory(given.get("memory") or 0, self._status().largest_budget_bytes)
        edited = requests.edit_job(
            store, job["id"], priority=given.get("priority"), memory_bytes=given.get("memory")
        )
        if not edited:
            raise HttpError(409, explain_not_queued(job))
        return json_response({"job": job["id"], **given})

    def pause(self, store: Store, _asked: RequestParts) -> Response:
        requests.set_paused(store, paused=True)
        return json_response({"paused": True})

    def resume(self, store: Store, _asked: RequestParts) -> Response:
        requests.set_paused(store, paused=False)
        return json_response({"paused": False})

    def events(self, store: Store, asked: RequestParts) -> Response:
        query = asked.query
        rows = read_event_page(
            store, query["after"], herd=query["herd"], job=query["job"], most=query["limit"]
        )
        first, last = read_event_range(store)
        return json_page("events", rows, first=first, last=last)

    def samples(self, store: Store, asked: RequestParts) -> Response:
        """The last ten minutes, unless the request says otherwise."""
        query, now_s = asked.query, int(time.time())
        until_s = now_s if query["until"] is None else min(query["until"], now_s)
        since_s = until_s - RECENT_S if query["since"] is None else query["since"]
        history = read_moments(store, since_s, until_s, now_s, max(query["points"], 1))
        rows = (describe_moment(moment) for moment in history.moments)
        return json_page("samples", rows, step_s=history.step_s, jobs=history.jobs)

    def snapshot(self, store: Store, _asked: RequestParts) -> Response:
        counts, paused_s = listing.read_job_counts(store), requests.read_paused_s(store)
        pause = {"paused": paused_s is not None, "paused_s": paused_s}
        return json_response({**self._status().as_json(), "jobs": counts, **pause})

    def metrics(self, store: Store, _asked: RequestParts) -> Response:
        queue = Queue(
            listing.read_job_counts(store), listing.read_oldest_queued_s(store), time.time(),
            requests.is_paused(store), read_rss_bytes(os.getpid()), read_newest_total(store),
        )  # fmt: skip
        from ramherd.strays.program_counts import read_program_counts  # noqa: PLC0415 - 1 MB

        # Shared or not, of all agents: 40 ms for 1000 processes.
        status = replace(self._status(), mcp_processes=read_program_counts({}, 0).servers)
        return Response(render_metrics(status, queue), media_type=METRICS)

    def _lost(self, store: Store) -> listing.Lost:
        return read_lost_herds(store, self.runtime)

    def _status(self) -> ServiceStatus:
        """Unknown if the service has not written its status yet."""
        with suppress(FileNotFoundError):
            return parse_status((self.runtime / "status.json").read_bytes())
        return ServiceStatus()


def find_herd(
    store: Store, asked: RequestParts, lost: listing.Lost = listing.NONE_LOST
) -> dict[str, Any]:
    herd = asked.path["herd"]
    return found(listing.read_herd(store, herd, lost), "herd", herd)


def find_job(
    store: Store, asked: RequestParts, lost: listing.Lost = listing.NONE_LOST
) -> dict[str, Any]:
    """Finds a job by its id or number."""
    job = asked.path["job"]
    id_ = find_numbered_job(store, job) or job
    return found(listing.read_job(store, id_, lost), "job", job)


def find_rules(store: Store, job: str, allow: Any) -> tuple[str, ...]:
    """Loads agents only for the few requests that need them."""
    from ramherd.agents.allow_rules import choose_rules, parse_rules  # noqa: PLC0415

    stored = read_stored_job(store, job)
    assert stored is not None
    session = stored.said.get("session")
    return choose_rules(stored.job.name, stored.job.brief, session, parse_rules(allow))


def found(value: dict[str, Any] | None, what: str, name: str) -> dict[str, Any]:
    if value is None:
        raise HttpError(404, f"no {what} {name[:40]!r}")
    return value


def wish(store: Store, job: Mapping[str, Any], wanted: Wish) -> Response:
    if not requests.wish_for_job(store, job["id"], wanted):
        raise HttpError(409, why_not(job))
    return json_response({"job": job["id"], "wish": wanted.value}, 202)


def why_not(job: Mapping[str, Any]) -> str:
    if JobState(job["state"]).is_final:
        return f"job {job['name']!r} has ended ({job['state']})"
    return f"job {job['name']!r} is not the service's: it belongs to a `ramherd run`"


def check_memory(memory_bytes: int, largest_budget_bytes: int) -> None:
    """A job that needs more could never start. A budget of 0 is not known yet."""
    if 0 < largest_budget_bytes < memory_bytes:
        need, most = format_size(memory_bytes), format_size(largest_budget_bytes)
        raise HttpError(400, f"memory of {need} is more than the whole budget of {most}")


def explain_not_queued(job: Mapping[str, Any]) -> str:
    """Why a job cannot be paused or edited."""
    state = JobState(job["state"])
    if state.is_final or state in (JobState.QUEUED, JobState.WAITING):
        return why_not(job)
    return f"job {job['name']!r} is {state}: only a job that is queued can be paused or edited"


def hint_for_running(job: Mapping[str, Any]) -> str:
    """The commands for a job that is already running and cannot be paused."""
    if job["state"] not in (JobState.RUNNING, JobState.HELD):
        return ""
    return f"end it: ramherd cancel {job['number']}; restart it: ramherd recycle {job['number']}"


def describe_moment(moment: MemoryMoment) -> dict[str, Any]:
    """Runs as lists: with 50 runs and 600 moments, names would be most of the bytes."""
    runs = [[int(job), *rest, int(held)] for job, *rest, held in moment.runs]
    return {**moment._asdict(), "runs": runs}


def json_response(value: Any, status: int = 200) -> Response:
    return Response(dump(value) + b"\n", status, media_type=JSON)


def json_page(name: str, rows: Iterable[Any], **others: Any) -> Response:
    """Row by row: json.dumps blocks all other threads until it has finished."""
    body = b'{"%b":[%b]' % (name.encode(), b",".join(map(dump, rows)))
    for other, value in others.items():
        body += b',"%b":%b' % (other.encode(), dump(value))
    return Response(body + b"}\n", media_type=JSON)


def dump(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()
