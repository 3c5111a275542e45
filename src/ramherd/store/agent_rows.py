"""What the store knows of jobs with an agent: what was said of them, costs, worktrees."""

import json
from typing import Any

from ramherd.core.model import Job
from ramherd.store import service_sql as sql
from ramherd.store.sqlite import Store, job_from_spec


def said_of(store: Store, job: str) -> dict[str, Any] | None:
    rows = store.read(sql.SAID, (job,))
    said: dict[str, Any] | None = json.loads(rows[0][0]) if rows and rows[0][0] else None
    return said


def herd_costs(store: Store, herd: str) -> tuple[float | None, float]:
    """What it may cost, and what its runs that have ended did; counted only under a limit."""
    rows = store.read(sql.HERD_LIMIT, (herd,))
    if not rows or rows[0][0] is None:
        return None, 0.0
    ((spent,),) = store.read(sql.HERD_COST, (herd,))
    return rows[0][0], spent


def open_agents(store: Store, herd: str) -> list[tuple[str, str]]:
    """Its jobs that have not ended, and the agent of each that has one."""
    return [(job, agent) for job, agent in store.read(sql.OPEN_AGENTS, (herd,))]


def set_worktree(store: Store, job: str, path: str | None) -> None:
    """What became of it: where it stays, or that it is removed."""
    store.write(sql.SET_WORKTREE, (path, job))


def unsettled_jobs(store: Store) -> list[Job]:
    """Those of the service that have ended, and whose worktrees nobody has looked at since."""
    return [job_from_spec(spec) for (spec,) in store.read(sql.ALL_UNSETTLED, ())]
