"""Real processes, real cgroups, real SQLite; and a check that no test leaves any of it behind."""

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ramherd.act.pens.selection import make_fleet
from ramherd.core.errors import NoPen
from ramherd.core.policies import PEN_KINDS
from ramherd.measure.cgroups import read_trees
from ramherd.system.ids import new_id
from ramherd.system.procfs import read_processes, read_variable

# Started in the background or under nohup we ignore these, and so would every ramherd below.
for ignored in (signal.SIGINT, signal.SIGHUP):
    if signal.getsignal(ignored) is signal.SIG_IGN:
        signal.signal(ignored, signal.default_int_handler)

TAG = "RAMHERD_TEST"
os.environ[TAG] = uuid.uuid4().hex
DEADLINE_S = 20.0
GOING_S = 1.0


@dataclass
class Started:
    """A ramherd in the background; what it prints goes to files."""

    process: "subprocess.Popen[bytes]"
    out: Path
    err: Path

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def wait(self) -> int:
        return self.process.wait(DEADLINE_S)


@dataclass
class Ramherd:
    """The installed command, with state and runtime directories of its own."""

    env: dict[str, str]
    state: Path
    pen: str

    def run(self, *args: str, stdin: str = "") -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, "-m", "ramherd", *args]
        return subprocess.run(
            command, env=self.env, input=stdin, text=True, capture_output=True, timeout=120,
            check=False,
        )  # fmt: skip

    def start(self, *args: str, stdin: str = "") -> Started:
        out, err, text = (self.state.with_name(name) for name in ("out", "err", "in"))
        text.write_text(stdin)
        command = [sys.executable, "-m", "ramherd", *args]
        with text.open() as given, out.open("w") as stdout, err.open("w") as stderr:
            process = subprocess.Popen(
                command, env=self.env, stdin=given, stdout=stdout, stderr=stderr
            )
        return Started(process, out, err)

    def json(self, jobs: list[dict[str, Any]], *args: str) -> dict[str, Any]:
        """The summary of `run --json` for these jobs."""
        text = "".join(json.dumps(job) + "\n" for job in jobs)
        done = self.run("run", "-", "--json", "--pen", self.pen, *args, stdin=text)
        assert done.stdout, done.stderr
        summary: dict[str, Any] = json.loads(done.stdout)
        summary["exit_code"] = done.returncode
        summary["lines"] = done.stderr
        return summary

    @property
    def keeper_errors(self) -> str:
        path = self.state / "ramherd/keeper.err"
        return path.read_text() if path.exists() else ""


def pens() -> list[str]:
    """The kinds that this machine and this user allow, strongest first."""
    return [kind for kind in PEN_KINDS if is_possible(kind)]


def is_possible(kind: str) -> bool:
    try:
        fleet, _why = make_fleet(kind, read_trees(), new_id())
    except NoPen:
        return False
    return fleet.remove()


@pytest.fixture(params=pens())
def pen(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def strong_pen() -> str:
    return pens()[0]


def make_ramherd(tmp_path: Path, pen: str) -> Ramherd:
    env = {
        **os.environ,
        "XDG_STATE_HOME": str(tmp_path / "state"),
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
        "RAMHERD_RUNTIME_DIR": str(tmp_path / "runtime"),
        # Tests may run on a busy machine.
        "RAMHERD_MAX_CPU_PRESSURE": "none",
    }
    return Ramherd(env, tmp_path / "state", pen)


@pytest.fixture
def ramherd(tmp_path: Path, strong_pen: str) -> Iterator[Ramherd]:
    """On the strongest pen there is."""
    made = make_ramherd(tmp_path, strong_pen)
    yield made
    assert made.keeper_errors == ""


@pytest.fixture
def each_ramherd(tmp_path: Path, pen: str) -> Iterator[Ramherd]:
    """Once for every kind of pen."""
    made = make_ramherd(tmp_path, pen)
    yield made
    assert made.keeper_errors == ""


def await_(condition: Callable[[], Any], what: str, deadline_s: float = DEADLINE_S) -> Any:
    """The condition's first true answer."""
    deadline = time.monotonic() + deadline_s
    while not (answer := condition()):
        assert time.monotonic() < deadline, f"did not happen within {deadline_s} s: {what}"
        time.sleep(0.01)
    return answer


def ours(extra: str = "") -> list[int]:
    """Living processes that descend from this test session, by their environment."""
    return [
        proc.id.pid
        for proc in read_processes()
        if proc.is_alive
        and proc.id.pid != os.getpid()
        and read_variable(proc.id.pid, TAG) == os.environ[TAG]
        and (not extra or read_variable(proc.id.pid, extra) is not None)
    ]


def our_cgroups(state: Path) -> set[Path]:
    """Fleets of herds in this test's store: another ramherd on the machine has its own."""
    store = state / "ramherd/ramherd.db"
    if not store.exists():
        return set()
    owners: list[str] = []
    with closing(sqlite3.connect(store)) as db, suppress(sqlite3.DatabaseError):
        owners = [owner for (owner,) in db.execute("SELECT owner FROM herds")]
    trees = read_trees()
    places = {*trees.v1.values(), *([trees.v2, trees.v2.parent] if trees.v2 else [])}
    paths = {place / f"ramherd-{owner}" for place in places for owner in owners}
    return {path for path in paths if path.exists()}


@pytest.fixture(autouse=True)
def nothing_left(tmp_path: Path) -> Iterator[None]:
    """No test leaves a process, a cgroup or a file descriptor behind."""
    fds = len(os.listdir("/proc/self/fd"))
    yield
    # Who was killed a moment ago may still be on the way out, on a busy machine.
    deadline = time.monotonic() + GOING_S
    while (left := ours()) and time.monotonic() < deadline:
        time.sleep(0.01)
    for pid in left:
        with suppress(ProcessLookupError):
            os.kill(pid, 9)
    assert not left, f"processes left: {left}"
    assert not our_cgroups(tmp_path / "state")
    assert len(os.listdir("/proc/self/fd")) <= fds


def need(program: str, package: str) -> str:
    """A program that a test needs: in CI it has to be there."""
    found = shutil.which(program)
    if found is None:
        message = f"{program} is not installed: make test-tools (apt package {package})"
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)
    return found
