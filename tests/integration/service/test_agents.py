"""Agents in the service, with a program that only talks like one."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from integration.conftest import await_, need, ours
from integration.service.conftest import Service
from integration.service.talker import Talker
from ramherd.agents.resume_prompt import render_resume_prompt
from ramherd.core.errors import UsageError
from ramherd.core.model import Reason, Why
from support.terminals import open_terminal

IDENTITY = ("-c", "user.name=test", "-c", "user.email=test@example.org")


@pytest.fixture
def talker(tmp_path: Path) -> Talker:
    return Talker(tmp_path)


def ask(talker: Talker, name: str = "a", **keys: Any) -> dict[str, Any]:
    told = {"agent": "claude", "prompt": "do it", "agent_program": str(talker.program)}
    return {"name": name, "memory": "20MiB", **told, **keys}


def in_tool(service: Service, name: str = "a") -> str:
    """What the run of a job is doing, once that is a tool."""
    runs = service.client.snapshot()["runs"]
    return next(
        (run["doing"] for run in runs if run["name"] == name and "Bash" in run["doing"]), ""
    )


def test_a_run_by_the_service_comes_to_the_same(service: Service, talker: Talker) -> None:
    """`run --agent` prints the same results, whoever runs it."""
    talker.go()
    flags = ("--agent", "claude", "--agent-program", str(talker.program), "--json", "do it")
    by_service = json.loads(service.ramherd.run("run", *flags).stdout)
    alone = json.loads(service.ramherd.run("run", "--own", *flags).stdout)

    (one,), (other,) = by_service["results"], alone["results"]
    assert (by_service["done"], by_service["service"], "service" in alone) == (1, True, False)
    assert other.keys() == one.keys()
    for key in ("job", "state", "end", "exit_code", "runs", "reason", "model", "worktree"):
        assert one[key] == other[key], key
    said = ("Through.", 1, 10, 2, 0.5)
    for result in (one, other):
        keys = ("result", "turns", "tokens_in", "tokens_out", "cost_usd")
        assert tuple(result[key] for key in keys) == said
    assert one["session"] in Path(one["log"]).read_text()


def test_a_job_says_how_far_it_is(service: Service, talker: Talker) -> None:
    """While it runs and afterwards, to the API and on the terminal."""
    herd = service.submit(ask(talker))
    assert await_(lambda: in_tool(service), "the agent is in a tool") == "turn 1 Bash"
    assert "turn 1 Bash" in service.ramherd.run("jobs").stdout
    talker.go()
    service.client.wait(herd)

    job = service.job("a")
    assert (job["agent"], job["prompt"], job["turns"], job["cost_usd"]) == (
        "claude", "do it", 1, 0.5,
    )  # fmt: skip
    assert (job["session"], job["result"]) == (talker.asked[0][1], "Through.")
    listed = json.loads(service.ramherd.run("jobs", "--all", "--json").stdout)
    assert (listed["session"], listed["tokens_in"]) == (job["session"], 10)


def test_a_terminal_shows_the_turn_and_the_tool(service: Service, talker: Talker) -> None:
    """As it does without a service; at the end the display makes way for what came of it."""
    flags = ("--agent", "claude", "--agent-program", str(talker.program), "do it")
    command = [sys.executable, "-m", "ramherd", "run", *flags]
    window = open_terminal(command, {**service.ramherd.env, "TERM": "xterm", "NO_COLOR": "1"})
    window.expect("1-do-it  turn 1 Bash")
    talker.go()
    window.expect("1 of 1 job done")

    assert window.wait() == 0
    window.close()


def test_what_cannot_be_driven_is_refused_when_it_is_submitted(
    service: Service, talker: Talker
) -> None:  # fmt: skip
    """In one line, with how to get it; nothing of it is on record."""
    service.ramherd.env["PATH"] = "/usr/bin:/bin"
    told = service.ramherd.run("submit", "--agent", "codex", "do it")
    little = service.ramherd.run(
        "submit", "--agent", "claude", "--agent-program", str(talker.program),
        "--memory-limit", "100MiB", "do it",
    )  # fmt: skip

    assert (told.returncode, told.stderr) == (
        2, "ramherd: codex: codex is not found\n  hint: npm install -g @openai/codex\n",
    )  # fmt: skip
    assert "is below the 381 MiB that claude needs" in little.stderr
    codex = {"cwd": "/", **ask(talker, agent="codex")}
    with pytest.raises(UsageError, match="codex does not say what it costs"):
        service.client.submit([codex], max_cost_usd=1.0)
    assert service.client.herds() == []


def test_a_program_that_is_gone_when_it_is_to_start(service: Service, talker: Talker) -> None:
    """The job has failed, with the sentence that says what to do."""
    service.client.pause()
    herd = service.submit(ask(talker))
    talker.program.unlink()
    service.client.resume()
    service.client.wait(herd)

    job = service.job("a")
    assert (job["state"], job["reason"]["why"]) == ("failed", "not_started")
    assert "is not found (npm install -g @anthropic-ai/claude-code)" in job["reason"]["what"]


def test_an_agent_goes_on_when_the_service_is_killed(each_service: Service, talker: Talker) -> None:
    """The next one reads all that it has said: the same session, one run, nothing twice."""
    herd = each_service.submit(ask(talker))
    await_(lambda: in_tool(each_service), "the agent is in a tool")
    each_service.kill()
    each_service.start()
    assert await_(lambda: in_tool(each_service), "the tool is known again") == "turn 1 Bash"
    talker.go()
    each_service.client.wait(herd)

    (result,) = each_service.client.summary(herd)["results"]
    assert (result["state"], result["runs"], result["turns"], result["cost_usd"]) == (
        "done", 1, 1, 0.5,
    )  # fmt: skip
    assert [result["session"]] == [session for _how, session, _prompt in talker.asked]


def test_an_adopted_agent_resumes_its_session_later(service: Service, talker: Talker) -> None:
    """Killed, adopted, recycled: what it said to the first service is resumed by the second."""
    herd = service.submit(ask(talker))
    await_(lambda: in_tool(service), "the agent is in a tool")
    service.kill()
    service.start()
    service.client.recycle(service.job("a")["id"])
    await_(lambda: len(talker.asked) == 2, "the second run")
    talker.go()
    service.client.wait(herd)

    (_how, session, _prompt), again = talker.asked
    assert again == ["--resume", session, render_resume_prompt(Reason(Why.ASKED))]
    (result,) = service.client.summary(herd)["results"]
    assert (result["session"], result["runs"], result["turns"]) == (session, 2, 2)


@pytest.mark.parametrize("keeper_dies", [False, True])
def test_a_job_that_was_cut_off_resumes_over_a_restart(
    service: Service, talker: Talker, keeper_dies: bool
) -> None:  # fmt: skip
    """Told to end, or killed with its keeper: queued, and then in the same session."""
    herd = service.submit(ask(talker, env={"COST": "0.25"}))
    await_(lambda: in_tool(service), "the agent is in a tool")
    if keeper_dies:
        service.kill_with_keepers()
    else:
        service.stop()
    talker.go()
    service.start()
    service.client.wait(herd)

    (first, session, prompt), again = talker.asked
    why = Reason(Why.SUPERVISOR_LOST if keeper_dies else Why.SERVICE_STOPS)
    assert (first, prompt) == ("--session-id", "do it")
    assert again == ["--resume", session, render_resume_prompt(why)]
    (result,) = service.client.summary(herd)["results"]
    assert (result["state"], result["runs"], result["session"]) == ("done", 2, session)
    assert (result["turns"], result["tokens_in"], result["cost_usd"]) == (2, 20, 0.25)


def test_a_heap_that_was_full_is_larger_after_a_restart(service: Service, talker: Talker) -> None:
    """In the same session; the next service knows it from the store."""
    herd = service.submit(ask(talker, env={"FULL": "1"}))
    await_(lambda: in_tool(service), "the agent is in a tool")
    service.client.pause()
    talker.go()
    service.await_state("a", "queued")
    service.stop()
    service.start()
    service.client.resume()
    service.client.wait(herd)

    small, large = talker.heaps
    assert large > small
    assert [how for how, _session, _prompt in talker.asked] == ["--session-id", "--resume"]
    assert [run["end"] for run in service.job("a")["runs"]] == ["heap_exhausted", "done"]


@pytest.mark.parametrize(("silent", "state"), [("", "done"), ("1", "failed")])
def test_what_an_agent_said_while_no_service_was_there(
    service: Service, talker: Talker, silent: str, state: str
) -> None:
    """Its word counts, not its exit code, which is 0 in both cases."""
    herd = service.submit(ask(talker, env={"SILENT": silent}))
    await_(lambda: in_tool(service), "the agent is in a tool")
    service.kill()
    talker.go()
    await_(lambda: not ours(), "agent and keeper end by themselves")
    service.start()
    service.client.wait(herd)

    (result,) = service.client.summary(herd)["results"]
    assert (result["state"], result["exit_code"], result["turns"]) == (state, 0, 1)
    assert result["result"] == (None if silent else "Through.")


def test_the_cost_of_one_herd_is_no_others(service: Service, talker: Talker) -> None:
    """One that has cost enough is over, also for the next service; others go on."""
    talker.go()
    jobs = [ask(talker, name) for name in "abc"]
    for before, job in zip("ab", jobs[1:], strict=True):
        job["after"] = [before]
    keys = [{"cwd": "/", **job} for job in jobs]
    limited = service.client.submit(keys, service.ramherd.env, max_cost_usd=0.5)
    free = service.client.submit(keys, service.ramherd.env)
    service.client.wait(limited)
    service.client.wait(free)

    whys = [(job["state"], job["reason"]["why"]) for job in service.client.jobs(limited)]
    assert whys == [
        ("done", "said_done"),
        ("cancelled", "cost"),
        ("cancelled", "dependency_failed"),
    ]
    assert service.client.herd(free)["counts"] == {"done": 3}
    service.stop()
    service.start()
    service.client.retry(service.id_of(limited, "b"))
    service.client.wait(limited)
    again = service.client.job(service.id_of(limited, "b"))
    assert (again["state"], again["reason"]["why"], again["attempts"]) == ("cancelled", "cost", 0)


@pytest.mark.parametrize("killed", [False, True])
def test_worktrees_are_made_and_settled(
    service: Service, talker: Talker, tmp_path: Path, killed: bool
) -> None:  # fmt: skip
    """What one has changed is kept on its branch, the other's is removed: by the next service as
    well, if the jobs have ended before it came.
    """
    need("git", "git")
    repo = tmp_path / "repo"
    repo.mkdir()
    for args in (("init", "-q"), ("commit", "-q", "--allow-empty", "-m", "first")):
        subprocess.run(["git", *IDENTITY, *args], cwd=repo, check=True)
    herd = service.submit(
        ask(talker, "writes", cwd=str(repo), env={"WRITE": "written"}),
        ask(talker, "reads", cwd=str(repo)),
    )
    await_(lambda: in_tool(service, "writes") and in_tool(service, "reads"), "both are in a tool")
    if killed:
        service.kill()
        talker.go()
        await_(lambda: not ours(), "agents and keeper end by themselves")
        service.start()
    talker.go()
    service.client.wait(herd)

    writes, reads = service.client.summary(herd)["results"]
    assert (writes["state"], reads["state"], reads["worktree"]) == ("done", "done", None)
    assert Path(writes["worktree"], "written").read_text() == "new\n"
    listed = subprocess.check_output(["git", "branch"], cwd=repo, text=True)
    assert listed.count("ramherd/") == 1
    assert len(list((service.ramherd.state / "ramherd/worktrees").glob("*/"))) == 1
