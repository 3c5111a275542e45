"""`ramherd attach` with the real claude: the session is there, and goes on in the same history."""

import json
import subprocess
import sys
from pathlib import Path

from e2e.agent_home import Home
from e2e.agents.test_run_agents import asks, herd_of
from llm import LLM
from support.terminals import open_terminal


def accept_dialogs(home: Home, *folders: str) -> None:
    """What a user of claude has answered before."""
    file = Path(home.env["HOME"], ".claude.json")
    known = json.loads(file.read_text())
    trusted = {folder: {"hasTrustDialogAccepted": True} for folder in folders}
    answers = {
        "hasCompletedOnboarding": True, "projects": {**known.get("projects", {}), **trusted},
        "customApiKeyResponses": {"approved": [home.env["ANTHROPIC_API_KEY"]], "rejected": []},
    }  # fmt: skip
    file.write_text(json.dumps({**known, **answers}))


def test_a_session_of_claude_goes_on_by_hand(claude: Home, llm: LLM, tmp_path: Path) -> None:
    """The user sees what was said, and what they say comes after it; the worktree is made again."""
    who = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
    for words in (("init", "-q"), ("commit", "-q", "--allow-empty", "-m", "first")):
        subprocess.run(["git", *who, *words], cwd=claude.cwd, env=claude.env, check=True)
    herd = herd_of(claude, tmp_path)
    del herd.env["RAMHERD_SKIP_PERMISSIONS"]  # claude would ask whether that is meant
    (result,) = herd.json(asks(claude, "do it [script hello]", worktree=True))["results"]
    assert (result["result"], result["worktree"]) == ("Hello.", None)
    folders = (herd.state / "ramherd/worktrees").resolve()
    job = json.loads(herd.run("jobs", "--all", "--json").stdout)
    accept_dialogs(claude, str(folders / job["id"]))
    argv = [sys.executable, "-m", "ramherd", "attach", "--pen", herd.pen, "job-1"]
    window = open_terminal(argv, {**herd.env, "TERM": "xterm-256color"})
    window.resize(40, 120)
    window.expect("Hello.")
    window.type("and now [script shell]")
    window.type("\r")
    talk = llm.await_step("shell", 0)
    window.close()
    window.wait()

    assert any("[script hello]" in text for text in talk.texts("user"))
