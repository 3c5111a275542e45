"""What each adapter promises of its CLI, on the real one."""

import json
import os
import signal
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from e2e.agent_home import Home, Running
from integration.conftest import await_, ours
from llm import LLM
from ramherd.agents.base import new_uuid
from ramherd.agents.progress import Overload, Progress, SessionOpened, ToolStarted
from ramherd.agents.resume_prompt import GO_ON
from ramherd.measure.own_memory import own_pids
from ramherd.system.procfs import read_processes

# opencode takes 3 s to its first request, and 20 on a machine with much else to do.
START_S = 60.0
# The second part waits to be stopped, the first time.
PARTS = [
    {"shell": "echo first-part"},
    {"shell": "test -e waiting || { touch waiting; sleep 300; }; echo second-part"},
    {"say": "Both parts are done."},
]


def test_an_agent_runs_a_tool_and_says_its_result(home: Home, llm: LLM) -> None:
    """From the prompt to the result: session, turns, tokens, and what the shell printed."""
    progress = home.start("do it [script shell]").finish()

    assert progress.result == "The shell said it."
    assert progress.failure is None
    assert progress.session
    assert progress.turns == 2
    assert progress.tokens_in >= 200
    assert progress.tokens_out >= 20
    assert (progress.cost_usd > 0) is home.agent.reports_cost
    assert progress.is_between_turns
    assert "from-the-shell" in llm.of("shell")[-1].texts("result")[0]


def test_a_stopped_agent_goes_on_in_its_session(home: Home, llm: LLM) -> None:
    """TERM in the middle of a tool, the pen cleared, resumed: one session, one history."""
    llm.add({"parts": PARTS})
    run = home.start("do - it [script parts]")
    sign = home.cwd / "waiting"
    await_(lambda: sign.exists() or run.process.poll() is not None, "the tool", START_S)
    tool = await_(sleeping, "the tool's own tool")
    own = own_pids(read_processes(), run.process.pid)
    assert run.process.pid in own
    assert not own & tool
    stopped = stop(run, home)
    assert stopped.result is None
    before = len(llm.talks)
    progress = home.resume(stopped).finish()

    assert progress.result == "Both parts are done."
    assert progress.session == stopped.session
    assert progress.turns > stopped.turns
    assert progress.tokens_in > stopped.tokens_in
    history = [talk for talk in llm.talks[before:] if talk.script == "parts"][-1]
    assert any("first-part" in text for text in history.texts("result"))
    assert any("[script parts]" in text for text in history.texts("user"))
    assert any(GO_ON in text for text in history.texts("user"))


def sleeping() -> set[int]:
    """What the second part of the script waits in."""
    tagged = ours()
    return {
        proc.id.pid for proc in read_processes() if proc.name == "sleep" and proc.id.pid in tagged
    }


def stop(run: Running, home: Home) -> Progress:
    run.process.send_signal(home.agent.stop_signal)
    await_(lambda: run.process.poll() is not None, "the agent's end")
    for pid in ours():
        os.kill(pid, signal.SIGKILL)
    return run.finish()


def test_a_session_that_is_gone_is_not_opened(home: Home, llm: LLM) -> None:
    """The CLI ends by itself before it asks for anything: the job has to start over."""
    gone = "ses_e1e4a6afcffevD6qg3cpPwzQRu" if home.agent.name == "opencode" else new_uuid()
    run = home.resume(Progress(session=gone, opened=True))
    progress = run.finish()

    assert run.process.returncode > 0
    assert not progress.opened
    assert llm.talks == []


def test_a_tool_is_allowed_for_one_run(home: Home, llm: LLM) -> None:
    """Without the rule the tool is refused, or not offered; in the same session it works."""
    (home.cwd / "check").write_text("#!/bin/sh\necho checked > checked.txt\n")
    (home.cwd / "check").chmod(0o755)
    subprocess.run(("git", "init", "-q", home.cwd), check=True)
    llm.add({"check": [{"shell": "./check"}, {"say": "Checked."}]})
    if home.agent.name == "opencode":
        deny_shell(Path(home.env["HOME"], ".config/opencode/opencode.json"))
    rule = "workspace-write" if home.agent.name == "codex" else "Bash(./check)"
    asked = replace(home.ask("do it [script hello]"), skip_permissions=False)
    first = replace(asked, session=home.agent.new_session())
    opened = home.run(home.agent.start(home.program, first), Progress()).finish()
    for allow in ((), (rule,)):
        again = replace(asked, prompt="[script check]", session=opened.session, allow=allow)
        run = home.run(home.agent.resume(home.program, again), opened.resumed())

        assert run.finish().session == opened.session
        assert (home.cwd / "checked.txt").exists() is bool(allow)


def deny_shell(settings: Path) -> None:
    """opencode allows all of it, unless the user says otherwise."""
    settings.write_text(
        json.dumps({**json.loads(settings.read_text()), "permission": {"bash": "deny"}})
    )


def test_an_agent_that_gives_up_says_why(home: Home, llm: LLM) -> None:
    """The API refuses: a failure with its text, also where the CLI calls it a success."""
    progress = home.start("do it [script broken]").finish()

    assert progress.result is None
    assert progress.opened
    assert progress.failure
    assert "bad request" in progress.failure
    assert progress.overloads == 0


def test_one_process_of_claude_serves_many_sessions(claude: Home, llm: LLM) -> None:
    """Two prompts with a new session between them: the second knows nothing of the first."""
    warm = claude.agent.warm
    assert warm is not None
    launch = warm.start(claude.program, claude.ask("zebra [script hello]"))
    stdin = launch.stdin + warm.fresh + warm.prompt("do it [script shell]")
    run = claude.run(replace(launch, stdin=stdin), Progress())
    progress = run.finish()
    sessions = [fact.id for fact in run.facts if isinstance(fact, SessionOpened)]

    assert run.process.returncode == 0
    assert progress.result == "The shell said it."
    assert len(set(sessions)) == 2
    assert not any("zebra" in str(talk.body) for talk in llm.of("shell"))


def test_overload_is_told_apart(claude: Home, llm: LLM) -> None:
    """A busy API is no failure of the agent: it says how long it waits, and goes on."""
    run = claude.start("do it [script overload]")
    progress = run.finish()

    assert progress.result == "At last."
    assert progress.overloads == 2
    assert [fact.wait_s > 0 for fact in run.facts if isinstance(fact, Overload)] == [True, True]


@pytest.mark.parametrize("behind", [False, True])
def test_subagents_are_tools_in_use(claude: Home, llm: LLM, behind: bool) -> None:
    """Two at once, in front or behind: the turn is not over while one of them works."""
    prompts = [f"{part} [script shell]" for part in ("one", "two")]
    agents = [{"prompt": prompt, "run_in_background": behind} for prompt in prompts]
    llm.add({"two": [{"agents": agents}, {"say": "Both are back."}]})
    run = claude.start("do it [script two]")
    progress = run.finish()

    assert progress.result
    assert progress.tools == ()
    assert [talk.kind for talk in llm.of("shell")] == ["subagent"] * 4
    names = [fact.name for fact in run.facts if isinstance(fact, ToolStarted)]
    assert names.count("Bash") == 2
    assert names.count("general-purpose" if behind else "Agent") == 2
    # All six requests and more are paid for.
    assert progress.tokens_in >= 600
