"""A real gateway, `ramherd mcp serve`, with fake servers behind it."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pytest

from ramherd.act.gateway_process import GatewayAddress, read_gateway
from ramherd.gateway.control import ask_gateway
from ramherd.store.mcp_clients import drop_client, register_client
from support.mcp.http_client import McpHttp

T = TypeVar("T")
FAKE = str(Path(__file__).parents[2] / "support" / "mcp" / "fake_server.py")
SERVE = (sys.executable, "-m", "ramherd", "mcp", "serve")
WAIT_S = 60.0


@dataclass
class RunningGateway:
    runtime: Path
    state: Path
    config: Path
    log: Path
    env: dict[str, str]
    process: "subprocess.Popen[bytes] | None" = None
    token: str = ""
    servers: dict[str, dict[str, Any]] = field(default_factory=dict)

    def add(self, name: str, **settings: Any) -> None:
        """A fake server of that name; before the start."""
        env = {"FAKE_LOG": str(self.log), **settings.pop("env", {})}
        self.servers[name] = {"command": [sys.executable, FAKE], "env": env, **settings}
        tables = [
            f"[mcp.servers.{name}]\n" + "\n".join(f"{k} = {to_toml(v)}" for k, v in one.items())
            for name, one in self.servers.items()
        ]  # fmt: skip
        self.config.write_text("\n".join(tables) + "\n")

    def start(self) -> GatewayAddress:
        """On the port of the last start, if there was one."""
        has_port = (self.state / "mcp" / "port").exists()
        self.process = subprocess.Popen(
            [*SERVE, *(() if has_port else ("--port", "0"))], env=self.env,
            stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
        )  # fmt: skip
        self.await_until(lambda: read_gateway(self.runtime) is not None)
        self.token = self.token or register_client(
            self.runtime, servers=("*",), run=None, cwd="/", agent="tests"
        )
        return self.address

    @property
    def address(self) -> GatewayAddress:
        found = read_gateway(self.runtime)
        assert found is not None
        return found

    def client(self, server: str, token: str | None = None) -> McpHttp:
        return McpHttp(self.address.port, server, self.token if token is None else token)

    def register(self, *servers: str) -> str:
        return register_client(self.runtime, servers=servers, run=None, cwd="/", agent="tests")

    def drop(self, token: str) -> None:
        drop_client(self.runtime, token)

    def status(self, server: str) -> dict[str, Any]:
        found = ask_gateway(self.runtime, "/servers")["servers"]
        return next(one for one in found if one["name"] == server)

    def notes(self) -> list[str]:
        return self.log.read_text().splitlines() if self.log.exists() else []

    def starts(self) -> list[int]:
        """The processes of servers, in the order of their starts."""
        return [int(line.split()[1]) for line in self.notes() if line.startswith("start ")]

    def await_until(self, is_true: Callable[[], bool]) -> None:
        deadline_s = time.monotonic() + WAIT_S
        while not is_true():
            assert self.process is not None
            assert self.process.poll() is None, self.read_errors()
            assert time.monotonic() < deadline_s, f"not true within {WAIT_S} s"
            time.sleep(0.02)

    def read_errors(self) -> str:
        assert self.process is not None
        assert self.process.stderr is not None
        return self.process.stderr.read().decode()

    def stop(self, number: int = signal.SIGTERM) -> str:
        """Returns what it printed."""
        if self.process is None:
            return ""
        if self.process.poll() is None:
            self.process.send_signal(number)
        _out, errors = self.process.communicate(timeout=WAIT_S)
        self.process = None
        return errors.decode()


def to_toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k} = {json.dumps(v)}" for k, v in value.items()) + "}"
    return json.dumps(value)


@pytest.fixture
def gateway(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RunningGateway]:
    runtime, state, config = tmp_path / "ramherd-run", tmp_path / "state", tmp_path / "config"
    runtime.mkdir(0o700)
    (config / "ramherd").mkdir(parents=True)
    for name, value in (
        ("RAMHERD_RUNTIME_DIR", runtime), ("XDG_STATE_HOME", state), ("XDG_CONFIG_HOME", config),
    ):  # fmt: skip
        monkeypatch.setenv(name, str(value))
    made = RunningGateway(
        runtime, state / "ramherd", config / "ramherd" / "config.toml", tmp_path / "log",
        dict(os.environ),
    )  # fmt: skip
    yield made
    made.stop()


def play(work: Awaitable[T]) -> T:
    """Runs one test's clients."""

    async def run() -> T:
        return await asyncio.wait_for(work, 120)

    return asyncio.run(run())


def text_of(message: dict[str, Any]) -> Any:
    assert "result" in message, message
    return json.loads(message["result"]["content"][0]["text"])
