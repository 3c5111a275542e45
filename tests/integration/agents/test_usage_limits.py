"""Usage limits of a plan: waited out, without a failure and without a useless start."""

import json
import signal
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from integration.conftest import Ramherd, await_
from llm import LLM
from llm.usage import UsageWindows
from ramherd.sim import claude_events

PROGRAM = f"""\
#!/bin/sh
exec {sys.executable} -S -I {claude_events.__file__} "$@"
"""


@pytest.fixture
def program(tmp_path: Path) -> str:
    path = tmp_path / "claude"
    path.write_text(PROGRAM)
    path.chmod(0o755)
    return str(path)


def prompts(number: int, folder: Path, **keys: Any) -> list[dict[str, Any]]:
    given = {"agent": "claude", "prompt": "do it", "memory": "10MiB", "cwd": str(folder), **keys}
    return [{"name": f"job-{n}", **given} for n in range(number)]


def read_starts(ramherd: Ramherd) -> list[float]:
    with closing(sqlite3.connect(ramherd.state / "ramherd/ramherd.db")) as db:
        return [at_s for (at_s,) in db.execute("SELECT started_s FROM runs ORDER BY started_s")]


@pytest.mark.xdist_group("serial")
def test_two_hundred_jobs_in_three_windows(ramherd: Ramherd, program: str, tmp_path: Path) -> None:
    """No job fails; each window is used; after the first refusal at most one job starts until the
    reset, and the first one within two seconds of it.
    """
    usage = UsageWindows(length_s=20, quota=67)
    with LLM(usage=usage) as llm:
        ramherd.env |= {"ANTHROPIC_BASE_URL": llm.url, "ANTHROPIC_API_KEY": "none"}
        summary = ramherd.json(
            prompts(200, tmp_path), "--agent-program", program, "--max-parallel", "12",
            "--max-cpu-pressure", "none",
        )  # fmt: skip

    assert (summary["done"], summary["failed"]) == (200, 0), summary["lines"]
    assert [usage.served[window] >= 0.95 * usage.quota for window in range(3)] == [True] * 3
    starts = read_starts(ramherd)
    for window in range(2):
        reset_s = usage.reset_s(window)
        first = min(at for at in usage.refused if usage.window_at(at) == window)
        assert len([at for at in starts if first + 0.1 < at < reset_s]) <= 1
        delay_s = min(at for at in starts if at >= reset_s) - reset_s
        assert delay_s <= 2.0


def test_a_job_that_is_not_to_wait(ramherd: Ramherd, program: str, tmp_path: Path) -> None:
    """`on_limit = "fail"`: it fails, and those behind it fail without a start."""
    with LLM(usage=UsageWindows(length_s=3600, quota=1)) as llm:
        ramherd.env |= {"ANTHROPIC_BASE_URL": llm.url, "ANTHROPIC_API_KEY": "none"}
        flags = ("--agent-program", program, "--max-parallel", "1", "--on-limit", "fail")
        summary = ramherd.json(prompts(4, tmp_path, retries=3), *flags)

    ends = [(one["state"], one["runs"], one["reason"]["why"]) for one in summary["results"]]
    assert ends == [
        ("done", 1, "said_done"), ("failed", 1, "usage_limit"),
        ("failed", 0, "usage_limit"), ("failed", 0, "usage_limit"),
    ]  # fmt: skip
    assert summary["exit_code"] == 1


def test_another_model_while_the_limit_of_one_lasts(
    ramherd: Ramherd, program: str, tmp_path: Path
) -> None:  # fmt: skip
    """`on_limit = "fallback_model"`: all are done, the first with its own model."""
    usage = UsageWindows(length_s=3600, quota=1, claim="seven_day_opus", model="opus")
    models = {"model": "opus", "fallback_model": "sonnet", "on_limit": "fallback_model"}
    with LLM(usage=usage) as llm:
        ramherd.env |= {"ANTHROPIC_BASE_URL": llm.url, "ANTHROPIC_API_KEY": "none"}
        flags = ("--agent-program", program, "--max-parallel", "1")
        summary = ramherd.json(prompts(3, tmp_path, **models), *flags)

    ends = [(one["state"], one["model"], one["runs"]) for one in summary["results"]]
    assert ends == [("done", "opus", 1), ("done", "sonnet", 2), ("done", "sonnet", 1)]
    assert [(one["fallback"] or {}).get("model") for one in summary["results"]] == [
        None, "sonnet", "sonnet",
    ]  # fmt: skip
    assert len(usage.refused) == 1
    assert "model     job-1: " in summary["lines"]
    assert "opus is at its usage limit: the job uses sonnet instead" in summary["lines"]


def test_a_wait_that_is_interrupted(ramherd: Ramherd, program: str, tmp_path: Path) -> None:
    """The wait says until when, and how to go on; `run --resume` waits for the same reset."""
    usage = UsageWindows(length_s=12, quota=1)
    with LLM(usage=usage) as llm:
        ramherd.env |= {"ANTHROPIC_BASE_URL": llm.url, "ANTHROPIC_API_KEY": "none"}
        jobs = tmp_path / "jobs.jsonl"
        jobs.write_text("".join(json.dumps(job) + "\n" for job in prompts(2, tmp_path)))
        flags = ("--pen", ramherd.pen, "--agent-program", program, "--max-parallel", "1")
        started = ramherd.start("run", str(jobs), *flags)
        await_(lambda: "ramherd run --resume" in started.out.read_text(), "the wait is shown")
        started.signal(signal.SIGINT)
        assert started.wait() == 130
        last = started.out.read_text().rpartition("1 of 2 jobs done")[2]
        assert "claude is at its usage limit until" in last
        again = ramherd.run("run", "--resume", "--json")
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout)["done"] == 2
    assert (usage.served[0], usage.served[1], len(usage.refused)) == (1, 1, 1)
