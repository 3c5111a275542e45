"""`ramherd.Client`: the service from a script, typed. The command line uses nothing else.

client = ramherd.Client()
herd = client.submit([{"name": "lint", "command": ["./agent.sh", "fix it"]}])
print(client.wait(herd)["counts"])
"""

import http.client
import json
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NotRequired, TypedDict, cast
from urllib.parse import quote, urlencode, urlsplit

from ramherd.config.paths import runtime_dir, state_path
from ramherd.core.agent_task import SAID
from ramherd.core.errors import NoService, RamherdError, StoreError, UsageError
from ramherd.system.environ import read_own_environ
from ramherd.system.ids import new_id
from ramherd.system.unix_socket import connect, is_listening
from ramherd.system.user_files import read_cwd

if TYPE_CHECKING:
    from ramherd.supervisor.run_herd import Rules

# A service that is started again is back within seconds.
COMES_BACK_S = 30.0
# The result of an agent may be 16 kB: a page is some MB.
PAGE = 250


class RunInfo(TypedDict):
    run: str
    attempt: int
    started_s: float
    ended_s: float | None
    end: str | None
    exit_code: int | None
    signal: int | None
    reason: dict[str, Any] | None
    peak_bytes: int | None


class JobInfo(TypedDict):
    id: str
    herd: str
    name: str
    state: str
    reason: dict[str, Any]
    attempts: int
    failures: int
    priority: int
    updated_s: float
    wish: str | None
    label: str
    owner_lost: bool
    session: str | None
    turns: int | None
    tokens_in: int | None
    tokens_out: int | None
    cost_usd: float | None
    result: str | None
    model: str | None
    worktree: str | None
    runs: NotRequired[list[RunInfo]]


class HerdInfo(TypedDict):
    herd: str
    created_s: float
    ended_s: float | None
    service: bool
    owner_lost: bool
    counts: dict[str, int]
    summary: NotRequired[dict[str, Any] | None]


class EventInfo(TypedDict):
    v: int
    seq: int
    at_s: float
    kind: str
    herd: str
    job: str
    run: str
    node: str
    reason: dict[str, Any]


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: Path, timeout_s: float | None) -> None:
        super().__init__("localhost", timeout=timeout_s)
        self._path = path
        self._timeout_s = timeout_s

    def connect(self) -> None:
        self.sock = connect(self._path, self._timeout_s)


class Client:
    """Over the user's socket, or over `url` (http://127.0.0.1:PORT) with the token."""

    def __init__(
        self, path: Path | None = None, *,
        url: str | None = None, token: str | None = None, timeout_s: float = 60.0,
    ) -> None:  # fmt: skip
        self._path = None if url is not None else path or runtime_dir() / "api.sock"
        self._address = urlsplit(url) if url is not None else None
        self._token = token
        self._timeout_s = timeout_s

    def submit(
        self, jobs: Sequence[Mapping[str, Any]], env: Mapping[str, str] | None = None, *,
        cwd: str | None = None, defaults: Mapping[str, Any] | None = None,
        profiles: Mapping[str, Mapping[str, Any]] | None = None, source: str | None = None,
        max_cost_usd: float | None = None,
    ) -> str:  # fmt: skip
        """The id of the herd, which is on disk when this returns. The keys of a job are those of
        `NewJob`; the service checks them. `defaults` has values for jobs that do not give one,
        `profiles` for jobs that name a profile; `source` is the name of the file, for errors.
        """
        given = {
            "env": env, "cwd": cwd, "defaults": defaults, "profiles": profiles, "source": source,
            "max_cost_usd": max_cost_usd,
        }  # fmt: skip
        body = {"jobs": list(jobs), **{key: v for key, v in given.items() if v is not None}}
        return str(self._ask("POST", "/v1/herds", body=body)["herd"])

    def herds(self, limit: int = 100) -> list[HerdInfo]:
        return cast("list[HerdInfo]", self._ask("GET", "/v1/herds", limit=limit)["herds"])

    def herd(self, herd: str) -> HerdInfo:
        return cast("HerdInfo", self._ask("GET", f"/v1/herds/{quote(herd, '')}"))

    def jobs(
        self, herd: str | None = None, state: str | None = None, *, runs: bool = False
    ) -> Iterator[JobInfo]:
        """All of them, page by page; with their runs if asked for."""
        asked = {"herd": herd, "state": state, "runs": "true" if runs else "false", "limit": PAGE}
        after = ""
        while page := self._ask("GET", "/v1/jobs", **asked, after=after)["jobs"]:
            yield from page
            after = page[-1]["id"]

    def job(self, job: str) -> JobInfo:
        return cast("JobInfo", self._ask("GET", f"/v1/jobs/{quote(job, '')}"))

    def cancel(self, job: str) -> None:
        self._ask("POST", f"/v1/jobs/{quote(job, '')}/cancel")

    def cancel_herd(self, herd: str) -> int:
        return int(self._ask("POST", f"/v1/herds/{quote(herd, '')}/cancel")["jobs"])

    def retry(self, job: str, env: Mapping[str, str] | None = None) -> list[str]:
        """`env` is for runs of a herd that has ended, whose own environment is gone."""
        body = None if env is None else {"env": env}
        return list(self._ask("POST", f"/v1/jobs/{quote(job, '')}/retry", body=body)["jobs"])

    def recycle(self, job: str) -> None:
        self._ask("POST", f"/v1/jobs/{quote(job, '')}/recycle")

    def pause(self) -> None:
        self._ask("POST", "/v1/pause")

    def resume(self) -> None:
        self._ask("POST", "/v1/resume")

    def snapshot(self) -> dict[str, Any]:
        return self._ask("GET", "/v1/snapshot")

    def metrics(self) -> str:
        with self._open("GET", "/metrics") as answer:
            return answer.read().decode()

    def logs(self, job: str, stream: str = "out", *, follow: bool = False) -> Iterator[bytes]:
        """What it printed; followed until the job has ended."""
        query = {"stream": stream, "follow": "true" if follow else "false"}
        target = f"/v1/jobs/{quote(job, '')}/logs?{urlencode(query)}"
        with self._open("GET", target, timeout_s=None if follow else self._timeout_s) as answer:
            while chunk := answer.read1(1 << 16):
                yield chunk

    def events(self, after: int = 0, herd: str | None = None) -> Iterator[EventInfo]:
        """Events as they happen. If the service is started again, they continue without a gap."""
        lost_s: float | None = None
        while True:
            try:
                for event in self._read_events(after, herd):
                    after, lost_s = event["seq"], None
                    yield event
            except NoService:
                if lost_s is not None and time.monotonic() - lost_s >= COMES_BACK_S:
                    raise
            lost_s = lost_s or time.monotonic()
            time.sleep(0.2)

    def _read_events(self, after: int, herd: str | None) -> Iterator[EventInfo]:
        query = urlencode({"after": after, **({"herd": herd} if herd else {})})
        headers = {"Accept": "text/event-stream"}
        with self._open("GET", f"/v1/events?{query}", headers=headers) as answer:
            kind = ""
            while line := read_line(answer):
                if line.startswith(b"event: "):
                    kind = line[7:].strip().decode()
                elif line.startswith(b"data: ") and kind != "gap":
                    yield json.loads(line[6:])
                elif line == b"\n":
                    kind = ""

    def wait(self, herd: str) -> HerdInfo:
        """Until it has ended."""
        for event in self.events(herd=herd):
            if event["kind"] == "herd_ended" and (found := self.herd(herd))["ended_s"]:
                return found
        raise AssertionError("events go on for ever")

    def summary(self, herd: str) -> dict[str, Any]:
        """The keys of `run --json` that are about one herd; the others are in the metrics."""
        info = self.herd(herd)
        results = [result_of(job) for job in self.jobs(herd, runs=True)]
        states = Counter(result["state"] for result in results)
        ends = Counter(end for result in results for end in result.pop("ends"))
        return {
            "herd": herd,
            "jobs": len(results),
            **{state: states[state] for state in ("done", "failed", "cancelled")},
            "wall_s": round((info["ended_s"] or info["created_s"]) - info["created_s"], 3),
            "oom_kills": ends["oom_kill"],
            "limit_kills": ends["limit_kill"],
            "preempted": ends["preempted"],
            "recycled": ends["recycled"],
            "service": True,
            "results": results,
        }

    def _ask(self, method: str, path: str, *, body: Any = None, **query: Any) -> dict[str, Any]:
        given = {name: value for name, value in query.items() if value is not None}
        target = f"{path}?{urlencode(given)}" if given else path
        data = None if body is None else json.dumps(body).encode()
        with self._open(method, target, data=data) as answer:
            return cast("dict[str, Any]", json.loads(answer.read()))

    def _open(
        self, method: str, target: str, *, data: bytes | None = None,
        headers: Mapping[str, str] | None = None, timeout_s: float | None = -1.0,
    ) -> http.client.HTTPResponse:  # fmt: skip
        link = self._connection(self._timeout_s if timeout_s == -1.0 else timeout_s)
        sent = {"Connection": "close", **(headers or {})}
        if data is not None:
            sent["Content-Type"] = "application/json"
        if self._token is not None:
            sent["Authorization"] = f"Bearer {self._token}"
        try:
            link.request(method, target, data, sent)
            answer = link.getresponse()
        except (OSError, http.client.HTTPException) as error:
            link.close()
            raise no_service(error) from None
        if answer.status >= 400:
            raise explain(answer)
        return answer

    def _connection(self, timeout_s: float | None) -> http.client.HTTPConnection:
        if self._address is not None:
            host, port = self._address.hostname or "127.0.0.1", self._address.port
            return http.client.HTTPConnection(host, port, timeout=timeout_s)
        assert self._path is not None
        return UnixConnection(self._path, timeout_s)


def result_of(job: JobInfo) -> dict[str, Any]:
    runs = job.get("runs", [])
    last = runs[-1] if runs else None
    return {
        "job": job["name"],
        "state": job["state"],
        "end": last["end"] if last is not None else None,
        "exit_code": last["exit_code"] if last is not None else None,
        "runs": len(runs),
        "peak_bytes": max((run["peak_bytes"] or 0 for run in runs), default=0),
        "wall_s": round(sum((run["ended_s"] or 0) - run["started_s"] for run in runs), 3),
        "log": str(state_path() / "runs" / last["run"] / "out") if last is not None else None,
        "reason": job["reason"],
        **{name: job.get(name) for name in SAID},
        "ends": [run["end"] for run in runs],
    }


def no_service(error: Exception) -> RamherdError:
    if isinstance(error, FileNotFoundError | ConnectionRefusedError):
        return NoService("no ramherd service is running", hint="start one: ramherd up")
    return NoService(f"the ramherd service does not answer: {error}", hint="see ramherd up")


def read_line(answer: http.client.HTTPResponse) -> bytes:
    """b"" when the other end went away."""
    try:
        return answer.readline()
    except (OSError, http.client.HTTPException):
        return b""


def explain(answer: http.client.HTTPResponse) -> RamherdError:
    with answer:
        try:
            body = json.loads(answer.read())
        except ValueError:
            return NoService(f"the service answers {answer.status} {answer.reason}")
    message, hint = str(body.get("error", "")), str(body.get("hint", ""))
    kind = UsageError if answer.status < 500 else NoService
    return kind(message, hint=hint)


def is_running(path: Path | None = None) -> bool:
    """Whether a service listens."""
    try:
        return is_listening(path or runtime_dir() / "api.sock")
    except StoreError:  # no directory in which one could
        return False


def ignore(*_values: object) -> None:
    """A script reads what its herd came to, not its events."""


def run(
    jobs: Sequence[Mapping[str, Any]], *, own: bool = False, rules: "Rules | None" = None
) -> dict[str, Any]:
    """Runs jobs and waits for them, in the service if one is running, else here (with `own` or
    `rules` always here). Returns the object of `ramherd run --json`.
    """
    if not own and rules is None and is_running():
        client = Client()
        herd = client.submit(jobs, read_own_environ(), cwd=read_cwd())
        client.wait(herd)
        return client.summary(herd)
    from ramherd.jobs.reader import Defaults, make_jobs  # noqa: PLC0415 - only without a service
    from ramherd.show.view import Display  # noqa: PLC0415
    from ramherd.supervisor.run_herd import Rules, run_herd  # noqa: PLC0415

    herd = new_id()
    made = make_jobs([dict(job) for job in jobs], "the jobs", herd, Defaults())
    return run_herd(herd, made, rules or Rules(), Display(ignore, ignore)).summary
