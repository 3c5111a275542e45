"""The API's own process, asked over its unix socket and over loopback."""

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ramherd.client.client import Client
from ramherd.service.api_process import SERVE
from ramherd.store.sqlite import SqliteStore


@dataclass
class Served:
    """What is there while the API runs. `woken` is the supervisor's end of the lifeline."""

    state: Path
    runtime: Path
    store: SqliteStore
    woken: socket.socket
    port: int
    process: "subprocess.Popen[bytes]"

    @property
    def client(self) -> Client:
        return Client(self.runtime / "api.sock")

    @property
    def token(self) -> str:
        return (self.runtime / "token").read_text().strip()

    def is_woken(self) -> bool:
        """Once for all that was asked since."""
        try:
            return b"w" in self.woken.recv(4096, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def start(state: Path, runtime: Path, **defaults: Any) -> Iterator[Served]:
    ours, theirs = socket.socketpair()
    port = free_port()
    given = {
        "state": str(state), "runtime": str(runtime), "lifeline": theirs.fileno(), "port": port,
        "defaults": defaults, "path": sys.path,
    }  # fmt: skip
    command = [sys.executable, "-I", "-S", SERVE, json.dumps(given)]
    with ours, theirs, closing(SqliteStore(state / "ramherd.db")) as store:
        with (state / "api.err").open("wb") as errors:
            process = subprocess.Popen(command, pass_fds=[theirs.fileno()], stderr=errors)
        theirs.close()
        assert ours.recv(1) == b"r"
        yield Served(state, runtime, store, ours, port, process)
        ours.close()
        assert process.wait(10) == 0
    assert (state / "api.err").read_text() == ""


@pytest.fixture(autouse=True)
def nothing_left() -> None:
    """Instead of the one for all of these folders: a shared API outlives a test."""


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Served]:
    (tmp_path / "state").mkdir()
    (tmp_path / "runtime").mkdir()
    yield from start(tmp_path / "state", tmp_path / "runtime")


@pytest.fixture(scope="module")
def shared_api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One for many requests."""
    here = tmp_path_factory.mktemp("api")
    (here / "state").mkdir()
    (here / "runtime").mkdir()
    yield from start(here / "state", here / "runtime")
