"""Records what client and service of this version say to each other, for the versions to come.

    cd tests && ../.venv/bin/python -m integration.api.record data/api/VERSION.json

Run it before a change to the API. test_versions.py plays the recorded responses to the client of
its own version, and sends the recorded requests to the API of its own version.
"""

import json
import socket
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from integration.conftest import await_, make_ramherd
from integration.service.conftest import Service
from ramherd import __version__
from ramherd.client.client import Client
from ramherd.core.errors import RamherdError
from ramherd.system.unix_socket import connect, listen

PATH = "/usr/local/bin:/usr/bin:/bin"
Exchange = dict[str, str]


@contextmanager
def recording(socket_path: Path, service: Path) -> Iterator[list[Exchange]]:
    """A socket that passes each connection on to the service, and what went both ways."""
    exchanges: list[Exchange] = []
    with listen(socket_path) as listener:
        threading.Thread(
            target=pass_on_all, args=(listener, service, exchanges), daemon=True
        ).start()
        yield exchanges


def pass_on_all(listener: socket.socket, service: Path, exchanges: list[Exchange]) -> None:
    while True:
        with suppress(OSError):
            client, _address = listener.accept()
            exchange = {"request": "", "response": ""}
            exchanges.append(exchange)
            link = connect(service)
            for name, source, sink in (("request", client, link), ("response", link, client)):
                threading.Thread(
                    target=pass_on, args=(exchange, name, source, sink), daemon=True
                ).start()


def pass_on(exchange: Exchange, name: str, source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(1 << 16):
            exchange[name] += data.decode()
            sink.sendall(data)
    with suppress(OSError):
        sink.shutdown(socket.SHUT_RDWR)


def use(client: Client, service: Service) -> None:
    """Each call of a client once, and the errors that a client has to understand."""
    jobs: list[dict[str, Any]] = [
        {"name": "good", "command": "echo out; echo err >&2"},
        {"name": "bad", "command": ["sh", "-c", "exit 3"], "memory": "64MiB", "retries": 1},
        {"name": "late", "command": "true", "after": ["bad"], "label": "x"},
    ]
    herd = client.submit(
        jobs, {"PATH": PATH}, cwd="/", defaults={"retries": 0}, profiles={"p": {"memory": "1GiB"}},
        source="jobs.toml", max_cost_usd=5.0,
    )  # fmt: skip
    client.wait(herd)
    client.summary(herd)
    good, bad, _late = client.jobs(herd)
    b"".join(client.logs(good["id"], "err", follow=True))
    client.retry(bad["id"])
    running = client.submit([{"name": "long", "command": "sleep 300"}], {"PATH": PATH}, cwd="/")
    await_(lambda: service.client.snapshot()["runs"], "the status has the run")
    client.snapshot()
    client.metrics()
    (job,) = client.jobs(running)
    client.recycle(job["id"])
    client.cancel(job["id"])
    client.wait(running)
    for call in (
        lambda: client.job("none"),
        lambda: client.cancel(job["id"]),
        lambda: client.submit([{"comand": "true"}]),
    ):
        with suppress(RamherdError):
            call()
    client.job(job["id"])
    client.cancel_herd(running)
    client.herds()
    client.pause()
    client.resume()


def main(target: Path) -> None:
    with tempfile.TemporaryDirectory() as made:
        here = Path(made)
        service = Service(make_ramherd(here, "polling"))
        service.start()
        try:
            with recording(here / "proxy/api.sock", service.socket) as exchanges:
                use(Client(here / "proxy/api.sock"), service)
        finally:
            service.stop()
    recorded = {"version": __version__, "exchanges": exchanges}
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(recorded, indent=1) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
