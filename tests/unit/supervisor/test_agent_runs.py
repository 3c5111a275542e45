"""The agents' side of the loop: what is started, what is understood, what ends for its cost."""

import errno
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ramherd.act.run import LiveRun
from ramherd.agents.run_state import past_from_json
from ramherd.core.errors import UsageError
from ramherd.core.model import Exit, Job, JobState, Refusal, RunEnd, Settle, Stop, Tree, Why
from ramherd.core.policies import Policy
from ramherd.core.units import GIB, MIB
from ramherd.supervisor.agent_runs import AgentRuns, make_agent_runs
from ramherd.supervisor.check_agents import find_programs
from support.driven_runs import asked, begun, heard, result, say, session, words
from support.make import job, status, stopping


def agent_runs_of(*jobs: Job, max_cost_usd: float | None = None) -> AgentRuns:
    made = make_agent_runs(jobs, Policy(), max_cost_usd=max_cost_usd)
    assert made is not None
    return made


def test_a_job_goes_on_in_the_session_that_its_agent_has_opened(tmp_path: Path) -> None:
    """The prompt the first time, its session the second, and what it took adds up."""
    of = asked()
    agent_runs = agent_runs_of(of)
    first = begun(agent_runs, of, tmp_path)
    say(first, session("s-1"), {**result("half", 0.5), "is_error": True})
    heard(agent_runs, first, closed=True)
    agent_runs.end(first, RunEnd.PREEMPTED, most_bytes=GIB)
    second = begun(agent_runs, of, tmp_path, resumed=True)
    say(second, session("s-1"), result("whole", 0.75))
    heard(agent_runs, second, closed=True)

    assert "--session-id" in words(first)
    assert words(second)[words(second).index("--resume") + 1] == "s-1"
    assert first.agent_run is not None
    assert first.agent_run.launch.stdin == "do it"
    assert second.agent_run is not None
    assert second.agent_run.as_json()["cost_usd"] == 0.75
    assert second.agent_run.as_json()["result"] == "whole"


def test_a_new_session_adds_to_what_the_old_one_took(tmp_path: Path) -> None:
    """Started over: cost and tokens of both, with an id that no session had."""
    of = asked()
    agent_runs = agent_runs_of(of)
    first = begun(agent_runs, of, tmp_path)
    say(first, session("s-1"), {**result("no", 0.5), "is_error": True})
    heard(agent_runs, first, closed=True)
    agent_runs.end(first, RunEnd.FAILED, most_bytes=GIB)
    second = begun(agent_runs, of, tmp_path)
    say(second, session("s-2"), result("yes", 0.25))
    heard(agent_runs, second, closed=True)

    assert "--session-id" in words(second)
    assert second.agent_run is not None
    assert second.agent_run.as_json()["cost_usd"] == 0.75
    assert second.agent_run.as_json()["session"] == "s-2"


def test_a_run_that_opened_no_session_starts_over(tmp_path: Path) -> None:
    """There is nothing to resume before the agent has said its session."""
    of = asked()
    agent_runs = agent_runs_of(of)
    first = begun(agent_runs, of, tmp_path)
    heard(agent_runs, first, closed=True)
    agent_runs.end(first, RunEnd.PREEMPTED, most_bytes=GIB)

    assert "--session-id" in words(begun(agent_runs, of, tmp_path, resumed=True))


def test_a_run_is_not_over_before_its_words_were_read(tmp_path: Path) -> None:
    """The last line may have no end; only then it is known whether the agent succeeded."""
    of = asked()
    agent_runs = agent_runs_of(of)
    run = begun(agent_runs, of, tmp_path)
    run.record_exit(Exit(0, None, 1.0))
    run.close_output(heap_exhausted=False)
    (run.dir / "out").write_text(json.dumps(result("done")))
    before = run.view(kernel_limits=True, at_s=2.0)
    heard(agent_runs, run, closed=True)
    after = run.view(kernel_limits=True, at_s=2.0)

    assert (before.output_closed, after.output_closed) == (False, True)
    assert after.said is not None
    assert after.said.through


def test_a_resumed_agent_that_opens_nothing_has_lost_its_session(tmp_path: Path) -> None:
    """Until it says the session, in this very run."""
    of = asked()
    agent_runs = agent_runs_of(of)
    first = begun(agent_runs, of, tmp_path)
    say(first, session("s-1"))
    heard(agent_runs, first, closed=True)
    agent_runs.end(first, RunEnd.PREEMPTED, most_bytes=GIB)
    second = begun(agent_runs, of, tmp_path, resumed=True)

    assert second.agent_run is not None
    assert second.agent_run.said.lost_session
    say(second, session("s-1"))
    heard(agent_runs, second)
    assert not second.agent_run.said.lost_session


def test_a_long_failure_is_told_in_one_line(tmp_path: Path) -> None:
    """It stands in events and on the screen; whether it speaks of load is told by all of it."""
    of = asked()
    agent_runs = agent_runs_of(of)
    run = begun(agent_runs, of, tmp_path)
    say(run, {**result("no\n" * 200 + "529 overloaded"), "is_error": True})
    heard(agent_runs, run, closed=True)

    assert run.agent_run is not None
    assert len(run.agent_run.said.failure) == 300
    assert "\n" not in run.agent_run.said.failure
    assert run.agent_run.said.overloaded


def denial(path: str) -> dict[str, Any]:
    return {"tool_name": "Write", "tool_use_id": "1", "tool_input": {"file_path": path}}


def test_what_was_refused_is_known_over_a_resume(tmp_path: Path) -> None:
    """Paths below the job's directory are short; a new try begins with nothing."""
    of = replace(asked(), cwd=str(tmp_path))
    agent_runs = agent_runs_of(of)
    first = begun(agent_runs, of, tmp_path)
    refused = [denial(f"{tmp_path}/a b.txt"), denial("/etc/x")]
    say(first, session("s-1"), {**result("half"), "permission_denials": refused})
    heard(agent_runs, first, closed=True)
    agent_runs.end(first, RunEnd.PREEMPTED, most_bytes=GIB)
    second = begun(agent_runs, of, tmp_path, resumed=True)
    assert second.agent_run is not None

    assert second.agent_run.as_json()["denied"] == [
        {"tool": "Write", "what": "a b.txt", "allow": "Write"},
        {"tool": "Write", "what": "/etc/x", "allow": "Write"},
    ]
    kept = json.loads(json.dumps(second.agent_run.past.as_json()))
    assert past_from_json(kept).progress.denied == second.agent_run.progress.denied
    again = begun(agent_runs, of, tmp_path)
    assert again.agent_run is not None
    assert again.agent_run.as_json()["denied"] == []


@pytest.mark.parametrize(
    ("end", "told", "error"),
    [
        (RunEnd.FAILED, False, "Error: no key"),
        (RunEnd.FAILED, True, "it gave up"),
        (RunEnd.PREEMPTED, False, None),
        (RunEnd.DONE, False, None),
    ],
)
def test_a_run_that_failed_has_the_words_of_its_cli(
    tmp_path: Path, end: RunEnd, told: bool, error: str | None
) -> None:
    """What the agent reported counts for more than the last line on stderr."""
    of = asked()
    agent_runs = agent_runs_of(of)
    run = begun(agent_runs, of, tmp_path)
    (run.dir / "err").write_text("warning\nError: no key\n")
    if told:
        say(run, {**result("it gave up"), "is_error": True})
    heard(agent_runs, run, closed=True)
    agent_runs.end(run, end, most_bytes=GIB)

    assert run.agent_run is not None
    assert run.agent_run.as_json()["error"] == error
    # It has opened no session that could be continued.
    assert run.agent_run.as_json()["resume"] is None


def test_a_session_is_continued_by_hand_in_its_worktree(tmp_path: Path) -> None:
    """Also after a run that was stopped; names with spaces are quoted."""
    tree = Tree("/repo", "c0ffee", f"{tmp_path}/a tree", "ramherd/a", "inside")
    of = asked(program="", tree=tree)
    path = tmp_path / "claude"
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    agent_runs = agent_runs_of(replace(of, env={"PATH": str(tmp_path)}))
    (tmp_path / "runs").mkdir()
    run = begun(agent_runs, of, tmp_path / "runs")
    say(run, session("s-1"))
    heard(agent_runs, run)

    assert run.agent_run is not None
    expected = f"cd '{tmp_path}/a tree/inside' && claude --resume s-1"
    assert run.agent_run.as_json()["resume"] == expected


def test_the_smaller_model_is_only_for_short_memory(tmp_path: Path) -> None:
    """And it is said."""
    of = asked()
    agent_runs = agent_runs_of(of)
    usual, short = begun(agent_runs, of, tmp_path), begun(agent_runs, of, tmp_path, short=True)

    assert [words(run)[words(run).index("--model") + 1] for run in (usual, short)] == [
        "opus",
        "haiku",
    ]
    assert short.agent_run is not None
    assert short.agent_run.as_json()["model"] == "haiku"
    assert (short.agent_run.as_json()["fallback"] or {})["why"] == "step_down"
    assert usual.agent_run is not None
    assert usual.agent_run.as_json()["fallback"] is None
    why = agent_runs.prepare(short, MIB, stopped=None, short=True)
    assert why is not None
    assert why.why is Why.STEP_DOWN


def test_a_run_that_costs_too_much_is_stopped(tmp_path: Path) -> None:
    """Unless it has succeeded anyway; a CLI that supports a limit gets it as well."""
    of = asked(max_cost_usd=1.0)
    agent_runs = agent_runs_of(of)
    run = begun(agent_runs, of, tmp_path)
    say(run, session("s"), {**result("", 1.5), "is_error": True})
    heard(agent_runs, run)
    (stop,) = agent_runs.stop_costly([run], [])
    say(run, result("through", 1.5))
    heard(agent_runs, run)

    assert words(run)[words(run).index("--max-budget-usd") + 1] == "1.000000"
    assert isinstance(stop, Stop)
    assert (stop.end, stop.reason.why) == (RunEnd.FAILED, Why.COST)
    assert agent_runs.stop_costly([run], []) == []


def test_a_herd_that_costs_too_much_is_over(tmp_path: Path) -> None:
    """With what ended before: what runs is stopped, what waits is cancelled, nothing starts."""
    first, second, third = asked("a"), asked("b"), asked("c")
    agent_runs = agent_runs_of(first, second, third, max_cost_usd=1.0)
    ended, runs = begun(agent_runs, first, tmp_path), begun(agent_runs, second, tmp_path)
    say(ended, result("yes", 0.6))
    heard(agent_runs, ended, closed=True)
    agent_runs.end(ended, RunEnd.DONE, most_bytes=GIB)
    assert agent_runs.stop_costly([runs], []) == []
    say(runs, {**result("no", 0.6), "is_error": True})
    heard(agent_runs, runs)
    stop, settle = agent_runs.stop_costly([runs], [status(third)])

    assert agent_runs.costs.closed == {third.herd}
    assert isinstance(stop, Stop)
    assert isinstance(settle, Settle)
    assert (stop.end, settle.state) == (RunEnd.CANCELLED, JobState.CANCELLED)


@pytest.mark.parametrize("is_refused", [True, False])
def test_a_run_that_never_began_costs_nothing(tmp_path: Path, *, is_refused: bool) -> None:
    """Refused by the keeper, or withdrawn before that: the next one gets the same share."""
    of = asked()
    agent_runs = agent_runs_of(of, max_cost_usd=1.0)
    for _ in range(2):
        run = begun(agent_runs, of, tmp_path)
        if is_refused:
            run.refuse(Refusal(errno.ENOSPC, "cannot prepare a run", is_ours=True), 0.0)
            agent_runs.end(run, RunEnd.LOST, most_bytes=GIB)
        else:
            agent_runs.withdraw(run)

    assert told_usd(begun(agent_runs, of, tmp_path)) == "1.000000"


def test_runs_of_a_herd_share_what_is_left(tmp_path: Path) -> None:
    """Told to each; one that has spent its share goes on with what others left."""
    jobs = [asked("a"), asked("b")]
    agent_runs = agent_runs_of(*jobs, max_cost_usd=1.0)
    first, second = (begun(agent_runs, of, tmp_path) for of in jobs)
    assert [told_usd(run) for run in (first, second)] == ["0.500000", "0.500000"]
    say(first, session("s"), {**result("", 0.55), "is_error": True})
    heard(agent_runs, first, closed=True)
    assert first.agent_run is not None
    assert first.agent_run.said.has_spent_share
    assert not first.agent_run.said.is_too_costly
    agent_runs.end(first, RunEnd.FAILED, most_bytes=GIB)
    assert not agent_runs.may_start(jobs[0])

    say(second, session("t"), result("yes", 0.15))
    heard(agent_runs, second, closed=True)
    agent_runs.end(second, RunEnd.DONE, most_bytes=GIB)
    agent_runs.end_job(jobs[1])
    assert agent_runs.may_start(jobs[0])
    assert told_usd(begun(agent_runs, jobs[0], tmp_path, resumed=True)) == "0.300000"


def told_usd(run: LiveRun) -> str:
    return words(run)[words(run).index("--max-budget-usd") + 1]


def test_an_overload_is_told_once_and_slows_the_class(tmp_path: Path) -> None:
    """Many agents say the same of one moment."""
    of = asked()
    agent_runs = agent_runs_of(of)
    run = begun(agent_runs, of, tmp_path)
    retry = {"type": "system", "subtype": "api_retry", "error_status": 529, "error": "overloaded"}
    say(run, retry, retry)

    line = [(of, 0.0), (job("a command"), 0.0)]
    assert [at_s for at_s, _ in agent_runs.limits.choose_times(line, 10.0)] == [0.0, 0.0]
    assert heard(agent_runs, run) == [Why.OVERLOAD]
    assert [at_s for at_s, _ in agent_runs.limits.choose_times(line, 10.0)] == [12.0, 0.0]


def test_a_heap_that_was_too_small_is_larger_once(tmp_path: Path) -> None:
    """If the budget has room for it, and no `memory_limit` is in its way; however much it was
    granted meanwhile.
    """
    for limit, most, factor in ((None, GIB, 1), (None, 2 * GIB, 2), (GIB, 8 * GIB, 1)):
        of = asked(memory_limit=limit)
        agent_runs = agent_runs_of(of)
        first = begun(agent_runs, of, tmp_path)
        first.set_grant(900 * MIB, 896 * MIB)
        agent_runs.end(first, RunEnd.HEAP_EXHAUSTED, most_bytes=most)
        second = begun(agent_runs, of, tmp_path)

        assert first.agent_run is not None
        assert second.agent_run is not None
        sizes = [
            int(run.agent_run.launch.env["BUN_JSC_forceRAMSize"])
            for run in (first, second)
            if run.agent_run
        ]
        assert sizes[1] == factor * sizes[0]


def test_the_time_of_open_tool_calls_is_known(tmp_path: Path) -> None:
    """From the first look at the oldest of them, until the run is stopped; the time that it was
    held does not count.
    """
    of = asked()
    agent_runs = agent_runs_of(of)
    run = begun(agent_runs, of, tmp_path)
    assert run.agent_run is not None
    use: dict[str, Any] = {"type": "tool_use", "name": "Bash", "input": {}}
    tools = [{**use, "id": id_} for id_ in ("t1", "t2")]
    calls = {"type": "assistant", "message": {"id": "m", "content": tools}}
    ended = {"type": "tool_result", "tool_use_id": "t1", "content": "ok"}

    def open_s(at_s: float, *lines: dict[str, Any]) -> float:
        say(run, *lines)
        list(agent_runs.read_output([run], at_s))
        assert run.agent_run is not None
        return run.agent_run.open_tool_s

    assert open_s(10.0, session("s-1")) == 0.0
    assert (open_s(11.0, calls), open_s(14.0)) == (0.0, 3.0)
    run.skip(2.0)
    assert open_s(16.0) == 3.0
    assert open_s(17.0, {"type": "user", "message": {"content": [ended]}}) == 4.0
    run.stop(stopping(RunEnd.PREEMPTED))
    assert open_s(19.0) == 4.0


def test_a_heap_of_the_users_own_is_for_node(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the environment of the job; doubled when it was full. A program of Bun has another."""
    monkeypatch.delenv("NODE_OPTIONS", raising=False)
    script = tmp_path / "cli.js"
    script.write_text("#!/usr/bin/env node\n")
    script.chmod(0o755)
    own = {"NODE_OPTIONS": "--max-old-space-size=300"}
    native = replace(asked(), env=own)
    brief = replace(native.brief, agent="qwen", program=str(script)) if native.brief else None
    of = replace(native, brief=brief)
    agent_runs = agent_runs_of(of)
    first = begun(agent_runs, of, tmp_path)
    agent_runs.end(first, RunEnd.HEAP_EXHAUSTED, most_bytes=GIB)

    assert "--max-old-space-size=300" in words(first)
    assert "--max-old-space-size=600" in words(begun(agent_runs, of, tmp_path))
    other = begun(agent_runs_of(native), native, tmp_path).agent_run
    assert other is not None
    assert other.launch.env["BUN_JSC_forceRAMSize"] == str(GIB)


def test_too_little_memory_for_an_agent_is_refused() -> None:
    """With the number, before anything starts; `--force` does it all the same."""
    with pytest.raises(
        UsageError, match="job a: memory_limit 100 MiB is below the 381 MiB"
    ) as told:
        find_programs([asked(memory_limit=100 * MIB)])

    assert told.value.hint.endswith("or ramherd run --force")
    assert find_programs([asked(memory_limit=100 * MIB)], force=True)


def test_a_program_that_is_not_there_is_said_with_how_to_get_it() -> None:
    """Before anything starts."""
    with pytest.raises(UsageError, match="codex: '/no/codex' is not found") as told:
        find_programs([asked(agent="codex", program="/no/codex")])

    assert told.value.hint == "npm install -g @openai/codex"


def test_a_limit_on_a_cost_that_nobody_says_is_refused() -> None:
    """codex does not report what it costs, for a job or for the herd."""
    with pytest.raises(UsageError, match="codex does not say what it costs"):
        find_programs([asked(agent="codex", max_cost_usd=1.0)])
    with pytest.raises(UsageError, match="codex does not say what it costs"):
        agent_runs_of(asked(agent="codex"), max_cost_usd=1.0)


def test_a_herd_without_agents_drives_none() -> None:
    """Nothing is looked for."""
    assert make_agent_runs([job()], Policy()) is None
