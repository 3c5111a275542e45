"""Agents over a restart of their supervisor: what is written down is enough to go on."""

import json
from pathlib import Path
from typing import Any

from ramherd.act.run import LiveRun
from ramherd.agents.progress import Progress, Spent
from ramherd.agents.run_state import Past, past_from_json
from ramherd.core.model import RunEnd
from ramherd.core.policies import Policy
from ramherd.core.run_phase import Ended
from ramherd.core.units import GIB
from ramherd.supervisor.agent_runs import AgentRuns, JobRecords
from ramherd.supervisor.check_agents import find_program_of
from ramherd.supervisor.cost_limit import CostLimit
from support.driven_runs import PROGRAM, asked, begun, heard, result, say, session, words
from support.make import status


class Kept:
    """What a store would have: by job what was said, by herd the account."""

    def __init__(self, limit_usd: float | None = None) -> None:
        self.said: dict[str, dict[str, Any]] = {}
        self.limit_usd = limit_usd

    def agent_runs(self) -> AgentRuns:
        spent = sum(said["past"]["spent_usd"] for said in self.said.values())
        cost_limit = None if self.limit_usd is None else CostLimit(self.limit_usd, ["IDa"], spent)
        return AgentRuns(
            JobRecords(find_program_of, lambda _herd: cost_limit, self.said.get), Policy()
        )

    def note(self, run: LiveRun) -> None:
        """As it would come back from the store."""
        assert run.agent_run is not None
        self.said[run.job.id] = json.loads(json.dumps(run.agent_run.next_record()))


def test_another_supervisor_goes_on_where_the_last_one_was(tmp_path: Path) -> None:
    """Session, turns, tokens and costs of all runs, over two sessions and a restart."""
    of, kept = asked(), Kept()
    agent_runs = kept.agent_runs()
    failed = begun(agent_runs, of, tmp_path)
    say(failed, session("s-1"), {**result("no", 0.5), "is_error": True})
    heard(agent_runs, failed, closed=True)
    agent_runs.end(failed, RunEnd.FAILED, most_bytes=GIB)
    stopped = begun(agent_runs, of, tmp_path)
    say(stopped, session("s-2"), result("half", 0.25))
    heard(agent_runs, stopped, closed=True)
    agent_runs.end(stopped, RunEnd.PREEMPTED, most_bytes=GIB)
    kept.note(stopped)
    resumed = begun(kept.agent_runs(), of, tmp_path, resumed=True)

    assert words(resumed)[words(resumed).index("--resume") + 1] == "s-2"
    assert resumed.agent_run is not None
    assert resumed.agent_run.as_json()["cost_usd"] == 0.75


def test_an_adopted_run_is_read_from_its_beginning(tmp_path: Path) -> None:
    """Its model, the session that it resumed, what it took; nothing is counted twice."""
    of, kept = asked(), Kept(limit_usd=10.0)
    first = begun(kept.agent_runs(), of, tmp_path, short=True)
    kept.note(first)
    say(first, session("s-1"), result("half", 0.5))
    agent_runs = kept.agent_runs()
    adopted = LiveRun(first.id, of, 1, tmp_path, 0.0, label="claude")
    agent_runs.adopt(adopted, resumed=False)

    assert adopted.agent_run is not None
    assert adopted.agent_run.as_json() == {
        "session": "s-1", "turns": 0, "tokens_in": 0, "tokens_out": 0, "cost_usd": 0.5,
        "cost_is_estimate": False,
        "result": "half", "model": "haiku", "denied": [], "error": None,
            "fallback": {"why": "step_down", "model": "haiku", "usual": "opus"},
        "resume": f"cd / && {PROGRAM} --resume s-1",
    }  # fmt: skip
    agent_runs.end(adopted, RunEnd.RECYCLED, most_bytes=GIB)
    cost_limit = agent_runs.costs[of.herd]
    assert cost_limit is not None
    assert cost_limit.spent_usd == 0.5
    assert "--resume" in words(begun(agent_runs, of, tmp_path, resumed=True))


def test_a_run_that_ended_meanwhile_is_heard_out(tmp_path: Path) -> None:
    """However much it has printed, and whether its last line has an end."""
    of, kept = asked(), Kept()
    first = begun(kept.agent_runs(), of, tmp_path)
    say(first, session("s-1"), {"type": "user", "text": "x" * 9_000_000})
    with (first.dir / "out").open("a") as out:
        out.write(json.dumps(result("done", 0.5)))
    ended = LiveRun(first.id, of, 1, tmp_path, 0.0, phase=Ended())
    kept.agent_runs().adopt(ended, resumed=False)

    assert ended.agent_run is not None
    assert (ended.agent_run.is_read, ended.agent_run.said.result) == (True, True)


def test_a_program_that_is_gone_refuses_the_run(tmp_path: Path) -> None:
    """With what the user can do about it; nothing is raised."""
    of = asked(program="/no/such")
    run = begun(Kept().agent_runs(), of, tmp_path)

    assert run.agent_run is None
    assert run.refused is not None
    assert run.refused[1] == (
        "claude: '/no/such' is not found (npm install -g @anthropic-ai/claude-code)"
    )


def test_what_is_known_of_ended_jobs_goes(tmp_path: Path) -> None:
    """A service lives for months: the store has what it needs again."""
    of, kept = asked(), Kept(limit_usd=0.5)
    agent_runs = kept.agent_runs()
    run = begun(agent_runs, of, tmp_path)
    say(run, session("s-1"), {"type": "system", "subtype": "api_retry", "error_status": 529})
    say(run, result("half", 0.5))
    heard(agent_runs, run, closed=True)
    agent_runs.end(run, RunEnd.OOM_KILL, most_bytes=GIB)
    kept.note(run)
    assert agent_runs.stop_costly([], [status(of)])
    agent_runs.forget_others([])

    known = {name: value for name, value in vars(agent_runs).items() if isinstance(value, dict)}
    assert known
    assert not any(known.values())
    assert not any(vars(agent_runs.costs)[name] for name in ("_limits", "closed"))
    assert kept.agent_runs().costs.is_closed(of.herd)


def test_what_is_left_of_runs_outlives_the_store() -> None:
    """Whatever it was, it comes back the same."""
    full = Past(
        Progress("s", turns=3, tokens_in=5, tokens_out=6, cost_usd=0.1, overloads=2, retries=1),
        Spent(1, 2, 0.3), turns_before=4, heap_bytes=7,
    )  # fmt: skip

    for past in (Past(), full):
        assert past_from_json(json.loads(json.dumps(past.as_json()))) == past
