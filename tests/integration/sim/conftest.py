"""Starts fake agents for the tests, and ends what a test leaves running."""

import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from integration.sim.procs import SRC, Agent, StartAgent, is_alive, wait_for


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[StartAgent]:
    """Start `agent("--flat", "20MB", ..., env={...})`; killed after the test if still there."""
    started: list[Agent] = []

    def start(
        *args: object, env: dict[str, str] | None = None, python: tuple[str, ...] = ()
    ) -> Agent:
        folder = tmp_path / f"agent-{len(started)}"
        folder.mkdir()
        command = [sys.executable, *(python or ("-m", "ramherd.sim.agent")), *map(str, args)]
        started.append(Agent(command, folder, {"PYTHONPATH": str(SRC)} | (env or {})))
        return started[-1]

    yield start
    for one in started:
        one.proc.kill()
        one.proc.wait()


@pytest.fixture
def trace(tmp_path: Path) -> Callable[..., Path]:
    """Write a trace of these sizes in MB, one a second; the last one is its end."""

    def write(*mb: float) -> Path:
        path = tmp_path / "trace.jsonl"
        path.write_text(json.dumps({"task": "test", "t_s": list(range(len(mb))), "mb": mb}) + "\n")
        return path

    return write


@pytest.fixture
def helper_pid() -> Iterator[Callable[[Agent], int]]:
    """The pid a fake agent printed for its helper, ended after the test."""
    found: list[int] = []

    def read(agent: Agent) -> int:
        found.append(int(agent.ready().out.split("helper ")[1].split()[0]))
        return found[-1]

    yield read
    for pid in found:
        os.kill(pid, signal.SIGKILL)
        wait_for(lambda pid=pid: not is_alive(pid), "the helper's end")  # type: ignore[misc]
