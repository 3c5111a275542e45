"""What real agents are refused and fail with reaches the user of `ramherd run`."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from e2e.agent_home import AGENTS, ARGS, Home, make_home, shell_call, write_call
from e2e.agents.test_run_agents import herd_of
from llm import LLM

# codex reports no command that ends at once.
COMMAND = "sleep 0.5; touch b.txt"
TOOLS = {
    "claude": {"Write(a.txt)": "Write", f"Bash({COMMAND})": f"Bash({COMMAND})"},
    "codex": {"apply_patch()": "workspace-write", f"shell({COMMAND})": "workspace-write"},
    "gemini": {
        "write_file(a.txt)": "write_file",
        f"run_shell_command({COMMAND})": f"run_shell_command({COMMAND})",
    },
    # What a rule took away is known by its name only.
    "opencode": {"write()": "write", f"bash({COMMAND})": f"bash({COMMAND})"},
    "qwen": {
        "write_file(a.txt)": "write_file",
        f"run_shell_command({COMMAND})": f"run_shell_command({COMMAND})",
    },
}


def make_job(home: Home, prompt: str, **keys: Any) -> dict[str, Any]:
    """In the agent's own environment, outside of any repository."""
    name = home.agent.name
    env = {key: value for key, value in home.env.items() if key not in ("PATH", "TMPDIR")}
    return {
        "name": name, "agent": name, "prompt": prompt, "cwd": str(home.cwd), "env": env,
        "agent_args": list(ARGS.get(name, ())), "skip_permissions": False, **keys,
    }  # fmt: skip


@pytest.fixture
def homes(installed: None, tmp_path: Path, llm: LLM) -> list[Home]:
    return [make_home(name, tmp_path, llm.url) for name in AGENTS]


def test_what_agents_are_refused_is_in_the_results(
    homes: list[Home], llm: LLM, tmp_path: Path
) -> None:
    """All five at once, in a directory without git; and one that cannot even start."""
    for home in homes:
        name = home.agent.name
        home.distrust()
        steps = [write_call(name, home.cwd / "a.txt"), shell_call(name, COMMAND)]
        llm.add({f"denied-{name}": [*steps, {"say": "I could not do it."}]})
    jobs = [make_job(home, f"do it [script denied-{home.agent.name}]") for home in homes]
    wrong = make_job(homes[0], "do it", name="wrong", agent_args=["--no-such-option"])
    herd = herd_of(homes[0], tmp_path)
    summary = herd.json([*jobs, wrong])

    *refused, failed = summary["results"]
    for home, result in zip(homes, refused, strict=True):
        assert denied(result) == TOOLS[home.agent.name], (result, summary["lines"])
        # After a refusal opencode ends without an answer.
        is_done = home.agent.name != "opencode"
        assert result["state"] == ("done" if is_done else "failed")
        assert result["result"] == ("I could not do it." if is_done else None)
        assert not (home.cwd / "a.txt").exists()
    assert (failed["state"], failed["resume"]) == ("failed", None)
    assert failed["error"] == "error: unknown option '--no-such-option'"
    check_resume(homes[0], refused[0]["resume"])
    shown = herd.run("results").stdout
    assert "but 2 tool calls were denied: Write(a.txt)" in shown


def denied(result: dict[str, Any]) -> dict[str, str]:
    return {f"{one['tool']}({one['what']})": one["allow"] for one in result["denied"]}


def check_resume(home: Home, command: str) -> None:
    """It opens the session, without ramherd; `-p`, since there is no terminal."""
    done = subprocess.run(
        f"{command} -p --output-format json 'again [script hello]'", shell=True, text=True,
        env=home.env, capture_output=True, check=False, stdin=subprocess.DEVNULL, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["session_id"] in command
