"""Runs of an agent for tests: begun, and what they say."""

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from ramherd.act.run import LiveRun
from ramherd.core.model import Brief, Exit, Job, Reason, Why
from ramherd.core.units import MIB
from ramherd.supervisor.agent_runs import AgentRuns
from support.make import job

PROGRAM = sys.executable
BRIEF = Brief("claude", "do it", model="opus", fallback_model="haiku", program=PROGRAM)


def asked(name: str = "a", *, memory_limit: int | None = None, **changes: Any) -> Job:
    return job(name, brief=replace(BRIEF, **changes), memory_limit_bytes=memory_limit)


def begun(
    agent_runs: AgentRuns, of: Job, folder: Path, *, resumed: bool = False, short: bool = False
) -> LiveRun:  # fmt: skip
    run = LiveRun(f"R{len(list(folder.iterdir()))}", of, 1, folder, 0.0, label="claude")
    run.dir.mkdir()
    stopped = Reason(Why.PATIENCE_OVER) if resumed else None
    agent_runs.prepare(run, 200 * MIB, stopped=stopped, short=short)
    return run


def say(run: LiveRun, *events: dict[str, Any]) -> None:
    with (run.dir / "out").open("a") as out:
        out.writelines(json.dumps(event) + "\n" for event in events)


def heard(agent_runs: AgentRuns, run: LiveRun, *, closed: bool = False) -> list[Why]:
    if closed and run.exit is None:
        run.record_exit(Exit(0, None, 10.0))
        run.close_output(heap_exhausted=False)
    return [reason.why for _kind, _run, reason in agent_runs.read_output([run], 10.0)]


def session(name: str) -> dict[str, Any]:
    return {"type": "system", "subtype": "init", "session_id": name}


def result(text: str, cost_usd: float = 0.0) -> dict[str, Any]:
    return {"type": "result", "result": text, "total_cost_usd": cost_usd}


def words(run: LiveRun) -> tuple[str, ...]:
    assert run.agent_run is not None
    return run.agent_run.launch.argv
