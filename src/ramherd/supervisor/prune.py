"""Removes files of finished runs: their output by size, and by age their records too.

Records of a herd that is not over stay. The rows change first: an interruption leaves a directory
that the store does not count, which is removed when it is a day old.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ramherd.act.cleanup import remove_tree
from ramherd.act.run_directory import LOGS
from ramherd.core.model import KeptLog
from ramherd.core.units import MIB
from ramherd.decide.pruning import PruneRule, choose_excess
from ramherd.measure.disk_usage import read_free_bytes, read_tree_bytes
from ramherd.store.herds import has_directory
from ramherd.store.logs import (
    count_ended_before,
    drop_runs,
    read_logs_bytes,
    read_oldest_logs,
    read_oldest_runs,
    read_unmeasured_runs,
    read_worktrees,
    release_logs,
    set_log_bytes,
)
from ramherd.store.protocol import Store
from ramherd.store.sqlite import read_oldest_ended

# A batch holds the store's lock, which herds wait for, for some ms, and bounds the rows in memory.
BATCH = 100
UNKNOWN_FOR_S = 86400.0
# Space for the files beside the store: its shared memory takes 32 KiB, its log 4 MiB at most.
ROOM_BYTES = 5 * MIB


@dataclass
class Pruned:
    """What was removed, or would be removed."""

    # Runs whose output was removed, and runs whose records were removed.
    runs: int = 0
    records: int = 0
    freed_bytes: int = 0
    left_bytes: int = 0
    # Directories of runs that are not in the store.
    unknown: int = 0
    # Directories that could not be removed.
    stuck: int = 0
    # Jobs whose records stay only because they have a worktree.
    kept_jobs: int = 0

    def foresee(self, logs: Sequence[KeptLog]) -> None:
        size = sum(log.bytes for log in logs)
        self.runs += sum(log.bytes > 0 for log in logs)
        self.freed_bytes += size
        self.left_bytes -= size

    def count(self, run_dir: Path, size: int) -> None:
        gone = not run_dir.exists()
        self.freed_bytes += size if gone else 0
        self.stuck += not gone


def prune(store: Store, runs_dir: Path, rule: PruneRule) -> Pruned:
    """Removes what the rule does not keep, the oldest first."""
    measure_new(store, runs_dir)
    pruned = Pruned()
    if rule.before_s is not None:
        kept_jobs = find_kept_jobs(store, rule.before_s, pruned)
        while logs := drop_runs(store, rule.before_s, BATCH, kept_jobs):
            pruned.records += len(logs)
            remove_logs(runs_dir, logs, pruned)
    choose = partial(choose_excess, keep_bytes=rule.keep_bytes)
    while logs := release_logs(store, choose, BATCH):
        remove_logs(runs_dir, logs, pruned)
    pruned.left_bytes = read_logs_bytes(store)
    return pruned


def find_kept_jobs(store: Store, before_s: float, pruned: Pruned) -> list[str]:
    """A worktree that exists keeps the record of its job, which names its owner."""
    kept = [job for job, path in read_worktrees(store) if os.path.lexists(path)]
    pruned.kept_jobs = count_ended_before(store, kept, before_s)
    return kept


def remove_logs(runs_dir: Path, logs: Sequence[KeptLog], pruned: Pruned) -> None:
    pruned.runs += sum(log.bytes > 0 for log in logs)
    for log in logs:
        remove_tree(runs_dir / log.run)
        pruned.count(runs_dir / log.run, log.bytes)


def foresee(store: Store, runs_dir: Path, rule: PruneRule) -> Pruned:
    """What `prune` would remove now."""
    measure_new(store, runs_dir)
    pruned = Pruned(left_bytes=read_logs_bytes(store))
    gone: set[str] = set()
    after: KeptLog | None = None
    before_s = rule.before_s
    kept = find_kept_jobs(store, before_s, pruned) if before_s is not None else []
    while before_s is not None and (logs := read_oldest_runs(store, before_s, BATCH, after, kept)):
        pruned.records += len(logs)
        pruned.foresee(logs)
        gone.update(log.run for log in logs)
        after = logs[-1]
    after = None
    while logs := read_oldest_logs(store, BATCH, after):
        after = logs[-1]
        left = [log for log in logs if log.run not in gone]
        excess = choose_excess(left, pruned.left_bytes, rule.keep_bytes)
        pruned.foresee(excess)
        if len(excess) < len(left):
            break
    return pruned


def make_room(db: Path, runs_dir: Path, rule: PruneRule) -> bool:
    """For a full disk, on which SQLite cannot open or write the store: removes the first logs that
    the rule does not keep, and leaves their rows for later. Returns whether more space is free now.
    """
    before = total = read_tree_bytes(runs_dir)
    for run, ended_s, is_over in read_oldest_ended(db):
        if read_free_bytes(db.parent) >= ROOM_BYTES:
            break
        log = KeptLog(run, ended_s, read_tree_bytes(runs_dir / run))
        is_old = is_over and rule.before_s is not None and ended_s < rule.before_s
        if not is_old and not choose_excess([log], total, rule.keep_bytes):
            break
        # While its herd goes on, the end of the run may be recorded in its `status` only.
        (remove_tree if is_over else remove_output)(runs_dir / run)
        total -= log.bytes
    return total < before


def remove_output(run_dir: Path) -> None:
    for name in LOGS:
        with suppress(OSError):
            (run_dir / name).unlink(missing_ok=True)


def measure_new(store: Store, runs_dir: Path) -> None:
    """Files of a finished run do not change any more: they are measured once."""
    while runs := read_unmeasured_runs(store, BATCH):
        for run in runs:
            set_log_bytes(store, run, read_tree_bytes(runs_dir / run))
        store.commit()


def prune_unknown(
    store: Store, runs_dir: Path, now_s: float, pruned: Pruned, *, dry_run: bool
) -> None:
    for path in find_unknown(store, runs_dir, now_s - UNKNOWN_FOR_S):
        size = read_tree_bytes(path)
        pruned.unknown += 1
        if dry_run:
            pruned.freed_bytes += size
        else:
            remove_tree(path)
            pruned.count(path, size)


def find_unknown(store: Store, runs_dir: Path, before_s: float) -> Iterator[Path]:
    if not runs_dir.is_dir():
        return
    with os.scandir(runs_dir) as entries:
        for entry in entries:
            if (
                entry.is_dir(follow_symlinks=False)
                and not has_directory(store, entry.name)
                and newest_change_s(entry.path) < before_s
            ):
                yield Path(entry.path)


def newest_change_s(path: str) -> float:
    """Of the directory and of its files: a run that prints changes the files only."""
    try:
        with os.scandir(path) as entries:
            files = [entry.stat(follow_symlinks=False).st_mtime for entry in entries]
        return max([os.lstat(path).st_mtime, *files])
    except OSError:  # another process is removing it, or we lack permission: leave it alone
        return float("inf")
