"""The object of `ramherd run --json`, made from the records of the store or the service."""

import time
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ramherd.config.paths import state_path
from ramherd.core.agent_task import SAID

# Only the service has these values, or its count is better than one from the ends of runs.
OF_SERVICE = (
    "budget_bytes", "peak_bytes", "redone_s", "leftovers_ended", "residue_bytes", "pen",
    "level_changes", "supervisor",
)  # fmt: skip
KNOWN = (*OF_SERVICE, "oom_kills", "limit_kills")
# A job may be retried after its herd has ended, so these are counted again.
COUNTED = ("jobs", "done", "failed", "cancelled", "results")


def summarize(herd: Mapping[str, Any], jobs: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """`herd` with the summary of its end, if it has ended; `jobs` with their runs. Fields that an
    older service does not have are None.
    """
    now = time.time()
    results = [result_of(job, now) for job in jobs]
    states = Counter(result["state"] for result in results)
    ends = Counter(end for result in results for end in result.pop("ends"))
    return {
        "herd": herd["herd"],
        "jobs": len(results),
        **{state: states[state] for state in ("done", "failed", "cancelled")},
        "wall_s": round((herd["ended_s"] or now) - herd["created_s"], 3),
        "oom_kills": ends["oom_kill"],
        "limit_kills": ends["limit_kill"],
        "preempted": ends["preempted"],
        "recycled": ends["recycled"],
        "held_s": round(sum(result["held_s"] for result in results), 3),
        **dict.fromkeys(OF_SERVICE),
        **choose_stored(herd),
        **({"service": True} if herd["service"] else {}),
        "results": results,
    }


def choose_stored(herd: Mapping[str, Any]) -> dict[str, Any]:
    """Values that were recorded at the end of the herd and still hold."""
    stored: Mapping[str, Any] = herd.get("summary") or {}
    if herd["service"]:
        return {key: value for key, value in stored.items() if key in KNOWN}
    return {key: value for key, value in stored.items() if key not in COUNTED}


def result_of(job: Mapping[str, Any], now: float) -> dict[str, Any]:
    """The result of a job, with the ends of its runs for the counts."""
    runs = job.get("runs", [])
    last = runs[-1] if runs else None
    return {
        "job": job["name"],
        "number": job.get("number"),
        "state": job["state"],
        "end": last["end"] if last is not None else None,
        "exit_code": last["exit_code"] if last is not None else None,
        "runs": len(runs),
        "peak_bytes": max((run["peak_bytes"] or 0 for run in runs), default=0),
        "wall_s": round(sum((run["ended_s"] or now) - run["started_s"] for run in runs), 3),
        "held_s": round(sum(run["held_s"] or 0.0 for run in runs), 3),
        "log": str(log_path(last["run"])) if last is not None else None,
        "reason": job["reason"],
        **{name: job.get(name) for name in SAID},
        "ends": [run["end"] for run in runs],
    }


def log_path(run: str) -> Path:
    return state_path() / "runs" / run / "out"
