"""The sizes of logs, the runs whose output is removed, and the runs whose records are removed."""

import json
from collections.abc import Callable, Sequence

from ramherd.core.model import KeptLog
from ramherd.store.protocol import Store
from ramherd.store.sql import records as sql

ChooseLogs = Callable[[Sequence[KeptLog], int], Sequence[KeptLog]]
FIRST = (float("-inf"), "")


def read_unmeasured_runs(store: Store, most: int) -> list[str]:
    """Runs that have ended, and whose logs were not measured yet."""
    return [run for (run,) in store.read(sql.NOT_MEASURED, (most,))]


def read_growing_runs(store: Store) -> list[tuple[str, str]]:
    """(run, its ramherd) of runs that are live, or were not measured since they ended."""
    return [(run, owner) for query in sql.UNMEASURED_LOGS for run, owner in store.read(query)]


def set_log_bytes(store: Store, run: str, size: int) -> None:
    store.write(sql.SET_LOG_BYTES, (size, run))


def read_logs_bytes(store: Store) -> int:
    """The total size of the logs of finished runs."""
    return int(store.read(sql.LOGS_BYTES)[0][0])


def read_oldest_logs(store: Store, most: int, after: KeptLog | None = None) -> list[KeptLog]:
    start = (after.ended_s, after.run) if after is not None else FIRST
    return [KeptLog(*row) for row in store.read(sql.OLDEST_LOGS, (*start, most))]


def read_oldest_runs(
    store: Store, before_s: float, most: int, after: KeptLog | None = None,
    kept_jobs: Sequence[str] = (),
) -> list[KeptLog]:  # fmt: skip
    """Runs of herds that are over, which ended before a time, except those of `kept_jobs`."""
    start = (after.ended_s, after.run) if after is not None else FIRST
    values = (before_s, *start, json.dumps(kept_jobs), most)
    return [KeptLog(*row) for row in store.read(sql.OLDEST_RUNS, values)]


def release_logs(store: Store, choose: ChooseLogs, most: int) -> Sequence[KeptLog]:
    """Stops counting the output chosen among the oldest, in one transaction: of two programs that
    prune at once, each gets different runs, and both see what is left. This is on disk, with the
    ends of these runs, before their files are removed.
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
    """Removes the records of the oldest runs that ended before a time, in one transaction."""
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
    """(job, path) of the worktrees that are not recorded as removed."""
    return [(job, path) for job, path in store.read(sql.WORKTREES)]


def has_job(store: Store, job: str) -> bool:
    return bool(store.read(sql.HAS_JOB, (job,)))


def count_ended_before(store: Store, jobs: Sequence[str], before_s: float) -> int:
    ((number,),) = store.read(sql.ENDED_BEFORE, (json.dumps(jobs), before_s))
    return int(number)
