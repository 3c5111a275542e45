"""The jobs of a herd while it runs: which are ready, their order, and which wait for other jobs."""

import time
from bisect import bisect_left, bisect_right, insort
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace

from ramherd.core.model import JobState, JobStatus, Settle
from ramherd.decide.job_bases import is_stuck
from ramherd.decide.job_state import next_dependants
from ramherd.decide.usage_limits import render_quota


class HerdQueue:
    """`queue` is sorted: a step reads only its head, however long it is."""

    # Whether more jobs may come after all have ended.
    is_lasting = False

    def __init__(self, statuses: Iterable[JobStatus]) -> None:
        self._by_id = {status.job.id: status for status in statuses}
        self._id_of = {status.job.name: status.job.id for status in self._by_id.values()}
        self._dependants: dict[str, list[str]] = {}
        self.queue: list[JobStatus] = []
        # The API quota of each job, and the quotas that are closed for now.
        self._quotas = {
            status.job.id: quota
            for status in self._by_id.values()
            if (quota := render_quota(status.job)) is not None
        }
        self._closed: frozenset[str] = frozenset()
        self._is_timed = any(one.job.start_at_s is not None for one in self._by_id.values())
        # Results of `_open_heads` by number, until the queue changes or a start time comes.
        self._open: dict[int, list[JobStatus]] = {}
        self._open_until_s = 0.0
        # Queued jobs that may not start yet, so that no step reads the whole queue.
        self.delayed: dict[str, JobStatus] = {}
        # Queued or running jobs with a run during which the keeper died, the first in line first.
        self.suspected: dict[str, JobStatus] = {}
        self.counts = Counter(status.state for status in self._by_id.values())
        for status in self._by_id.values():
            for name in status.job.after:
                self._dependants.setdefault(self._id_of[name], []).append(status.job.id)
            if status.state is JobState.QUEUED:
                self._enqueue(status)

    def __getitem__(self, job: str) -> JobStatus:
        return self._by_id[job]

    def read_quotas(self) -> list[str]:
        return list(set(self._quotas.values()))

    def set_closed(self, closed: frozenset[str]) -> None:
        """Jobs that wait for their API do not keep others from the head of the queue."""
        if closed != self._closed:
            self._closed = closed
            self._open.clear()

    def heads(self, number: int) -> list[JobStatus]:
        """The first jobs of each priority, in order: the next one to start is among them."""
        if self._closed or self._is_timed:
            return self._open_heads(number)
        found: list[JobStatus] = []
        at = 0
        while at < len(self.queue):
            priority = self.queue[at].job.priority
            end = bisect_right(self.queue, -priority, key=lambda one: -one.job.priority)
            found += self.queue[at : min(end, at + number)]
            at = end
        return found

    def _open_heads(self, number: int) -> list[JobStatus]:
        """Without jobs that wait for their API or for their start time."""
        now_s = time.time()
        if now_s >= self._open_until_s:
            self._open.clear()
            self._open_until_s = float("inf")
        if number not in self._open:
            self._open[number] = self._find_open_heads(number, now_s)
        return self._open[number]

    def _find_open_heads(self, number: int, now_s: float) -> list[JobStatus]:
        taken, found = Counter[int](), []
        for status in self.queue:
            job = status.job
            if taken[job.priority] >= number or self._quotas.get(job.id) in self._closed:
                continue
            if job.start_at_s is None or job.start_at_s <= now_s:
                taken[job.priority] += 1
                found.append(status)
            else:
                self._open_until_s = min(self._open_until_s, job.start_at_s)
        return found

    def __iter__(self) -> Iterator[JobStatus]:
        return iter(self._by_id.values())

    def __len__(self) -> int:
        return len(self._by_id)

    @property
    def is_over(self) -> bool:
        """Also true when all remaining jobs wait for the user."""
        left = {state for state, number in self.counts.items() if number and not state.is_final}
        return not left or (left == {JobState.WAITING} and self._is_stuck())

    def _is_stuck(self) -> bool:
        waiting = [one for one in self._by_id.values() if one.state is JobState.WAITING]
        return all(is_stuck(status, self._states_before(status)) for status in waiting)

    def _states_before(self, status: JobStatus) -> dict[str, JobState]:
        """The states of the jobs that it depends on, by name."""
        return {name: self._by_id[self._id_of[name]].state for name in status.job.after}

    def change(self, new: JobStatus) -> Iterator[JobStatus]:
        """Sets a new status. Yields it and every change that follows: of jobs that wait for a job
        that ended, however long the chain. Jobs that wait for a job with a worktree go on with
        `release`.
        """
        yield from self._change_all([new])

    def release(self, job: str) -> Iterator[JobStatus]:
        """The worktree of a job that has ended is finished: yields all changes that follow from its
        end. The end of a job of another herd has no effect.
        """
        if job in self._by_id and self._by_id[job].state.is_final:
            yield from self._change_all(self._follow(self._by_id[job], set()))

    def _change_all(self, todo: list[JobStatus]) -> Iterator[JobStatus]:
        while todo:
            status = todo.pop(0)
            yield self._set(status)
            if status.state.is_final and not status.has_worktree:
                todo += self._follow(status, {later.job.id for later in todo})

    def apply(self, settle: Settle) -> Iterator[JobStatus]:
        yield from self.change(self._settled(settle))

    def _follow(self, ended: JobStatus, settled: set[str]) -> list[JobStatus]:
        """The new status of each dependant that this end decides, except those already decided."""
        ids = [job for job in self._dependants.get(ended.job.id, ()) if job not in settled]
        dependants = [self._by_id[job] for job in ids]
        states = {
            name: self._by_id[self._id_of[name]].state
            for status in dependants
            for name in status.job.after
        }
        return [self._settled(s) for s in next_dependants(ended, dependants, states)]

    def _settled(self, settle: Settle) -> JobStatus:
        return replace(self._by_id[settle.job], state=settle.state, reason=settle.reason)

    def _set(self, new: JobStatus) -> JobStatus:
        old = self._by_id[new.job.id]
        self._open.clear()
        if old.state is JobState.QUEUED:
            del self.queue[bisect_left(self.queue, place_in_line(old), key=place_in_line)]
        self._by_id[new.job.id] = new
        self.delayed.pop(new.job.id, None)
        self.suspected.pop(new.job.id, None)
        self.counts[old.state] -= 1
        self.counts[new.state] += 1
        if new.state is JobState.QUEUED:
            self._enqueue(new)
        if new.suspicion.deaths and not new.state.is_final:
            self.suspected = with_suspect(self.suspected, new)
        return new

    def _enqueue(self, status: JobStatus) -> None:
        insort(self.queue, status, key=place_in_line)
        if status.not_before_s:
            self.delayed[status.job.id] = status


def with_suspect(suspected: dict[str, JobStatus], new: JobStatus) -> dict[str, JobStatus]:
    found = sorted([*suspected.values(), new], key=place_in_line)
    return {status.job.id: status for status in found}


def place_in_line(status: JobStatus) -> tuple[int, int]:
    """Priority, then the order of the file. A job that comes back keeps its place."""
    return -status.job.priority, status.job.seq
