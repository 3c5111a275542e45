"""`ramherd.Client`: the service from a script, typed. The command line uses nothing else.

client = ramherd.Client()
herd = client.submit([{"name": "lint", "command": ["./agent.sh", "fix it"]}])
for event in client.events(herd=herd):  # ends when the herd has ended
    print(event["kind"])
print(client.result(herd).done)
"""

import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, overload
from urllib.parse import quote, urlencode, urlsplit

from ramherd.client.herd_result import HerdResult, parse_result
from ramherd.client.herd_summary import summarize
from ramherd.client.http_link import ANSWERS_WITHIN_S, STREAM_S, HttpLink, Response, no_service
from ramherd.client.shapes import (
    EventInfo,
    HerdInfo,
    JobInfo,
    complete_event,
    complete_herd,
    complete_job,
    complete_snapshot,
)
from ramherd.config.paths import runtime_dir
from ramherd.core.errors import NoService, ServiceBusy, StoreError, WaitTimeout
from ramherd.system.unix_socket import is_listening

SOCKET = "api.sock"
UP = "start one: ramherd up"
# A service that restarts is back within seconds.
COMES_BACK_S = 30.0
# The service has no free stream: the client polls for events instead.
ASK_EVERY_S = 1.0
# After these events no run of a herd is live; a retry may follow.
HERD_ENDS = ("herd_ended", "herd_stuck")
# An agent's result may be 16 kB, so a page is a few MB.
PAGE = 250


class Client:
    """Connects to the user's socket, to the socket at `path` (or in the runtime directory `path`),
    or to `url` (http://127.0.0.1:PORT) with the token. Each call raises `NoService` if the service
    does not answer within `timeout_s`.
    """

    def __init__(
        self, path: str | os.PathLike[str] | None = None, *,
        url: str | None = None, token: str | None = None, timeout_s: float = ANSWERS_WITHIN_S,
    ) -> None:  # fmt: skip
        own = None if url is not None else find_socket(path)
        address = urlsplit(url) if url is not None else None
        self._link = HttpLink(own, address, token, timeout_s)

    def submit(
        self, jobs: Sequence[Mapping[str, Any]], env: Mapping[str, str] | None = None, *,
        cwd: str | None = None, defaults: Mapping[str, Any] | None = None,
        profiles: Mapping[str, Mapping[str, Any]] | None = None, source: str | None = None,
        max_cost_usd: float | None = None, on_done: str | None = None,
        start_at_s: float | None = None,
    ) -> str:  # fmt: skip
        """Returns the id of the herd, which is on disk by then. The keys of a job are those of
        `NewJob`; the service checks them. `defaults` has values for jobs that do not set them,
        `profiles` for jobs that name a profile; `source` is the file name for errors. No job starts
        before `start_at_s` (epoch seconds).
        """
        given = {
            "env": env, "cwd": cwd, "defaults": defaults, "profiles": profiles, "source": source,
            "max_cost_usd": max_cost_usd, "on_done": on_done,
            "start_at_s": start_at_s,
        }  # fmt: skip
        body = {"jobs": list(jobs), **{key: v for key, v in given.items() if v is not None}}
        with self._understood():
            return str(self._link.ask("POST", "/v1/herds", body)["herd"])

    def herds(self, limit: int = 100) -> list[HerdInfo]:
        with self._understood():
            return [complete_herd(one) for one in self._get("/v1/herds", limit=limit)["herds"]]

    def herd(self, herd: str) -> HerdInfo:
        with self._understood():
            return complete_herd(self._get(f"/v1/herds/{quote(herd, '')}"))

    def jobs(
        self, herd: str | None = None, state: str | None = None, *, runs: bool = False
    ) -> Iterator[JobInfo]:
        """All jobs, page by page; with their runs on request."""
        asked = {"herd": herd, "state": state, "runs": "true" if runs else "false", "limit": PAGE}
        after = ""
        while page := self._read_jobs(**asked, after=after):
            yield from page
            after = page[-1]["id"]

    def _read_jobs(self, **asked: Any) -> list[JobInfo]:
        with self._understood():
            return [complete_job(one) for one in self._get("/v1/jobs", **asked)["jobs"]]

    def job(self, job: str) -> JobInfo:
        with self._understood():
            return complete_job(self._get(f"/v1/jobs/{quote(job, '')}"))

    def cancel(self, job: str) -> None:
        self._link.ask("POST", f"/v1/jobs/{quote(job, '')}/cancel")

    def cancel_herd(self, herd: str, *, interrupt: bool = False) -> int:
        """Returns the number of jobs. With `interrupt`, `resume_herd` can continue them."""
        target = f"/v1/herds/{quote(herd, '')}/cancel{'?interrupt=true' if interrupt else ''}"
        return int(self._link.ask("POST", target).get("jobs", 0))

    def resume_herd(
        self, herd: str, env: Mapping[str, str] | None = None, *, max_cost_usd: float | None = None
    ) -> int:
        """The service continues an interrupted herd. Returns the number of continued jobs. Runs
        inherit `env`.
        """
        given = {"env": env, "max_cost_usd": max_cost_usd}
        body = {key: value for key, value in given.items() if value is not None}
        return int(self._link.ask("POST", f"/v1/herds/{quote(herd, '')}/resume", body)["jobs"])

    def last_event(self) -> int:
        """The number of the newest event."""
        return int(self._get("/v1/events", limit=1)["last"])

    def retry(
        self, job: str, env: Mapping[str, str] | None = None, *, allow: Sequence[str] = ()
    ) -> list[str]:
        """The jobs that are queued again: this job, and the jobs that were cancelled because of it.
        `env` is for runs of a herd that has ended, whose own environment is gone. With `allow`,
        rules such as `Bash(npm test)`, the job continues its session, even if it is done.
        """
        given = {"env": env, "allow": list(allow) or None}
        body = {key: value for key, value in given.items() if value is not None} or None
        answer = self._link.ask("POST", f"/v1/jobs/{quote(job, '')}/retry", body)
        return list(answer.get("jobs", [job]))

    def recycle(self, job: str) -> None:
        self._link.ask("POST", f"/v1/jobs/{quote(job, '')}/recycle")

    def pause(self, job: str | None = None) -> None:
        """No job starts, or this job does not start, until `resume`."""
        self._link.ask("POST", f"/v1/jobs/{quote(job, '')}/pause" if job else "/v1/pause")

    def resume(self, job: str | None = None) -> None:
        self._link.ask("POST", f"/v1/jobs/{quote(job, '')}/resume" if job else "/v1/resume")

    def edit(
        self, job: str, *, priority: int | None = None, memory: str | int | None = None
    ) -> None:
        """Changes a queued job."""
        given = {"priority": priority, "memory": memory}
        body = {key: value for key, value in given.items() if value is not None}
        self._link.ask("POST", f"/v1/jobs/{quote(job, '')}/edit", body)

    def samples(
        self, since_s: int | None = None, until_s: int | None = None, points: int = 600
    ) -> dict[str, Any]:
        """Memory over time, in epoch seconds; without times, of the last ten minutes."""
        return self._get("/v1/samples", since=since_s, until=until_s, points=points)

    def snapshot(self) -> dict[str, Any]:
        return complete_snapshot(self._get("/v1/snapshot"))

    def metrics(self) -> str:
        with self._link.open("GET", "/metrics") as answer:
            return answer.read_all().decode()

    def logs(
        self, job: str, stream: str = "out", *,
        follow: bool = False, timeout_s: float | None = None,
    ) -> Iterator[bytes]:  # fmt: skip
        """The output of a job; with `follow`, until the job has ended. Raises `WaitTimeout` if that
        takes longer than `timeout_s`.
        """
        query = {"stream": stream, "follow": "true" if follow else "false"}
        target = f"/v1/jobs/{quote(job, '')}/logs?{urlencode(query)}"
        waiting = Deadline(timeout_s, f"job {job} has not ended")
        with self._link.open("GET", target) as answer:
            while chunk := self._read_chunk(answer, waiting, follow=follow):
                yield chunk

    def _read_chunk(self, answer: Response, waiting: "Deadline", *, follow: bool) -> bytes:
        left_s = waiting.left_s()
        try:
            return answer.read_chunk(left_s if follow else ANSWERS_WITHIN_S)
        except TimeoutError as error:
            waiting.left_s()
            raise no_service(error) from None

    def events(
        self, after: int = 0, herd: str | None = None, *, timeout_s: float | None = None
    ) -> Iterator[EventInfo]:
        """Events as they happen, of all herds or of one. The events of one herd stop when it has
        ended, or when all its remaining jobs wait for the user. They continue without a gap when
        the service restarts; a service that does not come back raises `NoService`. Raises
        `WaitTimeout` after `timeout_s`.
        """
        waiting = Deadline(timeout_s, f"herd {herd} has not ended" if herd else "events go on")
        lost_s: float | None = None
        while True:
            try:
                for event in self._read_events(after, herd, waiting):
                    lost_s = None
                    if event is not None:
                        after = event["seq"]
                        yield event
                    if herd is not None and may_be_last(event) and not self._goes_on(herd):
                        return
            except NoService as error:
                if lost_s is not None and time.monotonic() - lost_s >= COMES_BACK_S:
                    raise stayed_away(error) from None
            lost_s = lost_s or time.monotonic()
            waiting.left_s()
            time.sleep(0.2)

    def _goes_on(self, herd: str) -> bool:
        return is_going_on(self.herd(herd))

    def _read_event_page(self, after: int, herd: str | None) -> list[EventInfo]:
        with self._understood():
            page = self._get("/v1/events", after=after, herd=herd)["events"]
            return [complete_event(event) for event in page]

    def _read_events(
        self, after: int, herd: str | None, waiting: "Deadline"
    ) -> Iterator[EventInfo | None]:
        """None when the service reports that there is no new event, or that events are missing."""
        try:
            yield from self._read_event_stream(after, herd, waiting)
        except ServiceBusy:  # no free stream
            time.sleep(ASK_EVERY_S)
            yield from self._read_event_page(after, herd)
            yield None

    def _read_event_stream(
        self, after: int, herd: str | None, waiting: "Deadline"
    ) -> Iterator[EventInfo | None]:
        query = urlencode({"after": after, **({"herd": herd} if herd else {})})
        headers = {"Accept": "text/event-stream"}
        with (
            self._understood(),
            self._link.open("GET", f"/v1/events?{query}", headers=headers) as answer,
        ):
            kind = ""
            while line := answer.read_line(waiting.left_s(STREAM_S)):
                if line.startswith(b"event: "):
                    kind = line[7:].strip().decode()
                elif line.startswith(b"data: ") and kind != "gap":
                    yield complete_event(json.loads(line[6:]))
                elif line.startswith((b":", b"data: ")):
                    yield None
                elif line == b"\n":
                    kind = ""

    def wait(self, herd: str, after: int = 0, *, timeout_s: float | None = None) -> HerdInfo:
        """Waits until the herd has ended, or all its remaining jobs wait for the user. Events up to
        `after` are not read again. Raises `WaitTimeout` after `timeout_s`; the herd continues.
        """
        for _event in self.events(after, herd, timeout_s=timeout_s):
            pass
        return self.herd(herd)

    def summary(self, herd: str) -> dict[str, Any]:
        """The object of `run --json`. Fields that an older service does not have are None."""
        return summarize(self.herd(herd), self.jobs(herd, runs=True))

    def result(self, herd: str) -> HerdResult:
        """`summary`, typed."""
        return parse_result(self.summary(herd))

    def _get(self, path: str, **query: Any) -> dict[str, Any]:
        given = {name: value for name, value in query.items() if value is not None}
        return self._link.ask("GET", f"{path}?{urlencode(given)}" if given else path)

    @contextmanager
    def _understood(self) -> Iterator[None]:
        """A response that lacks a required field is of another version."""
        try:
            yield
        except KeyError as error:
            raise self._link.no_common_version(f"its response has no {error}") from None


class Deadline:
    """The time that a caller still waits, and for what."""

    def __init__(self, timeout_s: float | None, what: str) -> None:
        self._until_s = None if timeout_s is None else time.monotonic() + timeout_s
        self._what = f"{what} within {timeout_s} s"

    @overload
    def left_s(self) -> float | None: ...
    @overload
    def left_s(self, at_most_s: float) -> float: ...
    def left_s(self, at_most_s: float | None = None) -> float | None:
        """Raises WaitTimeout if no time is left."""
        if self._until_s is None:
            return at_most_s
        left_s = self._until_s - time.monotonic()
        if left_s <= 0:
            raise WaitTimeout(self._what)
        return left_s if at_most_s is None else min(left_s, at_most_s)


def find_socket(path: str | os.PathLike[str] | None) -> Path:
    if path is None:
        return runtime_dir() / SOCKET
    found = Path(path).expanduser().absolute()
    if not found.is_dir():
        return found
    if not (found / SOCKET).exists():
        raise NoService(f"no service is running in {found}: it has no {SOCKET}", hint=UP)
    return found / SOCKET


def stayed_away(error: NoService) -> NoService:
    message = f"the ramherd service went away and has not come back for {COMES_BACK_S:g} s"
    return NoService(f"{message}: {error}", hint="start it again, and its herds go on: ramherd up")


def may_be_last(event: EventInfo | None) -> bool:
    return event is None or event["kind"] in HERD_ENDS


def is_going_on(herd: HerdInfo) -> bool:
    """Whether a job of the herd runs, or will run without the user."""
    is_active = any(herd["counts"].get(state) for state in ("queued", "running", "held"))
    return herd["ended_s"] is None and (is_active or not herd["counts"].get("waiting"))


def is_running(path: Path | None = None) -> bool:
    """Whether a service listens."""
    try:
        return is_listening(path or runtime_dir() / SOCKET)
    except StoreError:  # no directory for a socket
        return False
