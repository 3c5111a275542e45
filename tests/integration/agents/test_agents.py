"""Herds of agents with a program that only talks like one: no CLI has to be installed."""

import json
from pathlib import Path

import pytest

from integration.conftest import Ramherd, need
from ramherd.core.units import MIB

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
# Talks like gemini, and fills more of V8's heap than it is given first.
FILLER = """\
import { getHeapStatistics } from "node:v8";
const say = (event) => console.log(JSON.stringify(event));
say({ type: "init", session_id: "s-1" });
const held = [];
for (let mib = 0; mib < 1280; mib += 8) held.push(new Array(1 << 20).fill(mib));
const mib = Math.round(getHeapStatistics().heap_size_limit / 2 ** 20);
const how = process.argv.includes("--resume") ? "resumed" : "started";
say({ type: "message", role: "assistant", content: `${how} with ${mib >= 2048 ? 2 : 1} GiB` });
say({ type: "result", status: "success", stats: {} });
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


@pytest.mark.parametrize(
    ("budget", "ended"),
    [("3GiB", ("done", 2, "resumed with 2 GiB")), ("1600MiB", ("failed", 3, None))],
)
def test_a_heap_that_was_full_is_twice_as_large(
    ramherd: Ramherd, tmp_path: Path, budget: str, ended: tuple[str, int, str | None]
) -> None:
    """A real V8 aborts, and its next run has room in the same session; where the budget has not so
    much, the heap stays as it was, and the job is given up.
    """
    need("node", "nodejs")
    program = tmp_path / "filler.mjs"
    program.write_text(FILLER)
    program.chmod(0o755)
    job = {"agent": "gemini", "prompt": "do it", "cwd": str(tmp_path)}
    summary = ramherd.json([job], "--agent-program", str(program), "--budget", budget)

    (result,) = summary["results"]
    assert (result["state"], result["runs"], result["result"]) == ended, summary["lines"]
    assert "ran out of V8 heap" in summary["lines"]
    assert summary["oom_kills"] == 0


# A reply of 0.16 dollars, and then somebody kills it.
KILLED = """#!/bin/sh
echo '{"type": "system", "subtype": "init", "session_id": "s-1"}'
echo '{"type": "assistant", "message": {"id": "m", "model": "claude-opus-5-5",
    "content": [], "usage": {"input_tokens": 40000, "output_tokens": 0}}}' | tr -d '\\n'
echo
kill -9 $$
"""


def test_a_killed_agent_is_resumed_only_with_the_price_of_a_reply(
    ramherd: Ramherd, tmp_path: Path
) -> None:
    """What it cost is estimated from its tokens, and counts against its limit."""
    program = tmp_path / "killed"
    program.write_text(KILLED)
    program.chmod(0o755)
    keys = {"agent": "claude", "prompt": "do it", "cwd": str(tmp_path), "retries": 3}
    jobs = [
        {"name": "limited", **keys, "max_cost_usd": 0.3},
        {"name": "free", **keys, "retries": 1},
    ]
    summary = ramherd.json(jobs, "--agent-program", str(program))

    limited, free = summary["results"]
    assert (limited["state"], limited["runs"], limited["reason"]["why"]) == (
        "failed", 1, "cost_left",
    )  # fmt: skip
    assert (limited["cost_usd"], limited["cost_is_estimate"]) == (0.16, True)
    assert (free["runs"], free["cost_usd"], free["cost_is_estimate"]) == (2, 0.32, True)
    assert "another reply costs about $0.16, and max_cost_usd is " in summary["lines"]
