"""Herds of agents with a program that only talks like one: no CLI has to be installed."""

import json
from pathlib import Path

import pytest

from integration.conftest import Ramherd
from ramherd.units import MIB

TALK = """\
#!/bin/sh
cat > /dev/null
echo '{"type": "system", "subtype": "init", "session_id": "'$RAMHERD_JOB'"}'
for turn in 1 2 3 4; do
    sed "s/ID/$turn/" LINES
    sleep 0.5
done
echo '{"type": "result", "result": "Through.", "total_cost_usd": 0.5}'
"""


@pytest.fixture
def talker(tmp_path: Path) -> Path:
    """Four turns with a tool each, and 300 kB in one line between them."""
    tool = {"type": "tool_use", "id": "tID", "name": "Bash", "input": {"command": "x" * 500}}
    answer = {"type": "tool_result", "tool_use_id": "tID", "content": "y" * 300_000}
    lines = [
        {"type": "assistant", "message": {"id": "mID", "content": [tool]}},
        {"type": "user", "message": {"content": [answer]}},
    ]
    (tmp_path / "lines").write_text("".join(json.dumps(line) + "\n" for line in lines))
    program = tmp_path / "talker"
    program.write_text(TALK.replace("LINES", str(tmp_path / "lines")))
    program.chmod(0o755)
    return program


def test_fifty_agents_cost_little(ramherd: Ramherd, talker: Path, tmp_path: Path) -> None:
    """Whatever they say is read in pieces: the supervisor stays below 32 MiB."""
    keys = {"agent": "claude", "prompt": "do it", "memory": "10MiB", "cwd": str(tmp_path)}
    jobs = [{"name": f"job-{n}", **keys} for n in range(50)]
    summary = ramherd.json(jobs, "--agent-program", str(talker), "--max-cost-usd", "100")

    assert summary["done"] == 50, summary["lines"]
    assert {(one["turns"], one["result"]) for one in summary["results"]} == {(4, "Through.")}
    assert sum(one["cost_usd"] for one in summary["results"]) == 25
    assert len({one["session"] for one in summary["results"]}) == 50
    assert summary["supervisor"]["rss_peak_bytes"] <= 32 * MIB


def test_an_agent_that_is_not_installed(ramherd: Ramherd) -> None:
    """Said with the command that installs it, before anything starts."""
    done = ramherd.run("run", "--agent", "cursor", "--agent-program", "/no/such", "do it")

    assert done.returncode == 2
    assert "cursor: '/no/such' is not found" in done.stderr
    assert not list((ramherd.state / "ramherd").glob("runs/*"))


def test_an_agent_with_too_little_memory(ramherd: Ramherd, talker: Path) -> None:
    """Refused with the number; with --force it is tried."""
    flags = ("--agent", "claude", "--agent-program", str(talker), "--memory-limit", "100MiB")
    refused = ramherd.run("run", *flags, "do it")
    forced = ramherd.run("run", *flags, "--force", "do it")

    assert refused.returncode == 2
    assert "is below the 381 MiB that claude needs" in refused.stderr
    assert forced.returncode == 0, forced.stdout
