"""Herds of the service: their environment, the costs and reports of their agents, their worktrees,
and when they are over.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any

from ramherd.core.model import Event, Job, Reason, Why
from ramherd.decide.job_bases import explain_stuck_herd
from ramherd.jobs.stored import job_from_text
from ramherd.store.events import add_event
from ramherd.store.herds import NO_ENVIRONMENT, EnvironmentFile, end_herd, set_said
from ramherd.store.protocol import Store
from ramherd.store.sql import listing
from ramherd.store.sql import service as sql

TOTALS = (
    "peak_bytes", "level_changes", "held_s", "redone_s", "limit_kills", "oom_kills",
    "leftovers_ended", "residue_bytes",
)  # fmt: skip


def read_environment_file(store: Store, herd: str) -> EnvironmentFile:
    rows = store.read(sql.HERD_ENV, (herd,))
    return EnvironmentFile(*rows[0]) if rows else NO_ENVIRONMENT


def read_said(store: Store, job: str) -> dict[str, Any] | None:
    """The last report of a job's agent."""
    rows = store.read(sql.SAID, (job,))
    said: dict[str, Any] | None = json.loads(rows[0][0]) if rows and rows[0][0] else None
    return said


def read_herd_costs(store: Store, herd: str) -> tuple[float | None, float]:
    """The cost limit, and the cost of runs that have ended, which is summed only under a limit."""
    rows = store.read(sql.HERD_LIMIT, (herd,))
    if not rows or rows[0][0] is None:
        return None, 0.0
    ((spent,),) = store.read(sql.HERD_COST, (herd,))
    return rows[0][0], spent


def read_open_agents(store: Store, herd: str) -> list[tuple[str, str]]:
    """Jobs of the herd that have not ended, each with its agent, if it has one."""
    return [(job, agent) for job, agent in store.read(sql.OPEN_AGENTS, (herd,))]


def set_worktree(store: Store, job: str, found: Mapping[str, Any]) -> None:
    """The result of finishing a worktree: keys of `SAID`. `worktree` is None if it was removed."""
    set_said(store, job, {**(read_said(store, job) or {}), **found})


def read_unfinished(store: Store) -> list[Job]:
    """Jobs that have ended, of herds that have not, whose worktree is not finished yet."""
    return [job_from_text(spec) for (spec,) in store.read(sql.ALL_UNFINISHED)]


def read_unfinished_of_dead(store: Store) -> list[Job]:
    """The same for each `ramherd run` that was killed."""
    return [job_from_text(spec) for (spec,) in store.read(sql.UNFINISHED_OF_DEAD)]


def shift_delays(store: Store, by_s: float) -> None:
    """The wall clock was set: jobs that may not start yet keep their remaining delay."""
    store.write(sql.SHIFT_DELAYS, (by_s,))


def raise_herd_peak(store: Store, herd: str, used_bytes: int) -> None:
    store.write(sql.RAISE_HERD_PEAK, (used_bytes, herd))


def add_level_change(store: Store, herd: str) -> None:
    store.write(sql.ADD_LEVEL_CHANGE, (herd,))


def read_herd_totals(store: Store, herd: str) -> dict[str, Any]:
    """The totals of the herd's runs, by the keys of `run --json`."""
    rows = store.read(sql.HERD_TOTALS, (herd,))
    return dict(zip(TOTALS, rows[0], strict=True)) if rows else {}


def end_if_over(
    store: Store, herd: str, at_s: float, describe: Callable[[], dict[str, Any]] = dict
) -> None:
    """Ends the herd with its last job, in the same transaction; with its last worktree, if it has
    any. `describe` returns the service's part of the summary. A herd whose remaining jobs all wait
    for the user stays open, and an event reports that.
    """
    conditions = (sql.HAS_ENDED, sql.IS_ACTIVE, sql.UNFINISHED_OF_HERD, sql.IS_NEXT)
    if any(store.read(one, (herd,)) for one in conditions):
        return
    counts: dict[str, int] = dict(store.read(listing.HERD_COUNTS, (herd,)))
    if store.read(sql.IS_OPEN, (herd,)):
        add_event(store, Event("herd_stuck", explain_stuck_herd(counts), at_s, herd))
        return
    numbers = {state: counts.get(state, 0) for state in ("done", "failed", "cancelled")}
    totals = {**read_herd_totals(store, herd), **describe()}
    end_herd(store, herd, {"herd": herd, "jobs": sum(counts.values()), **numbers, **totals})
    add_event(store, Event("herd_ended", Reason(Why.HERD_OVER, **numbers), at_s, herd))
