"""Real claudes at the usage limit of a plan, and with a key that the API does not know."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.agent_home import make_home
from e2e.agents.test_run_agents import herd_of
from integration.conftest import Ramherd
from llm import LLM
from llm.usage import UsageWindows

# What claude takes for a plan; only ours are asked.
PLAN = {"CLAUDE_CODE_OAUTH_TOKEN": "sk-ant-oat01-none", "ANTHROPIC_API_KEY": ""}
SCRIPTS = {"locked": [{"fail": {"status": 401, "times": 1000, "message": "invalid x-api-key"}}]}


@pytest.fixture
def planned(installed: None, tmp_path: Path) -> Iterator[tuple[Ramherd, LLM, Path]]:
    """claude with a plan whose window has six requests in 15 s."""
    with LLM(SCRIPTS, usage=UsageWindows(length_s=15, quota=6)) as llm:
        home = make_home("claude", tmp_path, llm.url)
        made = herd_of(home, tmp_path)
        made.env = {name: text for name, text in {**made.env, **PLAN}.items() if text}
        yield made, llm, home.cwd
    assert made.keeper_errors == ""


def test_twelve_claudes_and_one_window(planned: tuple[Ramherd, LLM, Path]) -> None:
    """Those that were refused go on in their sessions after the reset: none fails."""
    herd, llm, cwd = planned
    usage = llm.usage
    assert usage is not None
    jobs = [
        {"name": f"job-{n}", "prompt": "do it [script hello]", "cwd": str(cwd)} for n in range(12)
    ]
    summary = herd.json(jobs, "--max-parallel", "3", "--no-worktree")

    assert (summary["done"], summary["failed"]) == (12, 0), summary["lines"]
    assert usage.served[0] == usage.served[1] == 6
    assert {result["result"] for result in summary["results"]} == {"Hello."}
    # At most those three that ran at the time were refused.
    assert 1 <= len(usage.refused) <= 3
    assert "claude is at its usage limit until" in summary["lines"]
    assert "(five-hour window)" in summary["lines"]
    reset_s = usage.reset_s(0)
    first_s = min(talk.at_s for talk in llm.of("hello") if talk.at_s >= reset_s)
    assert first_s - reset_s <= 4.0, "the start, and half a second of CPU until claude asks"


def test_a_key_that_the_api_does_not_know(planned: tuple[Ramherd, LLM, Path]) -> None:
    """Known within seconds, and one job has asked: the others are not started."""
    herd, llm, cwd = planned
    llm.usage = None
    del herd.env["CLAUDE_CODE_OAUTH_TOKEN"]
    herd.env["ANTHROPIC_API_KEY"] = "none"
    jobs = [
        {"name": f"job-{n}", "prompt": "do it [script locked]", "cwd": str(cwd)} for n in range(5)
    ]
    began_s = time.monotonic()
    summary = herd.json(jobs, "--max-parallel", "1", "--no-worktree")

    assert summary["exit_code"] == 1
    assert time.monotonic() - began_s < 20.0
    assert (summary["cancelled"], sum(result["runs"] for result in summary["results"])) == (5, 1)
    assert {result["reason"]["why"] for result in summary["results"]} == {"no_access"}
    assert "the API rejects the account of claude (401" in summary["lines"]
