"""The sizes of logs, and which runs go when logs are pruned."""

from collections.abc import Callable, Sequence

from ramherd.core.model import KeptLog
from ramherd.store.protocol import Store
from ramherd.store.sql import records as sql

ChooseLogs = Callable[[Sequence[KeptLog], int], Sequence[KeptLog]]


def read_unmeasured_runs(store: Store, most: int) -> list[str]:
    """Runs of herds that are over whose logs were not measured yet."""
    return [run for (run,) in store.read(sql.NOT_MEASURED, (most,))]


def set_log_bytes(store: Store, run: str, size: int) -> None:
    store.write(sql.SET_LOG_BYTES, (size, run))


def read_logs_bytes(store: Store) -> int:
    """The size of all logs together."""
    return int(store.read(sql.LOGS_BYTES)[0][0])


def read_oldest_logs(store: Store, most: int, after: KeptLog | None = None) -> list[KeptLog]:
    start = (after.ended_s, after.run) if after is not None else (float("-inf"), "")
    return [KeptLog(*row) for row in store.read(sql.OLDEST_LOGS, (*start, most))]


def drop_logs(store: Store, choose: ChooseLogs, most: int) -> Sequence[KeptLog]:
    """The runs chosen among the oldest are dropped from the store, in one transaction: of two
    programs that prune at once, each gets other runs, and both see what is left.
    """
    store.begin()
    chosen = choose(read_oldest_logs(store, most), read_logs_bytes(store))
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
