"""Removing what finished runs left on disk, and their rows in the store.

Runs of a herd that is not over are never touched. The rows go first: what is interrupted in
between leaves a directory that the store does not know, which goes when it is a day old.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ramherd.act.cleanup import remove_tree
from ramherd.core.model import KeptLog
from ramherd.core.units import MIB
from ramherd.decide.pruning import PruneRule, choose_due
from ramherd.store.herds import is_run
from ramherd.store.logs import (
    drop_logs,
    read_logs_bytes,
    read_oldest_logs,
    read_unmeasured_runs,
    set_log_bytes,
)
from ramherd.store.protocol import Store
from ramherd.store.sqlite import read_oldest_over

# Some ms of the store's lock each, which herds wait for; and never more than this in memory.
BATCH = 100
UNKNOWN_FOR_S = 86400.0
# For the files beside the store: its shared memory takes 32 KiB, its log 4 MiB at most.
ROOM_BYTES = 5 * MIB


@dataclass
class Pruned:
    """What was removed, or would be."""

    runs: int = 0
    freed_bytes: int = 0
    left_bytes: int = 0
    # Directories that the store does not know.
    unknown: int = 0
    # Directories that could not be removed.
    stuck: int = 0

    def count(self, run_dir: Path, size: int) -> None:
        gone = not run_dir.exists()
        self.freed_bytes += size if gone else 0
        self.stuck += not gone


def prune(store: Store, runs_dir: Path, rule: PruneRule) -> Pruned:
    """What the rule does not keep, the oldest first."""
    measure_new(store, runs_dir)
    pruned, choose = Pruned(), partial(choose_due, rule=rule)
    while logs := drop_logs(store, choose, BATCH):
        for log in logs:
            remove_tree(runs_dir / log.run)
            pruned.count(runs_dir / log.run, log.bytes)
        pruned.runs += len(logs)
    pruned.left_bytes = read_logs_bytes(store)
    return pruned


def foresee(store: Store, runs_dir: Path, rule: PruneRule) -> Pruned:
    """What `prune` would do now."""
    measure_new(store, runs_dir)
    pruned = Pruned(left_bytes=read_logs_bytes(store))
    after: KeptLog | None = None
    while logs := choose_due(read_oldest_logs(store, BATCH, after), pruned.left_bytes, rule):
        size = sum(log.bytes for log in logs)
        pruned.runs += len(logs)
        pruned.freed_bytes += size
        pruned.left_bytes -= size
        after = logs[-1]
    return pruned


def make_room(db: Path, runs_dir: Path, rule: PruneRule) -> bool:
    """On a full disk SQLite cannot open the store, let alone delete from it: the first logs
    that the rule does not keep go without it, and their rows later.
    """
    if read_free_bytes(db.parent) >= ROOM_BYTES:
        return False
    total = size_of(runs_dir)
    for run, ended_s in read_oldest_over(db):
        log = KeptLog(run, ended_s, size_of(runs_dir / run))
        if not choose_due([log], total, rule):
            break
        remove_tree(runs_dir / run)
        total -= log.bytes
        if read_free_bytes(db.parent) >= ROOM_BYTES:
            return True
    return False


def read_free_bytes(path: Path) -> int:
    disk = os.statvfs(path)
    return disk.f_bavail * disk.f_frsize


def measure_new(store: Store, runs_dir: Path) -> None:
    """A finished run's files do not change any more: they are measured once."""
    while runs := read_unmeasured_runs(store, BATCH):
        for run in runs:
            set_log_bytes(store, run, size_of(runs_dir / run))
        store.commit()


def prune_unknown(
    store: Store, runs_dir: Path, now_s: float, pruned: Pruned, *, dry_run: bool
) -> None:
    for path in find_unknown(store, runs_dir, now_s - UNKNOWN_FOR_S):
        size = size_of(path)
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
                and not is_run(store, entry.name)
                and newest_change_s(entry.path) < before_s
            ):
                yield Path(entry.path)


def newest_change_s(path: str) -> float:
    """Of the directory and the files in it: a run that prints changes those only."""
    try:
        with os.scandir(path) as entries:
            files = [entry.stat(follow_symlinks=False).st_mtime for entry in entries]
        return max([os.lstat(path).st_mtime, *files])
    except OSError:  # another process removes it, or we may not: leave it alone
        return float("inf")


def size_of(path: Path) -> int:
    total = 0
    for root, _dirs, files in os.walk(path):
        for name in files:
            try:
                total += os.lstat(os.path.join(root, name)).st_size
            except FileNotFoundError:
                continue
    return total
