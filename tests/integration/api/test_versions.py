"""Client and service of different versions: the last one was recorded, in tests/data/api.

The client of this version gets the recorded responses, whole and with fields missing; the API of
this version gets the recorded requests.
"""

import json
import re
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from integration.api.conftest import Served
from ramherd.cli.main import call
from ramherd.client.client import Client
from ramherd.core.api_version import API, FIELD
from ramherd.core.errors import NoService
from ramherd.system.unix_socket import connect, listen

RECORDED = sorted(Path(__file__).parents[2].glob("data/api/*.json"))
ID = re.compile(r"\b01[0-9A-HJKMNP-TV-Z]{24}\b")


def read_exchanges(path: Path) -> list[dict[str, str]]:
    exchanges: list[dict[str, str]] = json.loads(path.read_text())["exchanges"]
    return exchanges


def route_of(request: str) -> str:
    """Method and path, with the same name for each id."""
    method, target = request.split(" ", 2)[:2]
    return f"{method} {ID.sub('ID', target.partition('?')[0])}"


@dataclass
class OldService:
    """Plays the recorded response to whoever asks for the same; with `change` made to its body."""

    exchanges: list[dict[str, str]]
    change: Callable[[Any], Any] = lambda body: body
    asked: list[str] = field(default_factory=list)

    def answer(self, request: str) -> str:
        route = route_of(request)
        self.asked.append(route)
        after = "after=" in request and "&after=&" not in f"{request.split()[1]}&"
        if route == "GET /v1/jobs" and after:
            return self._render("HTTP/1.1 200 OK", '{"jobs":[]}')
        for exchange in self.exchanges:
            if route_of(exchange["request"]) == route:
                return self._changed(exchange["response"])
        return self._render("HTTP/1.1 404 Not Found", '{"error":"no such path"}')

    def _changed(self, response: str) -> str:
        head, _, body = response.partition("\r\n\r\n")
        if "application/json" not in head:
            return response
        return self._render(head.split("\r\n")[0], json.dumps(self.change(json.loads(body))))

    def _render(self, line: str, body: str) -> str:
        fields = f"Content-Type: application/json\r\nContent-Length: {len(body.encode())}"
        return f"{line}\r\n{fields}\r\nConnection: close\r\n\r\n{body}"


@contextmanager
def served(service: OldService, path: Path) -> Iterator[None]:
    with listen(path) as listener:
        thread = threading.Thread(target=accept_all, args=(listener, service), daemon=True)
        thread.start()
        yield
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()


def accept_all(listener: socket.socket, service: OldService) -> None:
    while True:
        try:
            link, _address = listener.accept()
        except OSError:
            return
        with link:
            request = link.recv(1 << 16).decode()
            if request:
                link.sendall(service.answer(request).encode())
                link.shutdown(socket.SHUT_WR)
                link.recv(1 << 16)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "runtime").mkdir(mode=0o700)
    monkeypatch.setenv("RAMHERD_RUNTIME_DIR", str(tmp_path / "runtime"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "jobs.jsonl").write_text('{"command": "true"}\n')
    return tmp_path


def without(name: str) -> Callable[[Any], Any]:
    """The same without each field of this name, and with a new one."""

    def change(value: Any) -> Any:
        if isinstance(value, dict):
            kept = {key: change(inner) for key, inner in value.items() if key != name}
            return {**kept, "a_field_of_tomorrow": 1}
        return [change(inner) for inner in value] if isinstance(value, list) else value

    return change


@pytest.mark.parametrize("recorded", RECORDED, ids=lambda path: path.stem)
def test_this_client_works_with_an_older_service(
    recorded: Path, here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Every verb that asks the service; what that does not say is unknown."""
    service = OldService(read_exchanges(recorded))
    with served(service, here / "runtime/api.sock"):
        assert call(["jobs", "--all", "--herd", "X"]) == 0
        assert call(["submit", str(here / "jobs.jsonl"), "--wait", "--json"]) == 1
        assert call(["pause"]) == 0
        client = Client(here / "runtime/api.sock")
        assert [job["name"] for job in client.jobs("X")] == ["good", "bad", "late"]
        assert client.snapshot()["runs"][0]["name"] == "long"
        assert client.herds()[0]["ended_s"]
        assert "ramherd_paused" in client.metrics()
    assert "bug" not in capfd.readouterr().err


NAMES = (
    "doing", "runs", "turns", "cost_usd", "reason", "why", "wish", "attempts", "counts", "ended_s",
    "created_s", "peak_bytes", "summary", "waits_for", "level", "used_bytes",
)  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_a_missing_field_is_unknown(
    name: str, here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """And no defect of ours."""
    service = OldService(read_exchanges(RECORDED[-1]), without(name))
    with served(service, here / "runtime/api.sock"):
        assert call(["jobs", "--herd", "X"]) == 0
        assert call(["submit", str(here / "jobs.jsonl"), "--wait", "--json"]) == 1
    assert "bug" not in capfd.readouterr().err


@pytest.mark.parametrize("name", ["herd", "id", "state", "jobs"])
def test_where_they_cannot_talk_one_line_says_so(
    name: str, here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """With both versions, and what to do."""
    service = OldService(read_exchanges(RECORDED[-1]), without(name))
    with served(service, here / "runtime/api.sock"):
        verb = ["jobs", "--herd", "X"] if name != "herd" else ["submit", str(here / "jobs.jsonl")]
        assert call(verb) == 3
    told = capfd.readouterr().err
    assert f"its response has no '{name}' (the service has API 1, this command API {API})" in told
    assert "ramherd up" in told


def test_a_path_that_the_service_does_not_know_is_named(here: Path) -> None:
    """As a service without /v1 would answer."""
    with (
        served(OldService([]), here / "runtime/api.sock"),
        pytest.raises(NoService, match="does not know GET /v1/snapshot"),
    ):
        Client(here / "runtime/api.sock").snapshot()


@pytest.mark.parametrize("recorded", RECORDED, ids=lambda path: path.stem)
def test_an_older_client_works_with_this_service(recorded: Path, api: Served) -> None:
    """Each recorded request gets the same status, and at least the same fields."""
    ids: dict[str, str] = {}
    for exchange in read_exchanges(recorded):
        request = exchange["request"]
        for old, new in ids.items():
            request = request.replace(old, new)
        if "/events" in request or "/logs" in request:
            continue
        status, fields, body = ask(api, request)
        assert fields[FIELD.lower()] == str(API)
        old_status, _fields, old_body = parse(exchange["response"])
        if api_alone_answers(request):
            assert status == old_status, request
            assert missing(old_body, body) == [], request
        learn_ids(ids, old_body, body)


def api_alone_answers(request: str) -> bool:
    """There is no supervisor here: jobs stay queued, and have no runs."""
    return not re.search(r"/(retry|recycle|cancel) ", request)


def ask(api: Served, request: str) -> tuple[int, dict[str, str], Any]:
    with connect(api.runtime / "api.sock", 10.0) as link:
        link.sendall(request.encode())
        answer = b""
        while chunk := link.recv(1 << 16):
            answer += chunk
    return parse(answer.decode())


def parse(response: str) -> tuple[int, dict[str, str], Any]:
    head, _, body = response.partition("\r\n\r\n")
    line, *lines = head.split("\r\n")
    fields = {name.lower(): value for name, value in (one.split(": ", 1) for one in lines)}
    is_json = fields["content-type"] == "application/json"
    return int(line.split()[1]), fields, json.loads(body) if is_json else body


def missing(old: Any, new: Any, path: str = "") -> list[str]:
    """Fields of an old response that the new one does not have, below what both have."""
    if isinstance(old, dict) and isinstance(new, dict):
        if path.endswith(("counts", "jobs", "reason", "summary", "runs")):
            return []
        return [f"{path}.{key}" for key in old if key not in new] + [
            found for key in old if key in new for found in missing(old[key], new[key], key)
        ]
    if isinstance(old, list) and isinstance(new, list) and old and new:
        return missing(old[0], new[0], path)
    return []


def learn_ids(ids: dict[str, str], old: Any, new: Any) -> None:
    """The ids of this service, for those in the recorded requests."""
    if isinstance(old, dict) and isinstance(new, dict):
        for name in ("herd", "id"):
            if name in old and name in new:
                ids[old[name]] = new[name]
        for key in old:
            learn_ids(ids, old[key], new.get(key))
    elif isinstance(old, list) and isinstance(new, list):
        for one, other in zip(old, new, strict=False):
            learn_ids(ids, one, other)
