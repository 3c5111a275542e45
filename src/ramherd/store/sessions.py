"""An interactive session in the store: a herd of one job with one run, whose output is not logged.

One short transaction when it starts, one when it ends.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from ramherd.core.model import Event, JobState
from ramherd.store.events import add_event
from ramherd.store.herds import (
    add_pen,
    add_run,
    drop_pen,
    end_herd,
    end_run,
    insert_herd,
    insert_jobs,
    read_pens,
    set_job,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ramherd.core.model import Exit, JobStatus, RunEnd
    from ramherd.store.herds import StoredPen
    from ramherd.store.owner import Owner
    from ramherd.store.protocol import Store

FINAL = (JobState.DONE, JobState.FAILED, JobState.CANCELLED)


def start_session(
    store: Store, owner: Owner, status: JobStatus, pens: Iterable[StoredPen],
    *, run: str, available_bytes: int,
) -> None:  # fmt: skip
    """`status` is the status of the running job. Not synced: a session that a power cut ends needs
    no record.
    """
    job = status.job
    insert_herd(store, job.herd, owner)
    insert_jobs(store, job.herd, [status])
    set_job(store, status)
    add_run(store, run, job.id, 1, available_bytes)
    for pen in pens:
        add_pen(store, pen.id, job.herd, pen.run, pen.record)
    add_event(store, Event("run_started", status.reason, time.time(), job.herd, job.id, run))
    store.commit()


def end_session(
    store: Store, status: JobStatus, end: RunEnd, exit_: Exit | None,
    *, run: str, peak_bytes: int, pens_removed: bool,
) -> None:  # fmt: skip
    """`status` is the status of the job that has ended."""
    job, reason = status.job, status.reason
    end_run(
        store, run, end, reason, exit_, peak_bytes=peak_bytes, least_bytes=None, after_bytes=None
    )
    set_job(store, status)
    add_event(store, Event("run_ended", reason, time.time(), job.herd, job.id, run))
    counts = {state.value: int(state is status.state) for state in FINAL}
    end_herd(store, job.herd, {"herd": job.herd, "jobs": 1, **counts})
    if pens_removed:
        for pen in read_pens(store, job.herd):
            drop_pen(store, pen.id)
    store.commit()
