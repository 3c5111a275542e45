"""What a supervisor shows of itself: values only."""

import time
from typing import TYPE_CHECKING

from ramherd.core.model import Event, Job, JobState, Reason
from ramherd.show.view import RunLine, View

if TYPE_CHECKING:
    from ramherd.supervisor.loop import Supervisor


def make_event(kind: str, reason: Reason, job: Job, run: str = "") -> Event:
    return Event(kind, reason, time.time(), job.herd, job.id, run)


def make_view(supervisor: "Supervisor", at_s: float) -> View:
    counts, memory = supervisor.roster.counts, supervisor.memory
    return View(
        herd=supervisor.herd,
        wall_s=at_s - supervisor.started_s,
        total=len(supervisor.roster),
        done=counts[JobState.DONE],
        failed=counts[JobState.FAILED],
        cancelled=counts[JobState.CANCELLED],
        runs=tuple(
            RunLine(
                name=run.job.name,
                attempt=run.attempt,
                used_bytes=run.reading.used_bytes,
                ran_s=at_s - run.started_s,
                ending=run.is_ending,
                grant_bytes=run.grant.grant_bytes,
                doing=run.agent_run.doing if run.agent_run is not None else "",
                held_s=at_s - run.frozen_s if run.frozen_s is not None else None,
            )
            for run in supervisor.executor.runs.values()
        ),
        used_bytes=supervisor.fleet_used,
        budget_bytes=memory.lease.lease_bytes,
        available_bytes=supervisor.machine.available_bytes,
        waits_for=supervisor.waits_for,
        level=memory.history.level.value,
    )
