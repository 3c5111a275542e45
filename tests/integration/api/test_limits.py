"""What clients of any kind cannot do to the others."""

import json
import socket
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager

import pytest

from integration.api.conftest import Served
from integration.conftest import await_
from ramherd.api.streams import MOST_STREAMS
from ramherd.client.client import Client
from ramherd.core.errors import NoService
from ramherd.system.procfs import read_peak_rss_bytes, read_rss_bytes
from ramherd.system.unix_socket import connect

TRUE = {"name": "a", "command": ["true"]}
MOST_BYTES = 48_000_000
STREAM = b"GET /v1/events HTTP/1.1\r\nHost: here\r\nAccept: text/event-stream\r\n\r\n"


@contextmanager
def locked(api: Served) -> Iterator[None]:
    """Another program writes to the store, and does not end."""
    with closing(sqlite3.connect(api.state / "ramherd.db", isolation_level=None)) as db:
        db.execute("BEGIN IMMEDIATE")
        yield
        db.execute("ROLLBACK")


@contextmanager
def connections(
    api: Served, number: int, data: bytes, *, port: bool = False
) -> Iterator[list[socket.socket]]:
    """So many, each of which has sent this and is silent now."""
    with ExitStack() as stack:
        made = []
        for _number in range(number):
            link = (
                socket.create_connection(("127.0.0.1", api.port), 10)
                if port
                else connect(api.runtime / "api.sock", 10.0)
            )
            made.append(stack.enter_context(link))
            try:
                link.sendall(data)
            except OSError:  # refused already
                pass
        yield made


@pytest.mark.parametrize("port", [False, True], ids=["socket", "port"])
def test_five_hundred_slow_clients_keep_the_owner_out_of_nothing(port: bool, api: Served) -> None:
    """Whether they are the owner's own, or of anybody on this machine."""
    with connections(api, 500, b"GET /v1/herds HT", port=port):
        herd = api.client.submit([TRUE])
        assert [found["herd"] for found in api.client.herds()] == [herd]
        url = f"http://127.0.0.1:{api.port}"
        assert Client(url=url, token=api.token).herd(herd)["herd"] == herd
    assert read_peak_rss_bytes(api.process.pid) <= MOST_BYTES


def test_open_streams_keep_no_other_request_out(api: Served) -> None:
    """They have a limit of their own, and a stream beyond it is refused in one line."""
    with connections(api, MOST_STREAMS, STREAM) as links:
        for link in links:
            assert b" 200 OK" in link.recv(4096)
        herd = api.client.submit([TRUE])
        assert api.client.herd(herd)["counts"] == {"queued": 1}
        with connections(api, 1, STREAM) as (refused,):
            assert b" 429 " in refused.recv(4096)
        assert next(api.client.events(herd=herd))["kind"] == "herd_submitted"
        assert all(b"herd_submitted" in link.recv(4096) for link in links)
    await_(lambda: has_room(api), "the API has noticed that they went")


def has_room(api: Served) -> bool:
    with connections(api, 1, STREAM) as (link,):
        return b" 200 OK" in link.recv(4096)


def test_bodies_that_are_half_sent_take_no_memory(api: Served) -> None:
    """Forty times 8 MB of forty."""
    head = b"POST /v1/herds HTTP/1.1\r\nHost: here\r\nContent-Length: 40000000\r\n\r\n"
    with connections(api, 40, head) as links:
        for link in links:
            link.sendall(b" " * (8 << 20))
        assert api.client.herds() == []
        assert read_peak_rss_bytes(api.process.pid) <= MOST_BYTES
    assert not [path.name for path in api.state.iterdir() if path.name.startswith("tmp")]


def test_ten_thousand_jobs_and_fifty_streams_in_little_memory(api: Served) -> None:
    """Submitted, listed and followed."""
    with connections(api, 50, STREAM) as links:
        jobs = [{"name": f"job-{n}", "command": ["true"], "cwd": "/"} for n in range(10_000)]
        herd = api.client.submit(jobs)
        assert sum(1 for _job in api.client.jobs(herd, runs=True)) == 10_000
        for link in links:
            received = b""
            while b"herd_submitted" not in received:
                received += link.recv(4096)
        assert read_rss_bytes(api.process.pid) <= MOST_BYTES


def test_a_locked_store_delays_writes_alone(api: Served) -> None:
    """Four and more that wait for the lock leave the readers free."""
    herd = api.client.submit([TRUE])
    with locked(api):
        waiting = [threading.Thread(target=api.client.pause) for _number in range(6)]
        for thread in waiting:
            thread.start()
        for _number in range(20):
            assert api.client.herd(herd)["counts"] == {"queued": 1}
            assert api.client.snapshot()["paused"] is False
        assert all(thread.is_alive() for thread in waiting)
    for thread in waiting:
        thread.join()
    assert api.client.snapshot()["paused"] is True


def test_a_store_that_stays_locked_is_one_line_within_seconds(api: Served) -> None:
    """Before the client gives up."""
    with locked(api), pytest.raises(NoService, match="locked"):
        api.client.pause()
    api.client.pause()


def test_a_large_submission_is_read_in_a_process_of_its_own(api: Served) -> None:
    """Its mistakes are named as those of a small one."""
    jobs = [{"command": ["true"], "cwd": "/", "label": "x" * 90} for _number in range(2000)]
    assert len(json.dumps(jobs)) > 64 << 10
    herd = api.client.submit(jobs)
    assert api.client.herd(herd)["counts"] == {"queued": 2000}
    assert api.is_woken()
    with pytest.raises(Exception, match="unknown key 'comand'"):
        api.client.submit([*jobs, {"comand": "x"}])
    assert read_peak_rss_bytes(api.process.pid) <= MOST_BYTES
