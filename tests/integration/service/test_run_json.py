"""`run --json` is the same object with and without a service."""

import json
from typing import Any

from integration.service.conftest import Service

# Decided once: docs/service.md names them.
KEYS = {
    "herd", "jobs", "done", "failed", "cancelled", "wall_s", "budget_bytes", "peak_bytes",
    "oom_kills", "limit_kills", "preempted", "recycled", "held_s", "redone_s", "leftovers_ended",
    "residue_bytes", "pen", "level_changes", "supervisor", "results",
}  # fmt: skip
RESULT_KEYS = {
    "job", "state", "end", "exit_code", "runs", "peak_bytes", "wall_s", "held_s", "log", "reason",
    "session", "turns", "tokens_in", "tokens_out", "cost_usd", "cost_is_estimate", "result",
    "model", "worktree",
    "branch", "files_changed", "lines_added", "lines_removed", "denied", "error", "resume",
}  # fmt: skip
JOBS = [
    {"name": "good", "command": "sleep 300 & echo done", "cwd": "/"},
    {"name": "bad", "command": "exit 3", "cwd": "/", "retries": 1},
    {"name": "late", "command": "true", "cwd": "/", "after": ["bad"]},
]


def run_json(service: Service, *flags: str) -> dict[str, Any]:
    text = "".join(json.dumps(job) + "\n" for job in JOBS)
    done = service.ramherd.run("run", "-", "--json", *flags, stdin=text)
    assert done.returncode == 1, done.stderr
    summary: dict[str, Any] = json.loads(done.stdout)
    return summary


def test_the_object_is_the_same(service: Service) -> None:
    """Each key with a value of the same type, and the same counts."""
    own, served = run_json(service, "--own"), run_json(service)

    assert set(own) >= KEYS
    assert set(served) >= KEYS
    assert "service" not in own
    assert served["service"] is True
    for name in KEYS - {"held_s", "redone_s", "wall_s"}:
        assert type(own[name]) is type(served[name]), name
    for name in ("jobs", "done", "failed", "cancelled", "oom_kills", "leftovers_ended", "pen"):
        assert own[name] == served[name], name
    assert served["leftovers_ended"] == 1
    assert served["peak_bytes"] > 0
    assert set(own["supervisor"]) == set(served["supervisor"])
    for one, other in zip(own["results"], served["results"], strict=True):
        assert set(one) == set(other) >= RESULT_KEYS
        same = ("job", "state", "end", "exit_code", "runs", "reason")
        assert [one[name] for name in same] == [other[name] for name in same]
