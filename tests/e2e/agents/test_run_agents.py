"""`ramherd run` with real agents: many at a time, stopped and resumed, killed, limited."""

import json
import os
import shlex
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from e2e.agent_home import ARGS, Home, make_home
from integration.conftest import Ramherd, await_, make_ramherd, ours, pens
from llm import LLM, Talk
from ramherd.agents.resume_prompt import GO_ON, PLANNED
from ramherd.core.units import MIB
from ramherd.system.procfs import read_variable

BIG = "python3 -c 'import time; held = bytearray(1536 << 20); time.sleep(1)'"
# The second part waits to be stopped, the first time.
PARTS = [
    {"shell": "echo first-part"},
    {"shell": "test -e waiting || { touch waiting; sleep 300; }; echo second-part"},
    {"say": "Both parts are done."},
]
# Needs nearly all of the budget once the agent is in its tool.
ELDER = """
import os, sys, time
while not os.path.exists("waiting"):
    time.sleep(0.05)
held = bytearray(1175 << 20)
time.sleep(1)
"""
AgentHerd = tuple[Home, Ramherd]
# What claude reckons for one reply of our model, and for one input token; output costs five times.
REPLY_USD = 0.0006
UNIT_USD = 4e-6
RESUMABLE = ("claude", "codex", "gemini")


def herd_of(home: Home, folder: Path) -> Ramherd:
    """ramherd as the agent's user would call it."""
    made = make_ramherd(folder, pens()[0])
    own = {name: made.env[name] for name in ("XDG_STATE_HOME", "RAMHERD_RUNTIME_DIR")}
    user = {name: text for name, text in home.env.items() if name != "TMPDIR"}
    made.env = {
        **user, **own, "RAMHERD_AGENT": home.agent.name, "RAMHERD_SKIP_PERMISSIONS": "true",
        "RAMHERD_MAX_CPU_PRESSURE": "none",
    }  # fmt: skip
    return made


@pytest.fixture
def herd(claude: Home, tmp_path: Path) -> Iterator[Ramherd]:
    made = herd_of(claude, tmp_path)
    yield made
    assert made.keeper_errors == ""


@pytest.fixture
def agent_herd(name: str, installed: None, tmp_path: Path, llm: LLM) -> Iterator[AgentHerd]:
    """Of the agent that a test names."""
    home = make_home(name, tmp_path, llm.url)
    made = herd_of(home, tmp_path)
    yield home, made
    assert made.keeper_errors == ""


def asks(home: Home, *prompts: str, **keys: Any) -> list[dict[str, Any]]:
    return [
        {"name": f"job-{number}", "prompt": prompt, "cwd": str(home.cwd), **keys}
        for number, prompt in enumerate(prompts, 1)
    ]


@pytest.mark.parametrize("big", [0, 2])
def test_twenty_agents_in_three_gibibytes(
    claude: Home, herd: Ramherd, llm: LLM, big: int
) -> None:  # fmt: skip
    """All are done, nobody is killed, and a large tool is no reason to restart an agent."""
    llm.add({"big": [{"shell": BIG}, {"say": "Held it."}]})
    scripts = [*["big"] * big, *["shell"] * (20 - big)]
    jobs = asks(claude, *(f"do it [script {script}]" for script in scripts))
    summary = herd.json(jobs, "--budget", "3GiB")

    assert summary["exit_code"] == 0, summary["lines"]
    assert (summary["done"], summary["oom_kills"], summary["recycled"]) == (20, 0, 0)
    assert len({result["session"] for result in summary["results"]}) == 20
    assert [result["result"] for result in summary["results"][big:]] == (
        ["The shell said it."] * (20 - big)
    )
    assert summary["supervisor"]["rss_peak_bytes"] <= 32 * MIB


@pytest.mark.parametrize("name", RESUMABLE)
def test_an_agent_that_makes_room_goes_on_in_its_session(
    name: str, installed: None, tmp_path: Path, llm: LLM
) -> None:
    """Stopped in the middle of a tool, resumed when there is room: one session, one history."""
    home = make_home(name, tmp_path, llm.url)
    llm.add({"parts": PARTS})
    herd = herd_of(home, tmp_path)
    summary = run_beside_elder(home, herd, ELDER)

    agent = summary["results"][1]
    assert runs_that_name(agent["session"], herd) == 2
    assert summary["done"] == 2, summary["lines"]
    assert (summary["preempted"], summary["oom_kills"], agent["runs"]) == (1, 0, 2)
    assert agent["result"] == "Both parts are done."
    # Of both runs, and nothing twice: each reply takes 100, a question beside the work 1. codex
    # itself does not count the one whose tool was cut off.
    assert agent["tokens_in"] // 100 == len(replies(llm, "parts")) - (name == "codex")
    history = replies(llm, "parts")[-1]
    assert any("first-part" in text for text in history.texts("result"))
    assert any("[script parts]" in text for text in history.texts("user"))
    assert any("to give memory to other work" in text for text in history.texts("user"))
    assert any(f"{PLANNED} {GO_ON}" in text for text in history.texts("user"))


def replies(llm: LLM, script: str) -> list[Talk]:
    """What the agent itself asked for: a CLI may want a title as well, at any time."""
    return [talk for talk in llm.of(script) if talk.kind == "main"]


def runs_that_name(session: str, herd: Ramherd) -> int:
    """How many runs have said that this is their session."""
    printed = (herd.state / "ramherd/runs").glob("*/out")
    return sum(session in out.read_text() for out in printed)


def run_beside_elder(home: Home, herd: Ramherd, elder: str) -> dict[str, Any]:
    """The agent is younger than a program that wants its memory."""
    jobs = [
        {"name": "elder", "command": ["python3", "-c", elder], "cwd": str(home.cwd), "label": "e"},
        *asks(home, "do - it [script parts]"),
    ]
    return herd.json(jobs, "--budget", "1200MiB", "--patience", "1s")


def test_a_session_that_is_gone_is_begun_anew(claude: Home, herd: Ramherd, llm: LLM) -> None:
    """Said as a warning of its own, and it costs no retry."""
    llm.add({"parts": PARTS})
    gone = f"{ELDER}\nimport shutil; shutil.rmtree({claude.env['HOME']!r} + '/.claude/projects')"
    summary = run_beside_elder(claude, herd, gone)

    agent = summary["results"][1]
    assert summary["done"] == 2, summary["lines"]
    assert agent["runs"] == 3
    assert "the session of the agent no longer exists: the job starts over" in summary["lines"]
    assert not any(GO_ON in text for text in replies(llm, "parts")[-1].texts("user"))


@pytest.mark.parametrize("name", [*RESUMABLE, "qwen"])
def test_an_agent_over_its_mark_is_restarted_between_turns(
    name: str, installed: None, tmp_path: Path, llm: LLM
) -> None:
    """Recycled once, resumed in its session, and not again for what it needs."""
    home = make_home(name, tmp_path, llm.url)
    llm.add({"turns": [{"shell": "echo first-part"}, {"say": "Through.", "wait_s": 6}]})
    jobs = asks(home, "do - it [script turns]")
    herd = herd_of(home, tmp_path)
    summary = herd.json(jobs, "--recycle-at", "16MiB")

    agent = summary["results"][0]
    assert runs_that_name(agent["session"], herd) == 2
    assert (summary["done"], summary["recycled"], agent["runs"]) == (1, 1, 2), summary["lines"]
    assert agent["result"] == "Through."
    history = replies(llm, "turns")[-1]
    assert any("first-part" in text for text in history.texts("result"))
    assert any(GO_ON in text for text in history.texts("user"))


def test_a_herd_whose_ramherd_was_killed_goes_on(claude: Home, herd: Ramherd, llm: LLM) -> None:
    """`run --resume`: the same session, in which the agent reads why its tool was cut off."""
    llm.add({"parts": PARTS})
    text = json.dumps(asks(claude, "do - it [script parts]")[0])
    killed = herd.start("run", "-", "--pen", herd.pen, "--grace", "1s", stdin=text)
    await_((claude.cwd / "waiting").exists, "the agent is in its tool", 60.0)
    killed.signal(signal.SIGKILL)
    killed.wait()
    resumed = herd.run("run", "--resume", "--json")

    (agent,) = json.loads(resumed.stdout)["results"]
    assert (agent["state"], agent["runs"]) == ("done", 2), resumed.stderr
    assert agent["result"] == "Both parts are done."
    assert runs_that_name(agent["session"], herd) == 2
    told = replies(llm, "parts")[-1].texts("user")
    assert any("or the machine was restarted" in text and PLANNED in text for text in told)


def test_an_agent_that_is_killed_from_outside(claude: Home, herd: Ramherd, llm: LLM) -> None:
    """Tried again, in its session, where it has retries; else failed; others do not notice."""
    tokens = ([20_000, 400], [21_000, 100])
    first = {"shell": "echo first-part", "tokens": tokens[0]}
    llm.add({"wait": [first, {"say": "Through.", "gate": "go", "tokens": tokens[1]}]})
    jobs = asks(claude, *["do - it [script wait]"] * 3)
    for job, (which, retries) in zip(jobs, (("a", 1), ("b", 0), ("c", 0)), strict=True):
        job.update(env={"WHICH": which}, retries=retries)
    text = "".join(json.dumps(job) + "\n" for job in jobs)
    started = herd.start("run", "-", "--json", "--pen", herd.pen, stdin=text)
    await_(lambda: len(llm.found("wait", 1)) == 3, "all three at the gate", 60.0)
    for which in "ab":
        os.kill(first_of(which), signal.SIGKILL)
    await_(lambda: len(llm.found("wait", 1)) == 4, "the second run of the first", 60.0)
    llm.open("go")
    assert started.wait() == 1
    again, failed, other = json.loads(started.out.read_text())["results"]

    assert (again["state"], again["runs"], other["state"], other["runs"]) == ("done", 2, "done", 1)
    assert (again["result"], other["result"]) == ("Through.", "Through.")
    assert runs_that_name(again["session"], herd) == 2
    assert (failed["state"], failed["runs"]) == ("failed", 1)
    assert failed["reason"] == {"why": "signalled", "signal": 9}
    assert any(GO_ON in text for text in llm.found("wait", 1)[-1].texts("user"))
    # Each reply that was received is paid, once; of a killed run claude reports nothing.
    paid = [UNIT_USD * (read + 5 * written) for read, written in tokens]
    assert [again["cost_usd"], failed["cost_usd"], other["cost_usd"]] == pytest.approx(
        [sum(paid), paid[0], sum(paid)], rel=0.02
    )
    assert [one["cost_is_estimate"] for one in (again, failed, other)] == [True, True, False]


def first_of(which: str) -> int:
    """The agent's own process: the first of its run."""
    return min(pid for pid in ours() if read_variable(pid, "WHICH") == which)


def test_a_herd_ends_when_it_has_cost_enough(claude: Home, herd: Ramherd, llm: LLM) -> None:
    """Four at once are told a part each: they pass the limit by a reply of each at the most, what
    waits is not started, and all of it says why.
    """
    llm.add({"many": [*[{"shell": "echo on"}] * 6, {"say": "Through."}]})
    jobs = asks(claude, *["do it [script many]"] * 4)
    summary = herd.json(jobs, "--max-cost-usd", str(10 * REPLY_USD))

    assert (summary["cancelled"], summary["exit_code"]) == (4, 1), summary["lines"]
    assert [result["reason"]["why"] for result in summary["results"]] == ["cost"] * 4
    cost_usd = sum(result["cost_usd"] for result in summary["results"])
    assert 10 * REPLY_USD <= cost_usd + 1e-6 < 14 * REPLY_USD


def test_what_a_herd_may_cost_goes_to_those_that_need_it(
    claude: Home, herd: Ramherd, llm: LLM
) -> None:  # fmt: skip
    """One that has spent its share goes on in its session with what the others left."""
    llm.add({"many": [*[{"shell": "echo on"}] * 6, {"say": "Through."}]})
    scripts = ("many", "hello", "hello")
    jobs = asks(claude, *(f"do it [script {script}]" for script in scripts))
    summary = herd.json(jobs, "--max-cost-usd", str(10.5 * REPLY_USD))

    assert summary["done"] == 3, summary["lines"]
    first = summary["results"][0]
    assert first["runs"] >= 2
    assert runs_that_name(first["session"], herd) == first["runs"]
    assert "its share of the herd's cost limit" in summary["lines"]
    # A reply whose tool was not run any more is asked for again, and paid for again.
    asked = len(replies(llm, "many"))
    assert asked in (7, 8)
    assert first["cost_usd"] == pytest.approx(asked * REPLY_USD)


@pytest.mark.parametrize(("name", "limit"), [("claude", 0.0007), ("opencode", 0.0002)])
def test_a_job_ends_when_it_has_cost_enough(
    name: str, limit: float, installed: None, tmp_path: Path, llm: LLM
) -> None:
    """By itself where the CLI can, else stopped between two turns; no retry changes that."""
    home = make_home(name, tmp_path, llm.url)
    llm.add({"many": [*[{"shell": "echo on", "wait_s": 1}] * 6, {"say": "Through."}]})
    jobs = asks(home, "do it [script many]", max_cost_usd=limit, retries=3)
    summary = herd_of(home, tmp_path).json(jobs)

    (result,) = summary["results"]
    assert (result["state"], result["reason"]["why"], result["runs"]) == ("failed", "cost", 1)
    assert limit <= result["cost_usd"] < 4 * limit


@pytest.mark.parametrize(("name", "status", "runs"), [("claude", 529, 1), ("codex", 429, 2)])
def test_a_busy_api_makes_starts_slower_for_a_while(
    agent_herd: AgentHerd, llm: LLM, status: int, runs: int
) -> None:
    """claude tries again by itself, codex gives up at once and its job waits: both go on in their
    session, none is failed for it, and starts are one by one until the API keeps up.
    """
    home, herd = agent_herd
    fail = {"status": status, "shared": True}
    llm.add({"busy": [{"shell": "echo first-part"}, {"say": "At last.", "fail": fail}]})
    jobs = asks(home, *["do - it [script busy]"] * 6)
    for job in jobs[1:]:
        job["after"] = ["job-1"]
    summary = herd.json(jobs)

    assert summary["done"] == 6, summary["lines"]
    assert [result["runs"] for result in summary["results"]] == [runs, 1, 1, 1, 1, 1]
    assert [talk.status for talk in llm.of("busy")].count(status) == 1
    gone_on = [talk for talk in llm.of("busy") if GO_ON in "".join(talk.texts("user"))]
    assert len(gone_on) == runs - 1
    assert all("first-part" in "".join(talk.texts("result")) for talk in gone_on)
    said = [(event["kind"], event["reason"]["why"]) for event in events_of(herd)]
    assert said.count(("run_warning", "overload")) == 1
    assert said.count(("api_calm", "api_calm")) == 1
    slowly = said[said.index(("run_warning", "overload")) : said.index(("api_calm", "api_calm"))]
    # Two quiet pauses, a start at the end of each at most; without them five would start at once.
    assert [kind for kind, _why in slowly].count("run_started") <= 2


def events_of(herd: Ramherd) -> list[dict[str, Any]]:
    return [json.loads(line) for line in herd.run("events", "--json").stdout.splitlines()]


def test_a_smaller_model_while_memory_is_very_short(
    claude: Home, herd: Ramherd, llm: LLM
) -> None:  # fmt: skip
    """In a budget for one the fallback is asked, and the result says so."""
    flags = ("--model", "opus", "--fallback-model", "haiku", "--budget", "380MiB")
    summary = herd.json(asks(claude, "do it [script shell]"), *flags)

    assert (summary["done"], summary["results"][0]["model"]) == (1, "haiku"), summary["lines"]
    assert all("haiku" in talk.asked.model for talk in llm.of("shell"))


def test_jobs_in_one_repository_get_worktrees(claude: Home, herd: Ramherd, llm: LLM) -> None:
    """What one has changed is kept on its branch, the other's is removed."""
    llm.add({"write": [{"shell": "echo new > written"}, {"say": "Wrote it."}]})
    for args in (("init", "-q"), ("commit", "-q", "--allow-empty", "-m", "first")):
        subprocess.run(["git", *IDENTITY, *args], cwd=claude.cwd, check=True)
    summary = herd.json(asks(claude, "do it [script write]", "do it [script shell]"))

    written, other = summary["results"]
    assert summary["done"] == 2, summary["lines"]
    assert Path(written["worktree"], "written").read_text() == "new\n"
    assert other["worktree"] is None
    listed = subprocess.check_output(["git", "branch"], cwd=claude.cwd, text=True)
    assert listed.count("ramherd/") == 1
    assert not (claude.cwd / "written").exists()


IDENTITY = ("-c", "user.name=test", "-c", "user.email=test@example.org")


@pytest.mark.parametrize("name", ["opencode", "qwen"])
def test_the_others_run_as_well(name: str, installed: None, tmp_path: Path, llm: LLM) -> None:
    """From prompts on the command line, with arguments of the user's own."""
    home = make_home(name, tmp_path, llm.url)
    args = shlex.join(ARGS.get(name, ("--pure",)))
    done = herd_of(home, tmp_path).run(
        "run", "--json", "--cwd", str(home.cwd), f"--agent-args={args}", "do it [script shell]"
    )
    (result,) = json.loads(done.stdout)["results"]

    assert (result["state"], result["result"]) == ("done", "The shell said it."), done.stderr
