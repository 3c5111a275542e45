"""Continues a herd whose `ramherd run` was interrupted or has ended, in a new `ramherd run`."""

import time
from collections.abc import Callable, Container
from dataclasses import replace
from functools import partial

from ramherd.config.paths import runtime_dir, state_dir
from ramherd.core.agent_task import SAID
from ramherd.core.model import JobStatus, RunEnd
from ramherd.show.view import Display
from ramherd.store.herd_queue import HerdQueue
from ramherd.store.interrupted_herds import (
    StoredHerd,
    check_free,
    claim_herd,
    read_statuses,
    read_unfinished_jobs,
    restore_inputs,
    set_cost_limit,
)
from ramherd.store.listing import read_runs
from ramherd.store.owner import Owner
from ramherd.store.protocol import Store
from ramherd.store.service_herds import read_herd_costs, read_said
from ramherd.store.service_requests import check_variables
from ramherd.supervisor.herd_counters import HerdCounters, JobCounters
from ramherd.supervisor.job_states import AgentParts
from ramherd.supervisor.run_herd import (
    HerdParts,
    Outcome,
    Rules,
    prepare_agents,
    run_claimed,
    with_accounts,
    with_restored_store,
)

# Queues jobs of the herd again in the store, and returns their ids.
QueueJobs = Callable[[Store], list[str]]


def resume_here(
    herd: str, queue_jobs: QueueJobs, command: str, rules: Rules, display: Display
) -> Outcome:
    """Runs the jobs that are queued again. `command` is what the user typed, for hints."""

    def begin(store: Store, owner: Owner) -> HerdParts:
        return with_restored_store(store, partial(claim, store, owner))

    def claim(store: Store, owner: Owner) -> HerdParts:
        found = check_free(store, herd, runtime_dir())
        # An error inside leaves the herd unchanged.
        with store.synced():
            claim_herd(store, herd, owner)
            again = queue_jobs(store)
            check_variables(store, state_dir(), herd, again, command)
            if rules.max_cost_usd is not None:
                set_cost_limit(store, herd, rules.max_cost_usd)
            return make_parts(store, found, rules)

    return run_claimed(herd, begin, rules, display)


def make_parts(store: Store, found: StoredHerd, rules: Rules) -> HerdParts:
    """All jobs of the herd in their current state, with the results of earlier runs."""
    now_s = time.monotonic()
    stored = read_statuses(store, found.id)
    names = {status.job.name for status in stored}
    statuses = [with_inputs(one, found, names, now_s) for one in stored]
    # The environment may have changed, and with it the account.
    jobs = with_accounts([status.job for status in statuses], rules)
    statuses = [replace(one, job=job) for one, job in zip(statuses, jobs, strict=True)]
    open_jobs = [status.job for status in statuses if not status.state.is_final]
    agents = prepare_agents(
        open_jobs, rules, said=partial(read_said, store),
        spent_usd=read_herd_costs(store, found.id)[1],
    )  # fmt: skip
    if agents is not None:
        agents.start_gateway(open_jobs)
    counters = {status.job.id: read_counters(store, status) for status in statuses}
    return HerdParts(
        HerdQueue(statuses), HerdCounters(counters), AgentParts(agents),
        read_unfinished_jobs(store, found.id),
    )  # fmt: skip


def with_inputs(
    status: JobStatus, found: StoredHerd, names: Container[str], now_s: float
) -> JobStatus:
    """A needed job that is not in `names` is done, and is removed from the list."""
    after = tuple(name for name in status.job.after if name in names)
    job = replace(status.job, after=after)
    if not status.state.is_final:
        job = restore_inputs(state_dir(), job, found.env)
    return replace(status, job=job, queued_s=now_s)


def read_counters(store: Store, status: JobStatus) -> JobCounters:
    """The results of the earlier runs of a job."""
    runs, said = read_runs(store, status.job.id), read_said(store, status.job.id) or {}
    counted = JobCounters(status.reason, said={name: said.get(name) for name in SAID})
    for run in runs:
        counted.end = RunEnd(run["end"]) if run["end"] is not None else None
        counted.exit_code = run["exit_code"]
        counted.runs += 1
        counted.peak_bytes = max(counted.peak_bytes, run["peak_bytes"] or 0)
        counted.wall_s += (run["ended_s"] or run["started_s"]) - run["started_s"]
        counted.held_s += run["held_s"] or 0.0
        counted.log = state_dir() / "runs" / run["run"] / "out"
    return counted
