"""`run`, `exec`, the service and the hook under one configuration, given in a file, in the
environment and by flags: all have the same budget, admission, memory limit, pids limit and grace.
"""

import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from integration.conftest import Ramherd, await_
from integration.hook.hooks import Session
from ramherd.client.client import Client, is_running
from ramherd.core.units import MIB
from ramherd.measure.cgroups import read_trees
from ramherd.measure.machine import read_machine

PLACES = ("file", "environment", "flag")
PROGRAMS = ("run", "exec", "service")
BUDGET_BYTES = 400 * MIB
# Prints what its cgroup allows; grows beyond its limit; or notes for how long it outlives a TERM.
SUBJECT = """
import pathlib, signal, sys, time
from ramherd.measure.cgroups import read_trees
what, path = sys.argv[1], pathlib.Path(sys.argv[2])
if what == "pids":
    trees = read_trees()
    own = trees.v1.get("pids") or trees.v2
    path.write_text((own / "pids.max").read_text() if own and (own / "pids.max").exists() else "")
elif what == "grow":
    held = [bytearray(b"x" * (1 << 20)) for _ in range(200) if not time.sleep(0.005)]
    time.sleep(60)
else:
    told = []
    signal.signal(signal.SIGTERM, lambda *_: told.append(time.monotonic()))
    path.write_text("")
    while True:
        time.sleep(0.02)
        if told:
            with path.open("a") as file:
                file.write(f"{time.monotonic() - told[0]}\\n")
"""


class Given(NamedTuple):
    """One configuration, as each program gets it. The hook has no flags: what others get by flags
    it gets in its environment.
    """

    ramherd: Ramherd
    cwd: Path
    env: dict[str, str]
    flags: tuple[str, ...]
    hook_env: dict[str, str]


class End(NamedTuple):
    """What a user sees of a program's end."""

    code: int
    text: str


def given(place: str, ramherd: Ramherd, cwd: Path, **settings: str) -> Given:
    cwd.mkdir(exist_ok=True)
    (cwd / "ramherd.toml").unlink(missing_ok=True)
    env = dict(ramherd.env)
    flags: tuple[str, ...] = ("--pen", ramherd.pen)
    variables = {f"RAMHERD_{name.upper()}": value for name, value in settings.items()}
    if place == "file":
        lines = (f'{name} = "{value}"\n' for name, value in settings.items())
        (cwd / "ramherd.toml").write_text("".join(lines))
    elif place == "environment":
        env |= variables
    else:
        pairs = ((f"--{name.replace('_', '-')}", value) for name, value in settings.items())
        flags += tuple(word for pair in pairs for word in pair)
    return Given(ramherd, cwd, env, flags, {**env, **(variables if place == "flag" else {})})


class Program:
    """A program that was started with one job, and has not ended yet."""

    def __init__(self, name: str, under: Given, argv: list[str]) -> None:
        job = {"command": argv, "name": "job"}
        self._service = name == "service"
        command = {
            "run": ["run", "-", *under.flags],
            "exec": ["exec", *under.flags, "--", *argv],
            "service": ["up", *under.flags],
        }[name]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "ramherd", *command], env=under.env, cwd=under.cwd, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        if self._service:
            socket = Path(under.env["RAMHERD_RUNTIME_DIR"]) / "api.sock"
            await_(lambda: is_running(socket), "the service is up")
            self._client = Client(socket)
            self._herd = self._client.submit([{"cwd": str(under.cwd), **job}], env=under.env)
        elif name == "run":
            assert self.process.stdin is not None
            self.process.stdin.write(json.dumps(job))
            self.process.stdin.close()
            self.process.stdin = None

    def interrupt(self) -> None:
        if self._service:
            self._client.cancel_herd(self._herd)
        else:
            self.process.send_signal(signal.SIGTERM)

    def wait(self) -> End:
        """Of the service: the end of its job, in the words of its reason."""
        if not self._service:
            text, _none = self.process.communicate(timeout=60)
            return End(self.process.returncode, text)
        self._client.wait(self._herd)
        (job,) = self._client.jobs(self._herd)
        found = self._client.job(job["id"])
        return End(0 if found["state"] == "done" else 1, str(found))

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.communicate(timeout=60)


@contextmanager
def started(name: str, under: Given, *words: str) -> Iterator[Program]:
    program = Program(name, under, [sys.executable, "-c", SUBJECT, *words])
    try:
        yield program
    finally:
        program.close()


def end_of(name: str, under: Given, *words: str) -> End:
    with started(name, under, *words) as program:
        return program.wait()


def ask_hook(under: Given, need: str) -> str:
    """What the hook answers to a subagent; nothing when it may start."""
    Path(under.env["RAMHERD_RUNTIME_DIR"]).mkdir(mode=0o700, exist_ok=True)
    session = Session({**under.hook_env, "RAMHERD_SUBAGENT_MEMORY": need}, under.cwd)
    try:
        session.call("call")
        answer = session.await_end("call")
        session.ask("SessionEnd", reason="other")
    finally:
        session.close()
    assert "systemMessage" not in answer, answer
    return str(answer.get("hookSpecificOutput", {}).get("permissionDecisionReason", ""))


@pytest.mark.parametrize("place", PLACES)
def test_one_budget_admits_and_refuses_in_every_program(
    place: str, ramherd: Ramherd, tmp_path: Path
) -> None:
    """500 MiB never fit into 400, and nobody waits for that; 200 MiB do, and the pen of a job that
    runs allows the processes that were set.
    """
    cwd, path = tmp_path / "project", str(tmp_path / "pids")
    over = given(place, ramherd, cwd, budget="400MiB", memory="500MiB")
    for name in PROGRAMS:
        end = end_of(name, over, "pids", path)
        assert end.code != 0, name
        assert "more than the whole budget" in end.text or "too_big" in end.text, (name, end.text)
        assert "400 MiB" in end.text or str(BUDGET_BYTES) in end.text, (name, end.text)
    denied = ask_hook(over, "500MiB")
    assert "it needs 500 MiB" in denied
    # What the session itself holds is not free.
    free = re.search(r"only (\d+) MiB is free", denied)
    assert free is not None
    assert 300 < int(free[1]) < 400
    within = given(place, ramherd, cwd, budget="400MiB", memory="200MiB", pids_limit="123")
    for name in PROGRAMS:
        own = tmp_path / f"pids-{name}"
        assert end_of(name, within, "pids", str(own)).code == 0, name
        # A polling pen has no such limit.
        assert own.read_text() == "123\n" or ramherd.pen == "polling", name
    assert ask_hook(within, "200MiB") == ""


@pytest.mark.parametrize("place", PLACES)
def test_one_share_of_memory_is_the_budget_of_every_program(
    place: str, ramherd: Ramherd, tmp_path: Path
) -> None:
    """A share of 0.1 % or so: 100 MiB are more than that of any machine that runs tests."""
    machine = read_machine(read_trees())
    share = 24 * MIB / machine.most_bytes
    under = given(
        place, ramherd, tmp_path / "project", budget_share=f"{share:.12f}", memory="100MiB"
    )
    for name in PROGRAMS:
        end = end_of(name, under, "pids", str(tmp_path / "pids"))
        assert end.code != 0, name
        assert "more than the whole budget" in end.text or "too_big" in end.text, (name, end.text)
    assert "it needs 100 MiB" in ask_hook(under, "100MiB")


@pytest.mark.parametrize("place", PLACES)
def test_one_memory_limit_holds_in_every_program(
    place: str, ramherd: Ramherd, tmp_path: Path
) -> None:
    """At 120 MiB, with the same reason."""
    under = given(place, ramherd, tmp_path / "project", memory_limit="120MiB", memory="100MiB")
    for name in PROGRAMS:
        end = end_of(name, under, "grow", str(tmp_path / "none"))
        assert end.code != 0, name
        assert "120 MiB" in end.text or str(120 * MIB) in end.text, (name, end.text)


@pytest.mark.parametrize("place", PLACES)
def test_one_grace_holds_in_every_program(place: str, ramherd: Ramherd, tmp_path: Path) -> None:
    """Between TERM and KILL: two seconds, and not the ten of the default."""
    under = given(place, ramherd, tmp_path / "project", grace="2s", memory="100MiB")
    for name in PROGRAMS:
        path = tmp_path / f"grace-{name}"
        with started(name, under, "outlive", str(path)) as program:
            await_(path.exists, f"the job of {name} runs")
            program.interrupt()
            program.wait()
        *_earlier, last = path.read_text().split() or [""]
        assert last, f"the job of {name} did not outlive TERM"
        assert 1.5 < float(last) < 6, name
