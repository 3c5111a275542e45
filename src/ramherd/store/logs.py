"""The sizes of logs, whose output is removed, and which runs are forgotten."""

import json
from collections.abc import Callable, Sequence

from ramherd.core.model import KeptLog
from ramherd.store.protocol import Store
from ramherd.store.sql import records as sql

ChooseLogs = Callable[[Sequence[KeptLog], int], Sequence[KeptLog]]
FIRST = (float("-inf"), "")


def read_unmeasured_runs(store: Store, most: int) -> list[str]:
    """Runs that have ended whose logs were not measured yet."""
    return [run for (run,) in store.read(sql.NOT_MEASURED, (most,))]


def read_growing_runs(store: Store) -> list[tuple[str, str]]:
    """(run, its ramherd) of those that are live, or not measured since they ended."""
    return [(run, owner) for query in sql.UNMEASURED_LOGS for run, owner in store.read(query)]


def set_log_bytes(store: Store, run: str, size: int) -> None:
    store.write(sql.SET_LOG_BYTES, (size, run))


def read_logs_bytes(store: Store) -> int:
    """The size of all logs of finished runs together."""
    return int(store.read(sql.LOGS_BYTES)[0][0])


def read_oldest_logs(store: Store, most: int, after: KeptLog | None = None) -> list[KeptLog]:
    start = (after.ended_s, after.run) if after is not None else FIRST
    return [KeptLog(*row) for row in store.read(sql.OLDEST_LOGS, (*start, most))]


def read_oldest_runs(
    store: Store, before_s: float, most: int, after: KeptLog | None = None,
    kept_jobs: Sequence[str] = (),
) -> list[KeptLog]:  # fmt: skip
    """Of herds that are over: those that ended before a time, but for those of `kept_jobs`."""
    start = (after.ended_s, after.run) if after is not None else FIRST
    values = (before_s, *start, json.dumps(kept_jobs), most)
    return [KeptLog(*row) for row in store.read(sql.OLDEST_RUNS, values)]


def release_logs(store: Store, choose: ChooseLogs, most: int) -> Sequence[KeptLog]:
    """The output chosen among the oldest is counted no more, in one transaction: of two programs
    that prune at once, each gets other runs, and both see what is left. It is on disk, with how
    these runs ended, before their files go.
    """
    with store.synced():
        store.begin()
        chosen = choose(read_oldest_logs(store, most), read_logs_bytes(store))
        for log in chosen:
            store.write(sql.RELEASE_LOG, (log.run,))
    return chosen


def drop_runs(
    store: Store, before_s: float, most: int, kept_jobs: Sequence[str] = ()
) -> Sequence[KeptLog]:
    """The oldest runs that ended before a time are forgotten, in one transaction."""
    store.begin()
    chosen = read_oldest_runs(store, before_s, most, kept_jobs=kept_jobs)
    herds = {drop_run(store, log.run) for log in chosen}
    for herd in herds:
        if not store.read(sql.HAS_RUNS, (herd,)):
            for statement in sql.DROP_HERD:
                store.write(statement, (herd,))
    store.commit()
    return chosen


def drop_run(store: Store, run: str) -> str:
    """Returns the herd of the run."""
    ((job, herd),) = store.read(sql.JOB_OF_RUN, (run,))
    store.write(sql.DROP_EVENTS, (job, run))
    store.write(sql.DROP_SAMPLES, (run,))
    store.write(sql.DROP_RUN, (run,))
    if store.write(sql.DROP_JOB, (job,)):
        store.write(sql.DROP_NEEDS, (job,))
    return str(herd)


def read_worktrees(store: Store) -> list[tuple[str, str]]:
    """(job, path) of the worktrees that are not known to be removed."""
    return [(job, path) for job, path in store.read(sql.WORKTREES)]


def has_job(store: Store, job: str) -> bool:
    return bool(store.read(sql.HAS_JOB, (job,)))


def count_ended_before(store: Store, jobs: Sequence[str], before_s: float) -> int:
    ((number,),) = store.read(sql.ENDED_BEFORE, (json.dumps(jobs), before_s))
    return int(number)
