"""Fake agents as processes: starting, watching, waiting on conditions."""

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

SRC = Path(__file__).parents[3] / "src"
DEADLINE_S = 10.0


def wait_for(condition: Callable[[], object], what: str) -> None:
    """Return as soon as the condition is true; fail with `what` at the deadline."""
    end = time.monotonic() + DEADLINE_S
    while not condition():
        if time.monotonic() > end:
            pytest.fail(f"not within {DEADLINE_S:g} s: {what}")
        time.sleep(0.003)


def anon_bytes(pid: int) -> int:
    """Anonymous memory, 0 when the process is gone.

    From smaps_rollup, which counts pages: RssAnon in `status` may be off by 32 pages or more for
    each CPU on kernels that sum it up lazily.
    """
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    found = [line.split()[1] for line in text.splitlines() if line.startswith("Anonymous:")]
    return int(found[0]) * 1024 if found else 0


def children(pid: int) -> list[int]:
    try:
        return [
            int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        ]
    except (FileNotFoundError, ProcessLookupError):
        return []


def is_alive(pid: int) -> bool:
    """A zombie is not alive: in a container nobody may reap it."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


class Agent:
    """A running fake agent. Its output goes to files, which a helper cannot hold open."""

    def __init__(self, command: list[str], folder: Path, env: dict[str, str]) -> None:
        self._out, self._err = folder / "out", folder / "err"
        with self._out.open("wb") as out, self._err.open("wb") as err:
            self.proc = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=os.environ | env
            )
        self.pid = self.proc.pid

    @property
    def out(self) -> str:
        return self._out.read_text()

    @property
    def err(self) -> str:
        return self._err.read_text()

    def ready(self) -> "Agent":
        wait_for(lambda: "ready\n" in self.out or self.proc.poll() is not None, "ready")
        assert "ready\n" in self.out, self.err
        return self

    def end(self) -> int:
        return self.proc.wait(timeout=DEADLINE_S)


StartAgent = Callable[..., Agent]
