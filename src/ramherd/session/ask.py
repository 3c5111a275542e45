"""Admission in full, for a session that does not obviously fit."""

import os
import time

from ramherd.decide.admission import admit
from ramherd.errors import NoRoom
from ramherd.measure.cgroups import read_trees
from ramherd.measure.machine import read_machine
from ramherd.model import Job, JobState, JobStatus, Policy, Reason, Settle, Snapshot, Wait, Why
from ramherd.show.reasons import render_reason


def ask_admission(name: str, need_bytes: int, *, no_wait: bool) -> tuple[str, str] | None:
    """None when it may start; else why not, as a word and as a sentence."""
    job = Job("", "", name, 0, (name,), os.getcwd(), memory_bytes=need_bytes)
    status = JobStatus(job, JobState.QUEUED, Reason(Why.SUBMITTED))
    snapshot = Snapshot(time.monotonic(), read_machine(read_trees()), [], [status])
    (action,) = admit(snapshot, Policy(no_wait=no_wait))
    if isinstance(action, Settle):
        raise NoRoom(f"{name} {render_reason(action.reason)}", hint="ask for less: --memory 256MiB")
    if isinstance(action, Wait):
        return action.reason.why.value, render_reason(action.reason)
    return None
