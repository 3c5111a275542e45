"""One process for several jobs: what is shared, what is not, and when it ends."""

import json
import os
import signal
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from integration.conftest import Ramherd, await_, ours
from ramherd.core.units import MIB

TALKER = Path(__file__).with_name("warm_talker.py")


class Herd:
    """Jobs for warm processes of the talker."""

    def __init__(self, ramherd: Ramherd, here: Path) -> None:
        self.ramherd = ramherd
        self.here = here
        self.program = here / "claude"
        self.program.write_text(f'#!/bin/sh\nexec {sys.executable} {TALKER} "$@"\n')
        self.program.chmod(0o755)

    def job(self, prompt: str, **keys: Any) -> dict[str, Any]:
        plain = {"agent": "claude", "memory": "40MiB", "cwd": str(self.here), "reuse": 10}
        return {"prompt": prompt, **plain, **keys}

    def run(self, *jobs: dict[str, Any], parallel: int = 1, more: tuple[str, ...] = ()) -> "Served":
        flags = ("--agent-program", str(self.program), "--max-parallel", str(parallel))
        summary = self.ramherd.json(list(jobs), *flags, *more)
        return Served(summary, self.events())

    def events(self) -> list[dict[str, Any]]:
        lines = self.ramherd.run("events", "--json").stdout.splitlines()
        return [json.loads(line) for line in lines]


class Served:
    def __init__(self, summary: dict[str, Any], events: list[dict[str, Any]]) -> None:
        self.summary = summary
        self.results = summary["results"]
        self.events = events

    @property
    def pids(self) -> list[str]:
        """Which process has served each job."""
        return [result["result"].split()[0] for result in self.results]

    @property
    def answers(self) -> list[str]:
        return [result["result"].partition(" ")[2] for result in self.results]

    @property
    def causes(self) -> list[str]:
        return causes(self.events)


def causes(events: list[dict[str, Any]]) -> list[str]:
    """Why processes were let go."""
    return [one["reason"]["cause"] for one in events if one["kind"] == "agent_retired"]


@pytest.fixture
def herd(ramherd: Ramherd, tmp_path: Path) -> Herd:
    return Herd(ramherd, tmp_path)


def test_jobs_share_a_process_and_nothing_else(herd: Herd) -> None:
    """One after another, three each: a session, a log and an account for every job."""
    served = herd.run(*(herd.job(f"task-{n}", reuse=3) for n in range(6)))

    assert served.summary["done"] == 6, served.summary["lines"]
    assert list(Counter(served.pids).values()) == [3, 3]
    assert served.answers == [f"task-{n}" for n in range(6)]
    assert len({result["session"] for result in served.results}) == 6
    assert {result["cost_usd"] for result in served.results} == {0.5}
    assert [result["tokens_in"] for result in served.results] == [6] * 6
    for n, result in enumerate(served.results):
        log = Path(result["log"]).read_text()
        assert f"task-{n}" in log
        assert not any(f"task-{other}" in log for other in range(6) if other != n)
    assert served.causes == ["job_limit", "job_limit"]
    assert served.summary["leftovers_ended"] == 0


def test_two_processes_at_a_time(herd: Herd) -> None:
    """Twenty jobs, and no more starts than places."""
    served = herd.run(*(herd.job(f"task-{n}", reuse=100) for n in range(20)), parallel=2)

    assert served.summary["done"] == 20
    assert len(set(served.pids)) == 2
    assert served.answers == [f"task-{n}" for n in range(20)]


def test_only_jobs_of_the_same_kind_share(herd: Herd, tmp_path: Path) -> None:
    """Another directory, model, variable or limit is another process."""
    (tmp_path / "other").mkdir()
    others: list[dict[str, Any]] = [
        {"cwd": str(tmp_path / "other")}, {"model": "small"}, {"env": {"COLOUR": "red"}},
        {"memory_limit": "800MiB"}, {"max_cost_usd": 5.0}, {"reuse": 1}, {"reuse": 0},
    ]  # fmt: skip
    jobs = [herd.job("task", **keys) for keys in ({}, *others, {})]
    cold = ("--reuse-idle", "60s")
    served = herd.run(*[{**job, "name": f"job-{n}"} for n, job in enumerate(jobs)], more=cold)

    assert served.summary["done"] == 9, served.summary["lines"]
    assert len(set(served.pids)) == 8
    assert served.pids[0] == served.pids[-1]


def test_a_prompt_larger_than_a_pipe(herd: Herd) -> None:
    """Three megabytes, to a process that is warm already."""
    served = herd.run(herd.job("first"), herd.job("x " * 1_500_000, name="large"))

    assert served.summary["done"] == 2
    assert len(set(served.pids)) == 1
    assert served.results[1]["tokens_in"] == 3_000_000


@pytest.mark.parametrize(
    ("prompt", "cause"), [("leave", "left_processes"), ("grow", "size"), ("fail", "failure")]
)
def test_a_process_that_is_not_as_it_was(herd: Herd, prompt: str, cause: str) -> None:
    """What a job left running, a process grown too large, a failure: the next has a fresh one."""
    served = herd.run(herd.job(prompt), herd.job("next"), more=("--reuse-size", "100MiB"))

    assert served.summary["done"] == 2 - (prompt == "fail")
    assert served.results[1]["result"].endswith(" next")
    assert served.causes[0] == cause
    if prompt != "fail":
        assert len(set(served.pids)) == 2
    assert served.summary["leftovers_ended"] == (prompt == "leave")


def test_a_process_is_too_old(herd: Herd) -> None:
    """Whatever it served."""
    served = herd.run(herd.job("task"), herd.job("next"), more=("--reuse-age", "0.01s"))

    assert len(set(served.pids)) == 2
    assert served.causes[0] == "age"


def test_a_session_that_does_not_end_is_not_shared(herd: Herd) -> None:
    """Asked for a new one it answers in the old: the next job does not get to see it."""
    served = herd.run(*(herd.job(f"task-{n}", env={"TALKER": "same"}) for n in range(3)))

    assert served.summary["done"] == 3
    assert len(set(served.pids)) == 3
    assert served.answers == ["task-0", "task-1", "task-2"]
    assert served.causes == ["same_session", "same_session", "not_needed"]


def test_a_process_that_ends_by_itself(herd: Herd) -> None:
    """Between two jobs, or in the moment in which it is to get the next."""
    served = herd.run(*(herd.job("task die", name=f"job-{n}") for n in range(4)))

    assert served.summary["done"] == 4, served.summary["lines"]
    assert len(set(served.pids)) == 4


def test_memory_is_wanted(herd: Herd) -> None:
    """The first in line is another kind of job, and waits for memory: nothing is kept warm."""
    big = {"name": "big", "command": ["true"], "memory": "250MiB"}
    flags = ("--budget", "300MiB")
    jobs = [herd.job("grow"), big, herd.job("after")]
    served = herd.run(*jobs, parallel=4, more=flags)

    assert served.summary["done"] == 3, served.summary["lines"]
    assert served.summary["oom_kills"] == 0
    assert served.causes[0] == "memory_wanted"
    assert served.results[0]["result"].split()[0] != served.results[2]["result"].split()[0]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_an_end_in_the_middle(herd: Herd, number: int) -> None:
    """ramherd is interrupted or killed while one waits and one works: nothing is left."""
    jobs = [herd.job("task"), herd.job("wait")]
    text = "".join(json.dumps(job) + "\n" for job in jobs)
    flags = ("--agent-program", str(herd.program), "--max-parallel", "1", "--grace", "1s")
    started = herd.ramherd.start("run", "-", "--pen", herd.ramherd.pen, *flags, stdin=text)
    await_(lambda: "warm process" in started.out.read_text(), "the second job")
    os.kill(started.process.pid, number)
    started.process.wait(timeout=30)

    await_(lambda: not ours(), "all of it to end")


def test_what_cannot_be_shared_is_said(herd: Herd, tmp_path: Path) -> None:
    """An agent that takes one prompt, and jobs that get a worktree each."""
    other = herd.ramherd.run(
        "run", "-", stdin=json.dumps({"agent": "codex", "prompt": "do it", "reuse": 2})
    )

    assert other.returncode == 2
    assert "codex takes one prompt and ends" in other.stderr


def test_a_setting_is_for_those_who_can(herd: Herd) -> None:
    """`reuse` in a file of settings is no reason to refuse other agents."""
    refused = herd.ramherd.run(
        "run", "--agent", "codex", "--agent-program", "/no/such", "--reuse", "3", "do it"
    )

    assert "takes one prompt" not in refused.stderr
    assert "is not found" in refused.stderr


def test_peaks_are_each_jobs_own(herd: Herd) -> None:
    """What an earlier job of the process held at most is not the later one's."""
    served = herd.run(herd.job("task"), herd.job("grow"), more=("--reuse-size", "1GiB"))

    assert served.results[0]["peak_bytes"] < 100 * MIB
    assert served.results[1]["peak_bytes"] > 200 * MIB
