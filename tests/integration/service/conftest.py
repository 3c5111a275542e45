"""A service with directories of its own, which can be killed and started again."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from integration.conftest import Ramherd, await_, make_ramherd, ours, pens
from ramherd.client.client import Client, is_running


@dataclass
class Service:
    """`ramherd up`, and what a user does beside it."""

    ramherd: Ramherd
    flags: tuple[str, ...] = ()
    ups: int = 0
    processes: "list[subprocess.Popen[bytes]]" = field(default_factory=list)

    @property
    def socket(self) -> Path:
        return Path(self.ramherd.env["RAMHERD_RUNTIME_DIR"]) / "api.sock"

    @property
    def client(self) -> Client:
        return Client(self.socket)

    @property
    def process(self) -> "subprocess.Popen[bytes]":
        return self.processes[-1]

    @property
    def said(self) -> str:
        return self.ramherd.state.with_name("up.err").read_text()

    def start(self, *flags: str, ready: bool = True) -> None:
        path = self.ramherd.state.with_name("up.err")
        self.ups = self.said.count("ramherd: up,") if path.exists() else 0
        command = [
            sys.executable, "-m", "ramherd", "up", "--pen", self.ramherd.pen, "--grace", "1s",
            "--max-cpu-pressure", "1",
            *self.flags, *flags,
        ]  # fmt: skip
        with path.open("ab") as log:
            made = subprocess.Popen(command, env=self.ramherd.env, stdout=log, stderr=log)
        self.processes.append(made)
        if ready:
            await_(lambda: self.is_up(made), f"the service is up: {path.read_text()}")

    def is_up(self, process: "subprocess.Popen[bytes]") -> bool:
        assert process.poll() is None, self.said
        return self.said.count("ramherd: up,") > self.ups and is_running(self.socket)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def kill_with_keepers(self) -> None:
        keepers = self.keepers()
        self.kill()
        for pid in keepers:
            os.kill(pid, signal.SIGKILL)

    def stop(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(30)

    def keepers(self) -> list[int]:
        return [pid for pid in ours() if is_keeper(pid)]

    def submit(self, *jobs: dict[str, Any]) -> str:
        return self.client.submit([{"cwd": "/", **job} for job in jobs], env=self.ramherd.env)

    def job(self, name: str) -> Any:
        (found,) = [job for job in self.client.jobs() if job["name"] == name]
        return self.client.job(found["id"])

    def state(self, name: str) -> str:
        return str(self.job(name)["state"])

    def await_state(self, name: str, state: str) -> None:
        await_(lambda: self.state(name) == state, f"{name} is {state}")

    def id_of(self, herd: str, name: str) -> str:
        (found,) = [job["id"] for job in self.client.jobs(herd) if job["name"] == name]
        return found

    def await_in(self, herd: str, name: str, state: str) -> None:
        job = self.id_of(herd, name)
        await_(lambda: self.client.job(job)["state"] == state, f"{name} is {state}")

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(self.ramherd.state / "ramherd/ramherd.db")) as db:
            return db.execute(query).fetchall()


def is_keeper(pid: int) -> bool:
    return is_program(pid, b"keeper/__main__.py")


def is_program(pid: int, name: bytes) -> bool:
    """Whether a word of its command line ends like this."""
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
    return name in command


def finish(service: Service) -> None:
    """Nothing of it is left, on the machine or on record."""
    if service.process.poll() is None:
        assert service.stop() == 0, service.said
    else:
        service.start()
        assert service.stop() == 0, service.said
    await_(lambda: not ours(), f"everything of it ends: {service.said}")
    assert service.rows("SELECT * FROM pens") == []
    assert "a bug" not in service.said
    assert "Traceback" not in service.said, service.said


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    made = Service(make_ramherd(tmp_path, pens()[0]))
    made.start()
    yield made
    finish(made)


@pytest.fixture(params=pens())
def each_service(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Service]:
    """Once for every kind of pen."""
    made = Service(make_ramherd(tmp_path, str(request.param)))
    made.start()
    yield made
    finish(made)


def rss(pid: int) -> int:
    pages = Path(f"/proc/{pid}/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def read_json(path: Path) -> Any:
    return json.loads(path.read_bytes())
