"""What can be asked of the service, by its own client."""

import http.client
import socket
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import ramherd
from integration.api.conftest import Served
from ramherd.client.client import Client, is_running
from ramherd.core.errors import NoService, UsageError
from ramherd.core.memory_moment import MemoryMoment, RunMemory
from ramherd.core.model import Event, JobState, Reason, Why
from ramherd.store.events import add_event
from ramherd.store.herds import add_run, end_herd, set_job
from ramherd.store.memory_history import record_moments
from ramherd.store.service_queue import ServiceQueue
from ramherd.system.procfs import read_peak_rss_bytes, read_rss_bytes
from ramherd.system.unix_socket import connect, listen

TRUE = {"name": "a", "command": ["true"]}
DONE = Reason(Why.EXITED, code=0)


def settle(api: Served, job: str, state: JobState) -> None:
    """As the supervisor does."""
    backlog = ServiceQueue(api.store)
    for status in backlog.change(replace(backlog[job], state=state, reason=DONE)):
        set_job(api.store, status)
    api.store.commit()


def only_job(api: Served, herd: str) -> str:
    (job,) = api.client.jobs(herd)
    return job["id"]


def raw(api: Served, data: bytes) -> bytes:
    """All that is answered until the connection is closed."""
    with connect(api.runtime / "api.sock", 10.0) as link:
        link.sendall(data)
        answer = b""
        while chunk := link.recv(1 << 16):
            answer += chunk
        return answer


def test_a_submitted_herd_is_on_disk_and_the_supervisor_is_woken(api: Served) -> None:
    """Before submit returns."""
    herd = api.client.submit([TRUE, {"name": "b", "command": "exit 1", "after": ["a"]}])

    assert api.is_woken()
    assert [(job["name"], job["state"]) for job in api.client.jobs(herd)] == [
        ("a", "queued"), ("b", "waiting"),
    ]  # fmt: skip
    assert api.client.herd(herd)["counts"] == {"queued": 1, "waiting": 1}
    assert [found["herd"] for found in api.client.herds()] == [herd]
    assert isinstance(ramherd.Client(api.runtime / "api.sock"), Client)


@pytest.mark.parametrize(
    ("jobs", "says"),
    [
        ([], "no jobs"),
        ([{"name": "a"}], "has no 'command'"),
        ([{"command": ["true"], "comand": 1}], "unknown key 'comand'"),
        ([TRUE, TRUE], "both named 'a'"),
        ([{"command": ["/no/such/program"]}], "is not found"),
    ],
)
def test_a_wrong_job_is_told_as_in_a_file(api: Served, jobs: list[Any], says: str) -> None:
    """And nothing of it is stored."""
    with pytest.raises(UsageError, match=says):
        api.client.submit(jobs)
    assert (api.client.herds(), api.is_woken()) == ([], False)


def test_programs_are_looked_for_where_the_submitter_would(api: Served, tmp_path: Path) -> None:
    """The environment that comes with a herd is what its runs inherit."""
    program = tmp_path / "bin/of-mine"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    job = {"command": ["of-mine"]}
    with pytest.raises(UsageError, match="not found"):
        api.client.submit([job])
    assert api.client.submit([job], env={"PATH": str(program.parent)})


def test_wishes_are_noted_and_refused_when_too_late(api: Served) -> None:
    """Cancel and recycle are for what has not ended, retry for what has failed."""
    herd = api.client.submit([TRUE])
    job = only_job(api, herd)
    with pytest.raises(UsageError, match="does not run"):
        api.client.recycle(job)
    with pytest.raises(UsageError, match="nothing to retry: job"):
        api.client.retry(job)
    settle(api, job, JobState.RUNNING)
    api.client.recycle(job)
    assert api.client.job(job)["wish"] == "recycle"
    api.client.cancel(job)
    assert api.client.job(job)["wish"] == "cancel"
    settle(api, job, JobState.CANCELLED)
    with pytest.raises(UsageError, match="has ended"):
        api.client.cancel(job)
    assert api.client.cancel_herd(herd) == 0
    assert api.client.retry(job) == [job]
    assert api.client.job(job)["state"] == "queued"
    with pytest.raises(UsageError, match="no job 'none'"):
        api.client.cancel("none")


def test_pause_and_resume_are_told_to_all(api: Served) -> None:
    """In the snapshot, and as events."""
    api.client.pause()
    assert api.client.snapshot()["paused"] is True
    api.client.resume()
    assert api.client.snapshot()["paused"] is False
    assert "ramherd_paused 0\n" in api.client.metrics()


def test_events_go_on_where_a_client_left_off(api: Served) -> None:
    """By their number; what is new comes while the stream is open."""
    first = api.client.submit([TRUE])
    events = api.client.events()
    assert next(events)["herd"] == first
    second = api.client.submit([TRUE])
    event = next(events)
    assert event["herd"] == second
    events = api.client.events(after=event["seq"])
    add_event(api.store, Event("job_done", DONE, time.time(), second))
    api.store.commit()
    assert (next(events)["kind"], event["kind"]) == ("job_done", "herd_submitted")
    of_one = api.client.events(herd=first)
    assert [next(of_one)["herd"]] == [first]


def test_a_gap_in_the_events_is_told(api: Served) -> None:
    """Old events are trimmed: who was away too long must not take the rest for everything."""
    for _number in range(4):
        add_event(api.store, Event("x", DONE, 1.0, "H"))
    api.store.write("DELETE FROM events WHERE seq <= ?", (2,))
    api.store.commit()
    with connect(api.runtime / "api.sock", 10.0) as link:
        fields = b"Host: here\r\nAccept: text/event-stream\r\nLast-Event-ID: 1\r\n"
        link.sendall(b"GET /v1/events HTTP/1.1\r\n" + fields + b"\r\n")
        answer = b""
        while b"id: 4" not in answer:
            answer += receive_some(link)
    assert b'event: gap\ndata: {"after": 1, "first": 3}' in answer


def test_a_herd_is_waited_for_until_it_ends(api: Served) -> None:
    """The event of its end is what a client waits for."""
    herd = api.client.submit([TRUE])
    settle(api, only_job(api, herd), JobState.DONE)
    end_herd(api.store, herd, {"done": 1})
    add_event(api.store, Event("herd_ended", DONE, 1.0, herd))
    api.store.commit()

    assert api.client.wait(herd)["summary"] == {"done": 1}


def test_logs_are_followed_over_the_runs_of_a_job(api: Served) -> None:
    """Each to its end, and until the job has one."""
    job = only_job(api, api.client.submit([TRUE]))
    settle(api, job, JobState.RUNNING)
    first, second = (api.state / f"runs/{run}/out" for run in ("R1", "R2"))
    for path in (first, second):
        path.parent.mkdir(parents=True)
        path.touch()
    add_run(api.store, "R1", job, 1, 0)
    api.store.commit()
    chunks = api.client.logs(job, follow=True)
    first.write_bytes(b"one\n")
    assert next(chunks) == b"one\n"
    first.write_bytes(b"one\nlate\n")
    second.write_bytes(b"two\n" * 100_000)
    api.store.write("UPDATE runs SET ended_s = 1.0 WHERE id = ?", ("R1",))
    add_run(api.store, "R2", job, 2, 0)
    api.store.commit()
    settle(api, job, JobState.DONE)

    assert b"".join(chunks) == b"late\n" + b"two\n" * 100_000
    assert b"".join(api.client.logs(job)) == b"two\n" * 100_000
    assert b"".join(api.client.logs(job, "err")) == b""


def test_over_loopback_a_token_is_shown(api: Served) -> None:
    """Without it nothing is answered, whatever is asked."""
    url = f"http://127.0.0.1:{api.port}"
    assert Client(url=url, token=api.token).herds() == []
    assert (api.runtime / "token").stat().st_mode & 0o777 == 0o600
    for token in (None, "x" * len(api.token)):
        with pytest.raises(UsageError, match="token"):
            Client(url=url, token=token).herds()
    link = http.client.HTTPConnection("127.0.0.1", api.port, timeout=10)
    with closing(link):
        good = {"Authorization": f"Bearer {api.token}"}
        link.request("GET", "/v1/herds", headers={**good, "Host": "evil.example"})
        assert link.getresponse().status == 403


def test_the_socket_is_the_users_alone(api: Served) -> None:
    """And answers what comes in pieces, one after the other, on one connection."""
    assert (api.runtime / "api.sock").stat().st_mode & 0o777 == 0o600
    ask = b"GET /v1/herds HTTP/1.1\r\nHost: here\r\n\r\n"
    with connect(api.runtime / "api.sock", 10.0) as link:
        for piece in (ask[:5], ask[5:] + ask + ask[:3]):
            link.sendall(piece)
        await_answers(link, 2)
        link.sendall(ask[3:])
        await_answers(link, 1)


def receive_some(link: socket.socket) -> bytes:
    """Of a connection that is not closed yet."""
    chunk = link.recv(1 << 16)
    assert chunk
    return chunk


def await_answers(link: socket.socket, number: int) -> None:
    answer = b""
    while answer.count(b'{"herds":[]}') < number:
        answer += receive_some(link)


def test_what_is_too_large_is_refused_before_it_is_read(api: Served) -> None:
    """A head without end, and a body that says that it is enormous."""
    assert b" 431 " in raw(api, b"GET / HTTP/1.1\r\nA: " + b"x" * 20_000)
    head = b"POST /v1/herds HTTP/1.1\r\nContent-Length: 999999999\r\n\r\n"
    assert b" 413 " in raw(api, head)
    assert b" 405 " in raw(api, b"DELETE /v1/jobs HTTP/1.0\r\n\r\n")
    assert b" 415 " in raw(
        api, b"POST /v1/herds HTTP/1.0\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\n{}"
    )
    assert b" 404 " in raw(api, b"GET /v2 HTTP/1.0\r\n\r\n")


@pytest.mark.parametrize(
    ("path", "says"),
    [
        (b"/v1/jobs/a%2Fcancel", b"no job 'a%2Fcancel'"),
        (b"/v1/jobs/..%2F..%2Fetc%2Fpasswd", b"no job "),
        (b"/v1/jobs/../snapshot", b"no such path"),
        (b"/v1//jobs", b"no such path"),
        (b"/v1/jobs/", b"no such path"),
        (b"/v1/jobs/%2e%2e/logs", b"no job '..'"),
    ],
)
def test_a_path_means_what_it_says(path: bytes, says: bytes, shared_api: Served) -> None:
    """No part of it leads elsewhere, and no redirection guesses what was meant."""
    answer = raw(shared_api, b"GET %b HTTP/1.0\r\n\r\n" % path)
    assert answer.startswith(b"HTTP/1.1 404 ")
    assert says in answer


def test_a_client_that_does_not_read_holds_nobody_up(api: Served) -> None:
    """Others are answered while its answer waits in a bounded buffer."""
    job = only_job(api, api.client.submit([TRUE]))
    add_run(api.store, "R1", job, 1, 0)
    api.store.commit()
    run_dir = api.state / "runs/R1"
    run_dir.mkdir(parents=True)
    with (run_dir / "out").open("wb") as file:
        file.truncate(50 << 20)
    with connect(api.runtime / "api.sock", 10.0) as link:
        link.sendall(b"GET /v1/jobs/%b/logs HTTP/1.1\r\nHost: here\r\n\r\n" % job.encode())
        link.recv(10)
        for _again in range(5):
            assert api.client.job(job)["id"] == job
    assert read_peak_rss_bytes(api.process.pid) <= 48_000_000


def test_nobody_there_is_one_line(tmp_path: Path) -> None:
    """And a hint that works."""
    assert not is_running(tmp_path / "api.sock")
    with pytest.raises(NoService, match="no ramherd service") as caught:
        Client(tmp_path / "api.sock").herds()
    assert "ramherd up" in caught.value.hint


@pytest.mark.parametrize("ask", [Client.herds, Client.pause, lambda one: one.submit([TRUE])])
def test_a_service_that_hangs_is_one_line(ask: Callable[[Client], Any], tmp_path: Path) -> None:
    """Within the time that a client waits: it has accepted the connection, and says nothing."""
    client = Client(tmp_path / "api.sock", timeout_s=0.3)
    with (
        listen(tmp_path / "api.sock"),
        pytest.raises(NoService, match=r"has not answered for 0\.3 s"),
    ):
        ask(client)


def test_ten_thousand_jobs_are_submitted_and_listed_in_little_memory(api: Served) -> None:
    """On disk when submit returns; the API stays as small as it may be."""
    jobs = [{"name": f"job-{n}", "command": ["true"], "cwd": "/"} for n in range(10_000)]
    herd = api.client.submit(jobs)

    assert sum(1 for _job in api.client.jobs(herd)) == 10_000
    assert api.client.herd(herd)["counts"] == {"queued": 10_000}
    assert read_rss_bytes(api.process.pid) <= 48_000_000


def test_the_lifeline_ends_it(api: Served) -> None:
    """When the service is gone, so is its API."""
    api.woken.shutdown(socket.SHUT_RDWR)
    assert api.process.wait(10) == 0


def test_memory_over_time(api: Served) -> None:
    """The last ten minutes, or any others; wrong times and numbers get one line."""
    now_s = int(time.time())
    api.client.submit([TRUE])
    ((job, number),) = api.store.read("SELECT id, number FROM jobs")
    ran = MemoryMoment(now_s, 9, 5, 7, 3, 4, "calm", (RunMemory(job, 1, 1 << 20, 2 << 20),))
    record_moments(api.store, [(1, ran), (1, ran._replace(at_s=now_s - 60)), (300, ran)])
    api.store.commit()

    answer = api.client.samples()

    assert answer["step_s"] == 1
    assert [one["at_s"] for one in answer["samples"]] == [now_s - 60, now_s]
    assert answer["samples"][1]["runs"] == [[number, 1, 1 << 20, 2 << 20, 0]]
    assert answer["jobs"][str(number)]["name"] == "a"
    assert len(api.client.samples(now_s - 30)["samples"]) == 1
    assert api.client.samples(now_s - 86_400, points=100)["step_s"] == 300
    assert api.client.samples(now_s - 86_400, now_s - 80_000)["samples"] == []
    with pytest.raises(UsageError, match="points is 2001, the most is 2000"):
        api.client.samples(points=2001)
