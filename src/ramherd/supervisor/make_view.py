"""The view of the loop for the display: values only."""

from typing import TYPE_CHECKING

from ramherd.core.model import JobState
from ramherd.show.view import RunLine, View

if TYPE_CHECKING:
    from ramherd.supervisor.loop import Loop


def make_view(loop: "Loop", at_s: float) -> View:
    counts, memory = loop.queue.counts, loop.memory
    return View(
        herd=loop.events.herd,
        wall_s=at_s - loop.started_s,
        total=len(loop.queue),
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
                swapped_bytes=run.reading.swapped_bytes,
                doing=run.agent_run.doing if run.agent_run is not None else "",
                held_s=at_s - run.frozen_s if run.frozen_s is not None else None,
            )
            for run in loop.executor.runs.values()
            if not loop.runs.is_held_back(run)
        ),
        used_bytes=memory.fleet_used,
        budget_bytes=memory.lease.possible_bytes,
        available_bytes=memory.machine.available_bytes,
        waits_for=memory.waits_for,
        level=memory.history.level.value,
        ended_before=loop.ended_before,
    )
