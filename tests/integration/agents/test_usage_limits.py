"""Usage limits of a plan: waited out, without a failure and without a start in vain."""

import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from integration.conftest import Ramherd
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
