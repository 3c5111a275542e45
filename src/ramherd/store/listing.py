"""Lists of herds, jobs and runs for the API and the command line, in pages."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ramherd.core.agent_task import SAID
from ramherd.core.model import JobState
from ramherd.decide.job_state import explain_lost_owner
from ramherd.jobs.stored import submitted_json
from ramherd.store.owner import Owner
from ramherd.store.protocol import Store
from ramherd.store.sql import listing as sql
from ramherd.store.wait_reasons import Obstacles, OpenJob, explain_wait, read_obstacles

LAST_ID = "~"  # sorts after every ULID
# Columns of the newest run of a job.
NEWEST_RUN = ("started_s", "ended_s", "exit_code", "signal", "peak_bytes", "used_bytes")


# Herds that `read_lost_herds` found, each with its owner.
Lost = Mapping[str, Owner]
NONE_LOST: Lost = {}


def list_herds(
    store: Store, *, before: str = LAST_ID, most: int = 100, lost: Lost = NONE_LOST
) -> list[dict[str, Any]]:
    """Lists herds, the newest first."""
    return [herd_json(store, row, lost) for row in store.read(sql.HERDS, (before, most))]


def read_herd(store: Store, herd: str, lost: Lost = NONE_LOST) -> dict[str, Any] | None:
    rows = store.read(sql.HERD, (herd,))
    return {**herd_json(store, rows[0], lost), "summary": parsed(rows[0][4])} if rows else None


def find_herds_ending(store: Store, end: str) -> list[str]:
    """The herds whose ids end in these characters, the newest first."""
    return [herd for (herd,) in store.read(sql.HERDS_ENDING, {"end": end})]


def herd_json(store: Store, row: Sequence[Any], lost: Lost) -> dict[str, Any]:
    herd, created_s, ended_s, service, _summary = row
    return {
        "herd": herd, "created_s": created_s, "ended_s": ended_s, "service": bool(service),
        "owner_lost": herd in lost,
        "counts": dict(store.read(sql.HERD_COUNTS, (herd,))),
    }  # fmt: skip


def list_jobs(
    store: Store, *, herd: str | None = None, state: str | None = None, after: str = "",
    most: int = 1000, runs: bool = False, lost: Lost = NONE_LOST,
) -> list[dict[str, Any]]:  # fmt: skip
    """Lists jobs in the order in which they were submitted."""
    values = {"herd": herd, "state": state, "after": after, "most": most}
    known = read_obstacles(store)
    jobs = [mark_lost(job_json(store, row, known), lost) for row in store.read(sql.JOBS, values)]
    return [{**job, "runs": read_runs(store, job["id"])} for job in jobs] if runs else jobs


def read_runs(store: Store, job: str) -> list[dict[str, Any]]:
    return [run_json(run) for run in store.read(sql.RUNS_OF_JOB, (job,))]


def read_job(store: Store, job: str, lost: Lost = NONE_LOST) -> dict[str, Any] | None:
    """The job with its runs, and with its keys as submitted."""
    rows = store.read(sql.JOB, (job,))
    if not rows:
        return None
    *row, spec = rows[0]
    submitted = submitted_json(json.loads(spec))
    shown = mark_lost(job_json(store, row, read_obstacles(store)), lost)
    return {**shown, **submitted, "runs": read_runs(store, job)}


def job_json(store: Store, row: Sequence[Any], known: Obstacles) -> dict[str, Any]:
    """For a job that does not run, the reason is the current one."""
    job, herd, name, state, reason, attempts, failures, priority, updated_s, wish, *rest = row
    label, said, place, quota, number, after, paused_s, start_at_s, not_before_s, *run = rest
    words = parsed(said) or {}
    open_job = OpenJob(
        job, herd, state, json.loads(reason), place, quota, parsed(after) or (), paused_s,
        start_at_s, not_before_s,
    )  # fmt: skip
    return {
        "id": job, "number": number, "herd": herd, "name": name, "state": state,
        "reason": explain_wait(store, open_job, known),
        "attempts": attempts, "failures": failures, "priority": priority,
        "updated_s": updated_s, "wish": wish, "label": label or "",
        "paused_s": paused_s, "not_before_s": max(start_at_s or 0.0, not_before_s) or None,
        **dict(zip(NEWEST_RUN, run, strict=True)),
        **{name: words.get(name) for name in SAID},
    }  # fmt: skip


def mark_lost(job: dict[str, Any], lost: Lost) -> dict[str, Any]:
    """A job whose owner is dead gets that as its reason; its state is the last recorded one."""
    owner = None if JobState(job["state"]).is_final else lost.get(job["herd"])
    reason = job["reason"] if owner is None else explain_lost_owner(owner.proc.pid).as_json()
    return {**job, "reason": reason, "owner_lost": owner is not None}


def run_json(row: Sequence[Any]) -> dict[str, Any]:
    run, attempt, started_s, ended_s, end, exit_code, signal, reason, peak_bytes, held_s = row
    return {
        "run": run, "attempt": attempt, "started_s": started_s, "ended_s": ended_s, "end": end,
        "exit_code": exit_code, "signal": signal, "reason": parsed(reason),
        "peak_bytes": peak_bytes, "held_s": held_s,
    }  # fmt: skip


def read_job_counts(store: Store) -> dict[str, int]:
    """The service's jobs by state."""
    return dict(store.read(sql.COUNTS))


def read_oldest_queued_s(store: Store) -> float | None:
    ((at_s,),) = store.read(sql.OLDEST_QUEUED)
    return None if at_s is None else float(at_s)


def parsed(text: str | None) -> Any:
    return None if text is None else json.loads(text)
