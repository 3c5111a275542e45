"""What other processes ask of the service, through the store: new herds, and wishes about jobs.

Jobs that have not ended are the service's to change, so what is wanted of one is written beside
it and stays until it is so, whoever dies meanwhile. Jobs that have ended are nobody's, so a retry
changes them here.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum

from ramherd.core.model import Event, Job, JobState, Reason, Why
from ramherd.decide.job_state import first_status
from ramherd.store.events import add_event, trim_events
from ramherd.store.herds import SERVICE_OWNER, insert_herd, insert_jobs
from ramherd.store.protocol import Store
from ramherd.store.sql import service as sql

PAUSED = "paused"


class Wish(StrEnum):
    CANCEL = "cancel"
    RECYCLE = "recycle"


def submit(
    store: Store, herd: str, jobs: Sequence[Job], env: Mapping[str, str] | None,
    max_cost_usd: float | None = None,
) -> None:  # fmt: skip
    """On disk, whole, before this returns. `env` is that of the program that submitted."""
    with store.synced():
        insert_herd(store, herd, SERVICE_OWNER, is_service=True, env=env, max_cost_usd=max_cost_usd)
        ((last,),) = store.read(sql.LAST_PLACE)
        insert_jobs(store, herd, map(first_status, jobs), after=last)
        store.write_all(sql.ADD_NEED, needs_of(jobs))
        add_event(store, Event("herd_submitted", Reason(Why.SUBMITTED), time.time(), herd))
        trim_events(store)


def needs_of(jobs: Sequence[Job]) -> Iterator[tuple[str, str]]:
    ids = {job.name: job.id for job in jobs}
    for job in jobs:
        for name in job.after:
            yield job.id, ids[name]


def wish_for_job(store: Store, job: str, wish: Wish) -> bool:
    """False when it has ended already, or is not the service's."""
    with store.synced():
        return store.write(sql.WISH_JOB, (wish.value, job)) > 0


def wish_for_herd(store: Store, herd: str, wish: Wish) -> int:
    """Of how many jobs."""
    with store.synced():
        return store.write(sql.WISH_HERD, (wish.value, herd))


def read_wishes(store: Store, after: int, most: int) -> list[tuple[str, str, int]]:
    """(job, what is wished, its place in the line) of the next ones after a place."""
    return [(job, wish, place) for job, wish, place in store.read(sql.WISHED, (after, most))]


def retry(store: Store, job: str) -> list[str]:
    """The job is queued again, and those that were cancelled because of it wait for it again:
    which. Nothing when it has not failed.
    """
    with store.synced():
        herds = store.read(sql.HERD_OF_JOB, (job,))
        again: list[str] = []
        todo = [job]
        while todo:
            one = todo.pop(0)
            waits = bool(store.read(sql.NEEDS_UNDONE, (one,)))
            state = JobState.WAITING if waits else JobState.QUEUED
            values = (state.value, Reason(Why.ASKED).as_text(), time.time(), one)
            if store.write(sql.RETRY_JOB, values):
                again.append(one)
                todo += [found for (found,) in store.read(sql.CANCELLED_FOR, (one,))]
        if again:
            ((herd,),) = herds
            store.write(sql.OPEN_HERD_AGAIN, (herd,))
            store.write(sql.FORGET_LOG_BYTES, (herd,))
            at_s = time.time()
            add_event(store, Event("job_queued", Reason(Why.ASKED), at_s, herd, job))
    return again


def set_paused(store: Store, *, paused: bool) -> None:
    """Whoever is in charge next holds to it too."""
    with store.synced():
        if is_paused(store) != paused:
            why = Why.PAUSED if paused else Why.RESUMED
            add_event(store, Event(why.value, Reason(why), time.time(), ""))
        store.write(sql.SET_FLAG, (PAUSED, "1" if paused else ""))


def is_paused(store: Store) -> bool:
    return store.read(sql.GET_FLAG, (PAUSED,)) == [("1",)]
