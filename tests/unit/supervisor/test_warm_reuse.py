"""Warm processes on values: when one has served enough, who gets it, and what it is fed."""

import errno
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ramherd.act.run import LiveRun
from ramherd.act.warm_pool import LEAVE_S, IdleProcess, WarmPool, WarmProcess
from ramherd.agents import find_agent
from ramherd.core.agent_names import AGENTS, WARM_AGENTS
from ramherd.core.model import Finish, JobState, Reason, RunEnd, Why
from ramherd.core.policies import ReusePolicy
from ramherd.core.units import MIB
from ramherd.decide.engine import decide
from ramherd.decide.job_state import after_run
from ramherd.decide.run_end import finish_ended, is_failed_start, judge
from ramherd.decide.warm import (
    RenewalState,
    WarmDemand,
    Worn,
    choose_reuse,
    why_retired,
    why_retired_after_job,
)
from ramherd.keeper.stdin_writer import CHUNK_BYTES, StdinWriter
from ramherd.supervisor.dry_run import plan_job
from support.driven_runs import asked, begun, heard, result, say, session
from support.fakes import FakePen
from support.make import exited, job, policy, run, snapshot, status, stopping
from unit.supervisor.test_agent_runs import agent_runs_of

POLICY = ReusePolicy(most_bytes=100 * MIB, most_age_s=60.0, most_idle_s=10.0)
FRESH = Worn(jobs=1, most_jobs=5, used_bytes=50 * MIB, age_s=5.0)


def cause(worn: Worn, *, wanted: bool = False, needed: bool = True) -> str | None:
    reason = why_retired(worn, POLICY, wanted=wanted, needed=needed)
    return None if reason is None else str(reason.numbers["cause"])


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, None),
        ({"jobs": 5}, "job_limit"),
        ({"used_bytes": 101 * MIB}, "size"),
        ({"age_s": 61.0}, "age"),
        ({"idle_s": 11.0}, "idle"),
        ({"company": 1}, "left_processes"),
    ],
)
def test_a_process_serves_until_it_is_worn(changes: dict[str, Any], expected: str | None) -> None:
    """Each limit by itself."""
    assert cause(replace(FRESH, **changes)) == expected


def test_a_process_goes_when_others_need_its_memory() -> None:
    """Or when nobody needs it."""
    assert cause(FRESH, wanted=True) == "memory_wanted"
    assert cause(FRESH, needed=False) == "not_needed"


def test_the_first_in_line_may_have_it_however_short_memory_is() -> None:
    """Nothing changes hands then; a run that is held comes before anybody's start."""
    short = WarmDemand(key="same", short=True)

    assert not short.is_memory("same")
    assert short.is_memory("other")
    assert replace(short, held=True).is_memory("same")
    assert not WarmDemand(key="same").is_memory("other")


def test_a_free_process_goes_to_the_first_in_line_if_the_two_agree() -> None:
    """Not while a run is held: its memory is needed."""
    demand = WarmDemand("id-a", key="same")

    admit = choose_reuse(demand, "same", 50 * MIB, jobs=1, most_jobs=5)
    assert admit is not None
    assert (admit.job, admit.grant_bytes) == ("id-a", 50 * MIB)
    assert admit.reason.numbers == {"jobs": 2, "most_jobs": 5}
    for other in (replace(demand, key="other"), replace(demand, held=True), WarmDemand(key="same")):
        assert choose_reuse(other, "same", 50 * MIB, jobs=1, most_jobs=5) is None


@pytest.mark.parametrize(
    ("state", "changes", "expected"),
    [
        (RenewalState.NOT_ASKED, {}, None),
        (RenewalState.ASKED, {}, None),
        (RenewalState.DONE, {}, None),
        (RenewalState.FAILED, {}, "same_session"),
        (RenewalState.DONE, {"kernel_kills": 1}, "kernel_kill"),
        (RenewalState.FAILED, {"failed": True, "kernel_kills": 1}, "failure"),
    ],
)
def test_a_process_that_failed_or_keeps_its_session_serves_no_more(
    state: RenewalState, changes: dict[str, Any], expected: str | None
) -> None:
    """Kernel kills of its tools would count for the next job as well."""
    known = {"failed": False, "kernel_kills": 0, **changes}
    reason = why_retired_after_job(FRESH, state, **known)

    assert (reason and reason.numbers["cause"]) == expected


def test_a_run_whose_process_is_free_is_done() -> None:
    """Unless it was told to end meanwhile, or has ended."""
    done = Finish("r", RunEnd.DONE, Reason(Why.SAID_DONE))

    assert finish_ended(snapshot(run(ready=True, procs=1)), policy()) == [done]
    told = run(ready=True, procs=1, stop=stopping(RunEnd.PREEMPTED))
    assert finish_ended(snapshot(told), policy()) == []
    assert finish_ended(snapshot(run(ready=True, procs=1, exit=exited())), policy()) == []


def test_a_run_that_is_over_is_told_nothing_else() -> None:
    """Its time is up in the moment in which its process is free."""
    late = run(of=job("a", timeout_s=1.0), ready=True, procs=1, started_s=0.0, engine="/run/x.sock")

    assert [type(action) for action in decide(snapshot(late), policy())] == [Finish]


def test_a_warm_process_that_is_gone_costs_the_job_nothing() -> None:
    """It is neither lost nor a failed start, and starts at once."""
    end, reason = judge(run(refused=(errno.ESRCH, "gone")))
    after = after_run(status(), end, reason, at_s=5.0, policy=policy())

    assert (after.state, after.lost, after.not_before_s, after.interrupted) == (
        JobState.QUEUED, 0, 0.0, False,
    )  # fmt: skip
    assert not is_failed_start(run(refused=(errno.ESRCH, "gone")), end, 100.0)


def test_the_names_of_those_that_can_be_warm() -> None:
    """Known without loading the adapters."""
    assert tuple(name for name in AGENTS if find_agent(name).warm is not None) == WARM_AGENTS


def test_what_is_started_warm_does_not_hold_the_job() -> None:
    """Neither prompt nor session nor grant: it is the same for all that can share it."""
    jobs = [asked("a", prompt="one", reuse=2), asked("b", prompt="two", reuse=2)]
    agent_runs = agent_runs_of(*jobs)
    first, second = (agent_runs.launch_warm(job, "opus") for job in jobs)

    assert first is not None
    assert second is not None
    assert (first.argv, first.env) == (second.argv, second.env)
    assert first.warm
    assert "--session-id" not in first.argv
    assert "one" in first.stdin
    assert "two" in second.stdin


def test_a_plan_shows_the_warm_process() -> None:
    """`--dry-run` prints what would be started, not what would be without reuse."""
    jobs = [asked("a", reuse=2), asked("b")]
    warm, cold = (plan_job(job, agent_runs_of(*jobs)).argv for job in jobs)

    assert "--input-format" in warm
    assert "--input-format" not in cold


@pytest.mark.parametrize("changes", [{"reuse": 0}, {"reuse": 1}, {"reuse": 5, "max_cost_usd": 1.0}])
def test_a_job_that_has_a_process_of_its_own(changes: dict[str, Any]) -> None:
    """claude counts cost by process."""
    job = asked("a", **changes)

    assert agent_runs_of(job).launch_warm(job, "") is None


def test_a_job_of_a_herd_with_a_cost_limit() -> None:
    """What is left of it is counted by process, too."""
    job = asked("a", reuse=5)

    assert agent_runs_of(job, max_cost_usd=1.0).launch_warm(job, "") is None


@pytest.mark.parametrize(("name", "is_new"), [("s2", True), ("s1", False)])
def test_a_new_session_is_another_one(tmp_path: Path, name: str, *, is_new: bool) -> None:
    """The answer to the question for one is no result of the job."""
    job = asked("a", reuse=5)
    agent_runs = agent_runs_of(job)
    live = begun(agent_runs, job, tmp_path)
    assert live.agent_run is not None
    say(live, session("s1"), result("Through.", 0.5))
    heard(agent_runs, live)
    fresh = live.agent_run.renew(10.0)
    say(live, session(name), result(""))
    heard(agent_runs, live)

    assert "/clear" in fresh
    assert live.agent_run.renewal is not None
    assert live.agent_run.renewal.is_answered
    assert live.agent_run.renewal.is_new is is_new
    said = live.agent_run.as_json()
    assert (said["session"], said["result"], said["cost_usd"]) == ("s1", "Through.", 0.5)


def idle(name: str, key: str = "same") -> IdleProcess:
    pen = FakePen(name, 50 * MIB, 1e9)
    pen.alive = True
    last = LiveRun(name, asked(name), 1, Path("/"), 0.0)
    return IdleProcess(last, WarmProcess(key, 5, 0.0), pen, 0.0, 50 * MIB, 0)


def test_a_spare_is_taken_by_who_wants_the_same() -> None:
    """Once, and not when it is leaving."""
    warm_pool = WarmPool()
    for name, key in (("a", "same"), ("b", "other"), ("c", "same")):
        warm_pool.add(idle(name, key))
    warm_pool.all["c"].leaving_s = 1.0

    found = [warm_pool.pop("same"), warm_pool.pop("same")]
    assert [taken and taken.last.id for taken in found] == ["a", None]
    assert warm_pool.used_bytes == 100 * MIB


def test_a_spare_that_leaves_is_gone_when_nothing_of_it_lives() -> None:
    """One that does not leave is killed."""
    warm_pool = WarmPool()
    warm_pool.add(idle("a"))
    warm_pool.all["a"].leaving_s = 10.0
    pen = warm_pool.all["a"].pen
    assert isinstance(pen, FakePen)

    assert warm_pool.pop_gone(10.0 + LEAVE_S) == []
    assert pen.alive
    assert warm_pool.pop_gone(10.1 + LEAVE_S) == []
    assert not pen.alive
    warm_pool.record_exit("a")
    assert [one.last.id for one in warm_pool.pop_gone(20.0)] == ["a"]
    assert not warm_pool.all


def test_a_feed_writes_as_much_as_is_read(tmp_path: Path) -> None:
    """A file larger than the pipe, then another one, in order; closed after the last."""
    large, small = tmp_path / "large", tmp_path / "small"
    large.write_bytes(b"a" * 5 * CHUNK_BYTES)
    small.write_bytes(b"b" * 10)
    end, pipe = os.pipe()
    feed = StdinWriter(pipe)
    feed.add(str(large))
    feed.add(str(small))
    taken = b""
    while feed.advance():
        taken += os.read(end, CHUNK_BYTES)
    feed.close()
    while piece := os.read(end, CHUNK_BYTES):
        taken += piece
    os.close(end)

    assert taken == b"a" * 5 * CHUNK_BYTES + b"b" * 10


def test_a_reader_that_is_gone_costs_nothing(tmp_path: Path) -> None:
    """Its exit is told by others."""
    (tmp_path / "text").write_text("x")
    end, pipe = os.pipe()
    os.close(end)
    feed = StdinWriter(pipe)
    feed.add(str(tmp_path / "text"))

    assert not feed.advance()
    feed.close()


def test_who_comes_later_hears_no_other_session(tmp_path: Path) -> None:
    """A supervisor that goes on with the run also reads what was printed for the next job."""
    job = asked("a", reuse=5)
    agent_runs = agent_runs_of(job)
    live = begun(agent_runs, job, tmp_path)
    assert live.agent_run is not None
    say(live, session("s1"), result("Through.", 0.5), session("s2"), result(""))
    heard(agent_runs, live)

    said = live.agent_run.as_json()
    assert (said["session"], said["result"], said["cost_usd"]) == ("s1", "Through.", 0.5)
