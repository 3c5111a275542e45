"""After the store was restored: records the state that this supervisor has in memory."""

import time
from typing import TYPE_CHECKING

from ramherd.store.herds import SERVICE_OWNER, StoredPen
from ramherd.store.known_rows import KnownRun, add_known_jobs, add_known_pens, add_known_runs
from ramherd.system.procfs import read_boot_id

if TYPE_CHECKING:
    from ramherd.supervisor.loop import Loop


def record_known(loop: "Loop") -> None:
    """With the next commit, after writes that were recorded before, which include starts that are
    still held back.
    """
    events, owner = loop.events, loop.owner
    runs = [run for run in loop.executor.runs.values() if not loop.runs.is_held_back(run)]
    held_back = {run.job.id for run in loop.executor.runs.values()} - {run.job.id for run in runs}
    statuses = [status for status in loop.queue if status.job.id not in held_back]
    events.record(add_known_jobs, owner, statuses, is_service=owner == SERVICE_OWNER)
    if loop.agents.runs is not None:
        loop.agents.runs.limits.save_again()
    ago_s = time.time() - loop.clock()
    events.record(
        add_known_runs,
        [KnownRun(run.id, run.job.id, run.attempt, run.started_s + ago_s) for run in runs],
    )
    pens = [StoredPen(run.home, run.id, run.pen.record()) for run in runs if run.pen is not None]
    fleet = {**loop.executor.fleet.record(), "boot_id": read_boot_id()}
    events.record(add_known_pens, events.herd, [StoredPen(loop.fleet_id, "", fleet), *pens])
