"""What agents cost, where they have not reported it."""

import json
from pathlib import Path
from typing import Any

import pytest

from ramherd.agents.run_state import past_from_json
from ramherd.core.model import Job, Reason, RunEnd, Why
from ramherd.core.policies import Policy
from ramherd.core.units import GIB
from ramherd.supervisor.agent_runs import AgentRuns, make_agent_runs
from support.driven_runs import asked, begun, heard, result, say, session
from support.make import status

MODEL = "opus-of-tests"
PRICE = 4e-6


def agent_runs_of(*jobs: Job, max_cost_usd: float | None = None, priced: bool = True) -> AgentRuns:
    made = make_agent_runs(jobs, Policy(), max_cost_usd=max_cost_usd)
    assert made is not None
    if priced:
        made.prices.load([("claude", MODEL, PRICE)])
    return made


def reply(id_: str, tokens_in: int = 10_000) -> dict[str, Any]:
    usage = {"input_tokens": tokens_in, "output_tokens": 0}
    return {
        "type": "assistant",
        "message": {"id": id_, "model": MODEL, "usage": usage, "content": []},
    }


def since(tokens_in: int) -> dict[str, Any]:
    used = {"inputTokens": tokens_in, "costUSD": tokens_in * PRICE}
    return {"model_usage_since_last_result": {MODEL: used}}


def cost_of(run: Any) -> Any:
    said = run.agent_run.as_json()
    return said["cost_usd"], said["cost_is_estimate"]


def test_the_cost_of_a_killed_run_is_estimated_and_adds_up(tmp_path: Path) -> None:
    """Over resumes, and in what the store keeps for another supervisor."""
    of = asked()
    agent_runs = agent_runs_of(of)
    first = begun(agent_runs, of, tmp_path)
    say(first, session("s-1"), reply("m1"), reply("m2", 20_000))
    heard(agent_runs, first, closed=True)
    assert cost_of(first) == (0.12, True)
    agent_runs.end(first, RunEnd.PREEMPTED, most_bytes=GIB)
    assert first.agent_run is not None
    kept = past_from_json(json.loads(json.dumps(first.agent_run.past.as_json())))
    assert kept.spent == first.agent_run.past.spent
    assert kept.progress.reply == (MODEL, 20_000)
    assert first.agent_run.past.as_json()["spent_usd"] == pytest.approx(0.12)

    second = begun(agent_runs, of, tmp_path, resumed=True)
    assert cost_of(second) == (0.12, True)
    say(second, session("s-1"), reply("m3"), {**result("done", 0.04), **since(10_000)})
    heard(agent_runs, second, closed=True)
    agent_runs.end(second, RunEnd.DONE, most_bytes=GIB)
    assert cost_of(second) == (pytest.approx(0.16), True)


def test_without_a_price_the_cost_is_unknown(tmp_path: Path) -> None:
    """Not nothing; as soon as another run has shown the price, it is known."""
    of, other = asked(), asked("b")
    agent_runs = agent_runs_of(of, other, priced=False)
    run = begun(agent_runs, of, tmp_path)
    assert cost_of(run) == (None, None)
    say(run, session("s-1"), reply("m1"))
    heard(agent_runs, run)
    assert cost_of(run) == (None, None)

    another = begun(agent_runs, other, tmp_path)
    say(another, session("s-2"), {**result("done", 0.004), **since(1000)})
    heard(agent_runs, another, closed=True)
    assert cost_of(another) == (0.004, False)
    assert cost_of(run) == (0.04, True)
    (learned,) = agent_runs.prices.pop_learned()
    assert learned == ("claude", MODEL, learned.usd)
    assert learned.usd == pytest.approx(PRICE)
    assert agent_runs.prices.pop_learned() == []


def test_a_report_of_nothing_is_a_cost_of_nothing(tmp_path: Path) -> None:
    """The API refused at once."""
    of = asked()
    agent_runs = agent_runs_of(of)
    run = begun(agent_runs, of, tmp_path)
    say(run, session("s-1"), {**result("no", 0.0), "is_error": True})
    heard(agent_runs, run, closed=True)
    assert cost_of(run) == (0.0, False)


def test_an_estimate_counts_against_the_limit_of_the_next_run(tmp_path: Path) -> None:
    """Of the job and of the herd; while claude runs, it counts for itself."""
    of = asked(max_cost_usd=0.2)
    agent_runs = agent_runs_of(of, max_cost_usd=10.0)
    run = begun(agent_runs, of, tmp_path)
    say(run, session("s-1"), reply("m1", 40_000))
    heard(agent_runs, run, closed=True)
    assert run.agent_run is not None
    assert run.agent_run.said.cost_usd == 0.0
    agent_runs.end(run, RunEnd.LOST, most_bytes=GIB)
    limit = agent_runs.costs[of.herd]
    assert limit is not None
    assert limit.spent_usd == pytest.approx(0.16)
    money = agent_runs.read_money_left(run)
    assert money is not None
    assert (money.whose, money.limit_usd, money.is_spent) == ("the job", 0.2, True)
    assert [money.cost_usd, money.reply_usd] == pytest.approx([0.16, 0.16])
    again = begun(agent_runs, of, tmp_path, resumed=True)
    assert again.agent_run is not None
    words = again.agent_run.launch.argv
    assert float(words[words.index("--max-budget-usd") + 1]) == pytest.approx(0.04)


def test_a_herd_ends_when_none_of_its_jobs_can_have_another_reply(tmp_path: Path) -> None:
    """Not while one of them runs, which may leave something, nor before each of them has begun."""
    one, two = asked("a"), asked("b")
    agent_runs = agent_runs_of(one, two, max_cost_usd=0.2)
    queue = [status("a"), status("b")]
    first = begun(agent_runs, one, tmp_path)
    say(first, session("s-1"), reply("m1", 40_000))
    heard(agent_runs, first, closed=True)
    agent_runs.end(first, RunEnd.PREEMPTED, most_bytes=GIB)
    assert agent_runs.read_money_left(first) is None
    assert agent_runs.stop_costly([], queue) == []

    second = begun(agent_runs, two, tmp_path)
    say(second, session("s-2"), reply("m2", 6_000))
    heard(agent_runs, second, closed=True)
    assert agent_runs.stop_costly([], queue) == []
    agent_runs.end(second, RunEnd.PREEMPTED, most_bytes=GIB)
    reasons = [action.reason for action in agent_runs.stop_costly([], queue)]
    left = Reason(
        Why.COST_LEFT, whose="the herd", cost_usd=0.184, limit_usd=0.2, reply_usd=0.024
    )  # fmt: skip
    assert reasons == [left, left]


def test_claudes_history_knows_the_output_of_a_killed_run(tmp_path: Path) -> None:
    """The events have it before it is complete."""
    of = asked()
    made = make_agent_runs([of], Policy())
    assert made is not None
    made.prices.load([("claude", MODEL, PRICE)])
    run = begun(made, of, tmp_path)
    say(run, session("s-1"), reply("m1"))
    heard(made, run, closed=True)
    home = tmp_path / "home"
    (home / "projects/-x").mkdir(parents=True)
    usage = {"input_tokens": 10_000, "output_tokens": 1000}
    message = {"model": MODEL, "id": "m1", "type": "message", "usage": usage}
    line = json.dumps({"type": "assistant", "message": message}, separators=(",", ":"))
    (home / "projects/-x/s-1.jsonl").write_text(line + "\n")
    assert run.agent_run is not None
    run.agent_run.count_unreported({"CLAUDE_CONFIG_DIR": str(home)})
    assert cost_of(run) == (pytest.approx(0.06), True)
    assert run.agent_run.as_json()["tokens_out"] == 1000
