"""Writes what real agents print into tests/data/agents, for the parsers' tests.

PYTHONPATH=tests .venv/bin/python -m e2e.capture [SCRIPT ...]
"""

import os
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from e2e.agent_home import AGENTS, Home, Running, make_home, shell_call, write_call
from llm import LLM

DATA = Path(__file__).parents[1] / "data/agents"
CUT = [{"shell": "echo first-part"}, {"shell": "touch waiting; sleep 20"}, {"say": "Never."}]
# Each script for these agents; `cut` is stopped in its second tool.
WANTED = {
    "shell": AGENTS, "broken": AGENTS, "cut": AGENTS,
    "overload": ("claude",), "agents": ("claude",), "refused": ("codex",), "denied": AGENTS,
}  # fmt: skip
REFUSED = [{"fail": {"status": 429, "times": 1000}}]


def capture(name: str, script: str) -> bytes:
    with tempfile.TemporaryDirectory() as place, LLM({"cut": CUT, "refused": REFUSED}) as llm:
        home = make_home(name, Path(place), llm.url)
        if script == "denied":
            llm.add({"denied": denied_steps(home)})
            home.distrust()
        run = home.start(f"do it [script {script}]")
        if script == "cut":
            stop(run, home.cwd / "waiting")
        run.finish()
        if script == "denied" and name == "codex":
            (DATA / "codex-denied.err").write_bytes(run.err.replace(place.encode(), b"/home/user"))
        return run.out.replace(place.encode(), b"/home/user")


def denied_steps(home: Home) -> list[dict[str, Any]]:
    """A file, a command that writes, and an answer: nothing of it is allowed."""
    name = home.agent.name
    write, shell = write_call(name, home.cwd / "a.txt"), shell_call(name, "sleep 0.5; touch b.txt")
    return [write, shell, {"say": "I could not do it."}]


def stop(run: Running, sign: Path) -> None:
    while not sign.exists() and run.process.poll() is None:
        time.sleep(0.05)
    time.sleep(0.5)  # codex tells of a tool a little after it started it
    os.kill(run.process.pid, signal.SIGTERM)


def main() -> int:
    DATA.mkdir(parents=True, exist_ok=True)
    for script in sys.argv[1:] or WANTED:
        for name in WANTED[script]:
            out = capture(name, script)
            (DATA / f"{name}-{script}.jsonl").write_bytes(out)
            print(f"{name} {script}: {len(out)} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
