"""The memory history: the machine and each run, by the second for the last minutes and in longer
steps for a week. It is bounded in size, and outlives the service.

record_moments(store, moments)              by the service, every few seconds
trim_moments(store, now_s, most_bytes)      by the service, every few minutes
read_moments(store, since_s, until_s, ...)  for charts
"""

import struct
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from ramherd.core.memory_moment import MemoryMoment, RunMemory
from ramherd.decide.history_steps import STEPS, choose_step, start_of_step, thin_out
from ramherd.store.protocol import Store
from ramherd.store.sql import memory_history as sql

# Job number, attempt, use and grant in KiB, and whether the run was held.
RUN = struct.Struct("<IHII?")
MOST_ATTEMPT = (1 << 16) - 1


class StoredHistory(NamedTuple):
    """The runs of `moments` name their job by its number; `jobs` has those that still exist."""

    step_s: int
    moments: list[MemoryMoment]
    jobs: Mapping[str, Mapping[str, Any]]


def record_moments(store: Store, moments: Iterable[tuple[int, MemoryMoment]]) -> None:
    """Each with its step. A step that is stored already gets the fuller moment. Takes effect with
    the store's next `commit`.
    """
    numbers: dict[str, int | None] = {}
    for step_s, moment in moments:
        *values, runs = moment
        packed = b"".join(pack_runs(store, runs, numbers))
        start_s = start_of_step(moment.at_s, step_s)
        store.write(sql.SET_MOMENT, (step_s, start_s, *values, packed))


def trim_moments(store: Store, now_s: int, most_bytes: int) -> None:
    """Takes effect with the store's next `commit`."""
    for step_s, keep_s in STEPS:
        store.write(sql.DROP_OLD_MOMENTS, (step_s, now_s - keep_s))
    store.write(sql.DROP_LATER_MOMENTS, (now_s,))
    store.write(sql.DROP_MANY_MOMENTS, (most_bytes,))


def pack_runs(
    store: Store, runs: Iterable[RunMemory], numbers: dict[str, int | None]
) -> Iterator[bytes]:
    for run in runs:
        if run.job not in numbers:
            found = store.read(sql.NUMBER_OF_JOB, (run.job,))
            numbers[run.job] = found[0][0] if found else None
        number = numbers[run.job]
        if number is not None:
            sizes = (run.used_bytes >> 10, run.grant_bytes >> 10)
            yield RUN.pack(number, min(run.attempt, MOST_ATTEMPT), *sizes, run.held)


def read_moments(store: Store, since_s: int, until_s: int, now_s: int, most: int) -> StoredHistory:
    """At most that many moments between these times."""
    step = choose_step(since_s, until_s, now_s, most)
    rows = store.read(sql.MOMENTS, (step.step_s, since_s, until_s))
    moments = thin_out([moment_of(row) for row in rows], most)
    numbers = {run.job for moment in moments for run in moment.runs}
    return StoredHistory(step.step_s, moments, dict(find_jobs(store, numbers)))


def moment_of(row: tuple[Any, ...]) -> MemoryMoment:
    *values, runs = row
    unpacked = (
        RunMemory(str(number), attempt, used_kib << 10, grant_kib << 10, held)
        for number, attempt, used_kib, grant_kib, held in RUN.iter_unpack(runs)
    )
    return MemoryMoment._make((*values, tuple(unpacked)))


def find_jobs(store: Store, numbers: Iterable[str]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for number in numbers:
        for job, name, herd, agent in store.read(sql.JOB_OF_NUMBER, (int(number),)):
            yield number, {"job": job, "name": name, "herd": herd, "agent": agent}
