"""The service's jobs while it runs: the head of the queue, and all jobs that run.

It has the methods of `HerdQueue`. The rest of the queue stays in the store, so a service with ten
thousand jobs holds no more of them in memory than one with a hundred.
"""

import json
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from ramherd.core.model import JobState, JobStatus, Settle
from ramherd.core.reasons import reason_from_text
from ramherd.decide.job_state import next_dependants
from ramherd.jobs.stored import job_from_text
from ramherd.store.herd_queue import with_suspect
from ramherd.store.herds import suspicion_from_text
from ramherd.store.protocol import Store
from ramherd.store.sql import service as sql

# At most 16 starts are under way at a time: a step never reads more than the first of these.
WINDOW = 64
# The head of each priority is read, because a job that waits long rises; at most this many.
PRIORITIES = 16
# The longest delay is ten minutes, for a job that waits for a busy API; setting the clock back
# makes longer ones.
LONGEST_DELAY_S = 1200.0


class ServiceQueue:
    """Changes of a step are here at once, and in the store after its commit: until then the version
    here counts (`_fresh`). Call `refill` after the commit.
    """

    # Whether more jobs may come after all have ended.
    is_lasting = True

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: dict[str, JobStatus] = {}
        self._fresh: dict[str, JobStatus] = {}
        self.queue: list[JobStatus] = []
        # Quotas that APIs refuse for now (`render_quota`): jobs with these stay in the store.
        self._closed: frozenset[str] = frozenset()
        # The head of the queue has to be read again.
        self.is_stale = False
        # Jobs that may not start yet stay in the store.
        self.delayed: dict[str, JobStatus] = {}
        self.next_delayed_s: float | None = None
        # All queued or running jobs during whose runs the keeper died, the first in line first.
        self.suspected: dict[str, JobStatus] = {}

    def __getitem__(self, job: str) -> JobStatus:
        if job not in self._known:
            found = self.load(job)
            if found is None:
                raise KeyError(job)
            self._known[job] = found
        return self._known[job]

    def __iter__(self) -> Iterator[JobStatus]:
        return iter(self._known.values())

    def __len__(self) -> int:
        return len(self._known)

    @property
    def counts(self) -> Counter[JobState]:
        """The counts of the jobs held here; the store counts all."""
        return Counter(status.state for status in self._known.values())

    def heads(self, _number: int) -> list[JobStatus]:
        """This queue holds only the first jobs of each priority."""
        return self.queue

    @property
    def is_over(self) -> bool:
        """A service waits for the next herd."""
        return False

    def read_quotas(self) -> list[str]:
        return [quota for (quota,) in self._store.read(sql.QUOTAS)]

    def set_closed(self, closed: frozenset[str]) -> None:
        """Jobs that wait for their API do not keep others from the head of the queue."""
        if closed != self._closed:
            self._closed, self.is_stale = closed, True

    def load(self, job: str) -> JobStatus | None:
        rows = self._store.read(sql.GET_STANDING, (job,))
        return status_from_row(rows[0]) if rows else None

    def refill(self) -> None:
        """Reads the head of the queue, once all changes made here are in the store."""
        self._fresh.clear()
        self.is_stale = False
        now = time.time()
        self.queue = [
            status_from_row(row)
            for (priority,) in self._store.read(sql.PRIORITIES, (PRIORITIES,))
            for row in self._store.read(
                sql.IN_LINE,
                {
                    "priority": priority,
                    "now": now,
                    "longest": LONGEST_DELAY_S,
                    "most": WINDOW,
                    "closed": json.dumps(sorted(self._closed)),
                },
            )
        ]
        kept = {job: known for job, known in self._known.items() if is_at_work(known)}
        self.suspected = {status.job.id: status for status in self.read_suspected()}
        for running in kept.values():
            if running.suspicion.deaths:
                self.suspected = with_suspect(self.suspected, running)
        self._known = {**kept, **{status.job.id: status for status in self.queue}}
        ((at_s,),) = self._store.read(sql.NEXT_DELAYED, (now,))
        self.next_delayed_s = None if at_s is None else min(at_s - now, LONGEST_DELAY_S)

    def read_suspected(self) -> list[JobStatus]:
        """Suspected jobs that may start now."""
        values = {"now": time.time(), "longest": LONGEST_DELAY_S}
        return [status_from_row(row) for row in self._store.read(sql.SUSPECTED, values)]

    def change(self, new: JobStatus) -> Iterator[JobStatus]:
        """Sets a new status. Yields it and every change that follows, like `HerdQueue.change`."""
        yield from self._change_all([new])

    def release(self, job: str) -> Iterator[JobStatus]:
        """The worktree of a job that has ended is finished: yields all changes that follow."""
        if self[job].state.is_final:
            yield from self._change_all(self._follow(self[job], set()))

    def _change_all(self, todo: list[JobStatus]) -> Iterator[JobStatus]:
        while todo:
            status = todo.pop(0)
            self._set(status)
            yield status
            if status.state.is_final and not status.has_worktree:
                todo += self._follow(status, {later.job.id for later in todo})

    def apply(self, settle: Settle) -> Iterator[JobStatus]:
        yield from self.change(replace(self[settle.job], state=settle.state, reason=settle.reason))

    def _set(self, new: JobStatus) -> None:
        self._known[new.job.id] = self._fresh[new.job.id] = new
        self.queue = [status for status in self.queue if status.job.id != new.job.id]
        self.suspected.pop(new.job.id, None)
        if new.suspicion.deaths and not new.state.is_final:
            self.suspected = with_suspect(self.suspected, new)

    def _follow(self, ended: JobStatus, settled: set[str]) -> list[JobStatus]:
        stored = [status_from_row(row) for row in self._store.read(sql.WHO_NEEDS, (ended.job.id,))]
        dependants = [
            self._fresh.get(status.job.id, status)
            for status in stored
            if status.job.id not in settled
        ]
        changed = []
        for status in dependants:
            for settle in next_dependants(ended, [status], self._states_needed(status)):
                changed.append(replace(status, state=settle.state, reason=settle.reason))
        return changed

    def _states_needed(self, status: JobStatus) -> dict[str, JobState]:
        rows = self._store.read(sql.STATES_NEEDED, (status.job.id,))
        return {
            name: self._fresh[job].state if job in self._fresh else JobState(state)
            for job, name, state in rows
        }


def is_at_work(status: JobStatus) -> bool:
    return not status.state.is_final and status.state not in (JobState.QUEUED, JobState.WAITING)


def status_from_row(row: Sequence[Any]) -> JobStatus:
    """The columns of `sql.service.STANDING`. A delay is over by the time it is read."""
    now_s = time.time()
    spec, state, reason, attempts, failures, lost, seen_bytes, interrupted, place, *rest = row
    updated_s, overloads, suspicion, not_before_s = rest
    waited_s = max(now_s - updated_s, 0.0)
    ended_s = time.monotonic() - max(now_s - not_before_s, 0.0) if not_before_s else 0.0
    return JobStatus(
        replace(job_from_text(spec), seq=place), JobState(state), reason_from_text(reason),
        attempts=attempts, failures=failures, lost=lost, seen_bytes=seen_bytes,
        interrupted=bool(interrupted), overloads=overloads, queued_s=time.monotonic() - waited_s,
        suspicion=suspicion_from_text(suspicion), not_before_s=ended_s,
    )  # fmt: skip
