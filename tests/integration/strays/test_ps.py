"""`ramherd ps` and a dry `ramherd reap` on the machine as it is."""

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from integration.conftest import Ramherd, await_
from ramherd.core.policies import StrayPolicy
from ramherd.strays.judge.software import SoftwareTable
from ramherd.strays.scan import Scanner

# What a look may cost with 1000 processes.
CPU_S = 0.150


@pytest.fixture
def claude(tmp_path: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """A program of that name, with a tool below it."""
    program = tmp_path / "claude"
    shutil.copy("/bin/bash", program)
    process = subprocess.Popen(
        [program, "-c", "sleep 1000 & echo up; wait"], stdout=subprocess.PIPE,
        stdin=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    assert process.stdout is not None
    process.stdout.readline()
    yield process
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()


def rows(text: str, session: int) -> list[dict[str, Any]]:
    return [row for row in json.loads(text)["rows"] if row["session"] == session]


def test_an_agent_is_shown_with_its_tools(
    ramherd: Ramherd, claude: "subprocess.Popen[bytes]"
) -> None:
    """Live, because somebody who started it is there; seen again, with its idle time."""
    for _look in range(2):
        done = ramherd.run("ps", "--json")
        assert done.returncode == 0, done.stderr

    agent, tool = rows(done.stdout, claude.pid)

    assert (agent["pid"], agent["kind"], agent["verdict"]) == (claude.pid, "agent", "live")
    assert (tool["software"], tool["kind"]) == ("sleep", "tool")
    assert agent["memory_kind"] == "pss"
    assert 0 < agent["memory_bytes"] < 50 << 20
    assert agent["idle_s"] is not None
    assert agent["growth_bytes"] is not None
    tree = ramherd.run("ps", "--tree").stdout
    assert f"claude {claude.pid}" in tree
    assert "  sleep tool" in tree


def test_a_dry_run_touches_nothing(ramherd: Ramherd, claude: "subprocess.Popen[bytes]") -> None:
    """Whatever is on the machine."""
    done = ramherd.run("reap", "--stray-grace", "0", "--json")

    told = json.loads(done.stdout)
    assert (told["dry_run"], told["ended"]) == (True, [])
    assert claude.pid not in [row["pid"] for row in told["would_end"]]


def test_without_a_store_it_looks_all_the_same(ramherd: Ramherd) -> None:
    """Only what was seen earlier is missing, and a line says so."""
    (ramherd.state / "ramherd").mkdir(parents=True)
    store = ramherd.state / "ramherd/ramherd.db"
    store.write_text("no database at all, but long enough" * 50)

    done = ramherd.run("ps")

    store.unlink()
    assert done.returncode == 0
    assert "earlier scans are unknown" in done.stderr


def test_software_of_a_settings_file_is_known(ramherd: Ramherd, tmp_path: Path) -> None:
    """And a mistake in it is said before anything is looked at."""
    config = tmp_path / "config/ramherd/config.toml"
    config.parent.mkdir(parents=True)
    config.write_text('[software.sleeper]\nkind = "mcp"\nprograms = ["sleep"]\n')
    sleeper = subprocess.Popen(["sleep", "1000"])
    try:
        told = json.loads(ramherd.run("ps", "--json").stdout)
    finally:
        sleeper.kill()
        sleeper.wait()
    assert {row["software"] for row in told["rows"] if row["pid"] == sleeper.pid} == {"sleeper"}
    config.write_text('[software.sleeper]\nkind = "virus"\n')

    done = ramherd.run("ps")

    assert (done.returncode, "'virus' is not a kind" in done.stderr) == (2, True)


def test_watching_goes_on_until_it_is_interrupted(ramherd: Ramherd) -> None:
    """One object for each look."""
    started = ramherd.start("ps", "--watch", "--json")
    await_(lambda: len(started.out.read_text().splitlines()) >= 2, "two looks")

    started.signal(signal.SIGINT)

    assert started.wait() == 130
    assert "interrupted" not in started.err.read_text()
    assert all(
        json.loads(line)["rows"] is not None for line in started.out.read_text().splitlines()
    )


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["ps", "--", "x"], "ps takes no command"),
        (["jobs", "--", "x"], "jobs takes no command"),
        (["reap", "--stray-grace", "x"], "--stray-grace: 'x' is not a duration"),
        (["reap", "--", "x"], "reap takes no command"),
        (["ps", "--warn-memory", "101"], "101 is above 100"),
    ],
)
def test_a_mistake_is_said(ramherd: Ramherd, args: list[str], message: str) -> None:
    """Exit code 2."""
    done = ramherd.run(*args)

    assert (done.returncode, message in done.stderr) == (2, True), done.stderr


@pytest.mark.xdist_group("serial")
def test_a_look_at_a_thousand_processes_is_cheap(tmp_path: Path) -> None:
    """CPU time, the best of six: a busy machine only adds to it."""
    program = tmp_path / "gopls"
    shutil.copy(shutil.which("sleep") or "/bin/sleep", program)
    there = len([entry for entry in os.listdir("/proc") if entry.isdigit()])
    started = [
        subprocess.Popen(
            ["sleep", "1000"] if number % 10 else [program, "1000"], stdin=subprocess.DEVNULL
        )
        for number in range(max(1000 - there, 0))
    ]
    try:
        costs = [cost_of_look(tmp_path) for _try in range(6)]
    finally:
        for process in started:
            process.kill()
        for process in started:
            process.wait()

    assert min(costs) <= CPU_S


def cost_of_look(runtime: Path) -> float:
    before_s = time.process_time()
    Scanner(StrayPolicy(), SoftwareTable(), runtime, None).scan()
    return time.process_time() - before_s
