"""All that is known of a job, as text."""

from typing import Any

from ramherd.core.units import MIB
from ramherd.show.job_page import RUNS_SHOWN, JobLogs, render_job

LOGS = JobLogs("/state/runs/R2/out", is_there=True)


def run(attempt: int, end: str | None = "done", **reason: Any) -> dict[str, Any]:
    ended = None if end is None else 100.0 + attempt
    return {
        "run": f"R{attempt}", "attempt": attempt, "started_s": 100.0, "ended_s": ended, "end": end,
        "exit_code": 0, "reason": reason or {"why": "said_done"}, "peak_bytes": 120 * MIB,
    }  # fmt: skip


def job(**changes: Any) -> dict[str, Any]:
    return {
        "id": "01JOB", "herd": "01HERD", "name": "fix lint", "state": "done",
        "reason": {"why": "said_done"}, "agent": "claude", "model": "opus", "prompt": "Fix it.",
        "argv": None, "cwd": "/repo", "after": [], "result": "Fixed it.\n\nAll of it.",
        "denied": [{"tool": "Bash", "what": "npm test", "allow": "Bash(npm test)"}],
        "error": None, "turns": 4, "tokens_in": 12_000, "tokens_out": 340, "cost_usd": None,
        "branch": "ramherd/fix-lint-4k2j9x1q", "files_changed": 1, "lines_added": 14,
        "lines_removed": 3, "worktree": "/state/worktrees/01JOB", "session": "s-1",
        "resume": "cd /state/worktrees/01JOB && claude --resume s-1",
        "runs": [run(1, "preempted", why="asked"), run(2)], **changes,
    }  # fmt: skip


def test_an_agent_that_is_done() -> None:
    """From its state to where its log is; what can be typed is never wrapped."""
    assert render_job(job(), LOGS, 60, full=False) == [
        "job        fix lint (01JOB of herd 01HERD)",
        "state      done: the agent reported success",
        "agent      claude, model opus",
        "prompt     Fix it.",
        "directory  /repo",
        "answer     Fixed it.",
        "",
        "           All of it.",
        "denied     Bash(npm test)",
        "allow      ramherd retry 'fix lint' --allow 'Bash(npm test)'",
        "changes    1 file +14 -3 on ramherd/fix-lint-4k2j9x1q",
        "           ramherd diff 'fix lint'; ramherd merge 'fix lint'",
        "worktree   /state/worktrees/01JOB",
        "spent      4 turns, 12k tokens, cost unknown (12000 tokens",
        "           in, 340 out)",
        "runs       1  preempted after 1.0s, peak 120 MiB: requested",
        "           by the user",
        "           2  done after 2.0s, peak 120 MiB: the agent",
        "           reported success",
        "session    s-1",
        "continue   cd /state/worktrees/01JOB && claude --resume s-1",
        "log        /state/runs/R2/out",
        "next       ramherd logs 'fix lint'",
    ]


def test_a_command_that_waits() -> None:
    """It has no run, and so no log; why it waits is in its events."""
    silent = dict.fromkeys(key for key in job() if key not in ("id", "herd", "name", "after"))
    waits = {
        **silent, "id": "01JOB", "herd": "01HERD", "name": "list", "state": "waiting",
        "reason": {"why": "submitted"}, "argv": ["/bin/sh", "-c", "ls | wc -l"], "cwd": "/repo",
        "after": ["a", "b"], "runs": [],
    }  # fmt: skip

    assert render_job(waits, JobLogs(), 80, full=False) == [
        "job        list (01JOB of herd 01HERD)",
        "state      waiting: submitted",
        "command    ls | wc -l",
        "directory  /repo",
        "after      a, b",
        "next       ramherd events --job list",
    ]


def test_long_texts_are_cut_unless_all_is_asked_for() -> None:
    """With how many lines are left out; many runs are cut as well."""
    long = "\n".join(f"line {number}" for number in range(40))
    many = [run(attempt) for attempt in range(1, RUNS_SHOWN + 4)]
    made = job(prompt=long, result=long, runs=many)
    short = render_job(made, LOGS, 80, full=False)

    assert "           ... (34 more lines: --full)" in short
    assert "           ... (20 more lines: --full)" in short
    assert "runs       (3 earlier ones)" in short
    assert sum("line 39" in line for line in render_job(made, LOGS, 80, full=True)) == 2


def test_a_job_that_failed_says_why_and_a_log_that_is_gone_too() -> None:
    """What runs has no end yet."""
    failed = job(state="failed", error="no key", runs=[run(1, None)])
    lines = render_job(failed, JobLogs("/gone"), 80, full=False)

    assert "error      no key" in lines
    assert "runs       1  running" in lines
    assert "log        /gone (removed by ramherd prune or log_total)" in lines
    assert lines[-1] == "next       ramherd events --job 'fix lint'"


def test_nothing_of_it_is_a_command_to_the_terminal() -> None:
    """Prompts, answers, names: no control sequence."""
    evil = "\x1b[2J\x07"
    keys = ("name", "prompt", "result", "error", "branch", "worktree", "resume", "session", "cwd")
    made = job(**dict.fromkeys(keys, evil), worktree_note=evil)

    assert all(line.isprintable() for line in render_job(made, LOGS, 80, full=True))
