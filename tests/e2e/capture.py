"""Writes what real agents print into tests/data/agents, for the parsers' tests.

PYTHONPATH=tests .venv/bin/python -m e2e.capture
"""

import os
import signal
import sys
import tempfile
import time
from pathlib import Path

from e2e.agent_home import AGENTS, Running, make_home
from llm import LLM

DATA = Path(__file__).parents[1] / "data/agents"
CUT = [{"shell": "echo first-part"}, {"shell": "touch waiting; sleep 20"}, {"say": "Never."}]
# Each script for these agents; `cut` is stopped in its second tool.
WANTED = {
    "shell": AGENTS, "broken": AGENTS, "cut": AGENTS,
    "overload": ("claude",), "agents": ("claude",), "refused": ("codex",),
}  # fmt: skip
REFUSED = [{"fail": {"status": 429, "times": 1000}}]


def capture(name: str, script: str) -> bytes:
    with tempfile.TemporaryDirectory() as place, LLM({"cut": CUT, "refused": REFUSED}) as llm:
        home = make_home(name, Path(place), llm.url)
        run = home.start(f"do it [script {script}]")
        if script == "cut":
            stop(run, home.cwd / "waiting")
        run.finish()
        return run.out.replace(place.encode(), b"/home/user")


def stop(run: Running, sign: Path) -> None:
    while not sign.exists() and run.process.poll() is None:
        time.sleep(0.05)
    time.sleep(0.5)  # codex tells of a tool a little after it started it
    os.kill(run.process.pid, signal.SIGTERM)


def main() -> int:
    DATA.mkdir(parents=True, exist_ok=True)
    for script, names in WANTED.items():
        for name in names:
            out = capture(name, script)
            (DATA / f"{name}-{script}.jsonl").write_bytes(out)
            print(f"{name} {script}: {len(out)} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
