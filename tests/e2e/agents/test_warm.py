"""Warm reuse with the real claude: what one process does for several jobs, and what it forgets."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from e2e.agent_home import Home
from e2e.agents.test_run_agents import ELDER, PARTS, asks, herd_of, run_beside_elder, runs_that_name
from integration.conftest import Ramherd
from llm import LLM

WORDS = ("zebra", "walnut", "copper", "meadow", "lantern", "pebble")


@pytest.fixture
def herd(claude: Home, tmp_path: Path) -> Iterator[Ramherd]:
    made = herd_of(claude, tmp_path)
    yield made
    assert made.keeper_errors == ""


def reasons(herd: Ramherd, kind: str) -> list[dict[str, Any]]:
    events = [json.loads(line) for line in herd.run("events", "--json").stdout.splitlines()]
    return [event["reason"] for event in events if event["kind"] == kind]


def test_no_job_knows_of_another(claude: Home, herd: Ramherd, llm: LLM) -> None:
    """Six jobs in two processes: requests, histories and logs hold their own words only."""
    (claude.cwd / "below").mkdir()
    shell = "pwd && cd below && echo the-"
    llm.add({word: [{"shell": shell + word}, {"say": f"A {word}."}] for word in WORDS})
    prompts = [f"find the {word} [script {word}]" for word in WORDS]
    summary = herd.json(asks(claude, *prompts, reuse=10), "--max-parallel", "2")

    assert summary["done"] == len(WORDS), summary["lines"]
    assert summary["leftovers_ended"] == 0
    assert [start["why"] for start in reasons(herd, "run_started")].count("warm") == 4
    sessions = [result["session"] for result in summary["results"]]
    assert len(set(sessions)) == len(WORDS)
    for word, result in zip(WORDS, summary["results"], strict=True):
        others = set(WORDS) - {word}
        asked = [str(talk.body) for talk in llm.of(word)]
        history = next(Path(claude.env["HOME"]).rglob(f"{result['session']}.jsonl")).read_text()
        texts = [*asked, history, Path(result["log"]).read_text()]
        assert len(asked) == 2
        assert all(word in text for text in texts)
        assert not any(other in text for other in others for text in texts)
        assert (result["turns"], result["result"]) == (2, f"A {word}.")
        assert (result["tokens_in"], result["cost_usd"]) == (200, 0.0012)
        # A `cd` of the job before has no effect either.
        assert f"{claude.cwd}\\nthe-{word}" in history


def test_a_command_left_behind_reports_to_nobody_else(
    claude: Home, herd: Ramherd, llm: LLM
) -> None:
    """claude would tell the next session of its end: the process does not serve another job."""
    behind = {"name": "Bash", "args": {"command": "sleep 1; echo zebra", "run_in_background": True}}
    llm.add({"left": [{"call": [behind]}, {"say": "It runs."}]})
    prompts = ("do it [script left]", "do it [script shell]")
    summary = herd.json(asks(claude, *prompts, reuse=10), "--max-parallel", "1")

    assert summary["done"] == 2, summary["lines"]
    assert reasons(herd, "agent_retired")[0]["cause"] == "left_processes"
    assert not any("zebra" in str(talk.body) for talk in llm.of("shell"))


def test_a_warm_job_that_makes_room_goes_on_in_its_session(
    claude: Home, herd: Ramherd, llm: LLM
) -> None:
    """Stopped in its tool, it is resumed in a process of its own."""
    llm.add({"parts": PARTS})
    herd.env["RAMHERD_REUSE"] = "5"
    summary = run_beside_elder(claude, herd, ELDER)
    job = summary["results"][1]

    assert summary["done"] == 2, summary["lines"]
    assert summary["preempted"] >= 1
    assert job["result"] == "Both parts are done."
    assert runs_that_name(job["session"], herd) == job["runs"] == 2
