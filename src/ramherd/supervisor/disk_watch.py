"""Watches the disk of the state directory: logs stay within `log_total`, and a full disk releases
the ballast, so that the store can be written.

Measuring and removing files takes a while, so both are done in a thread with a connection of its
own. The keeper holds the logs to the growth that is chosen here, however fast runs print.
"""

import threading
import time
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, SimpleQueue

from ramherd.act.ballast import set_ballast
from ramherd.act.executor import Executor
from ramherd.core.errors import StoreError, StoreUnavailable
from ramherd.core.model import Reason
from ramherd.core.state_disk import DiskState, LogUsage
from ramherd.decide.disk_space import (
    choose_kept_output,
    choose_log_growth,
    explain_ballast,
    explain_full_disk,
    explain_removed_output,
    explain_smaller_logs,
    next_ballast_bytes,
)
from ramherd.decide.pruning import PruneRule
from ramherd.decide.start_pause import Cause
from ramherd.measure.disk_usage import read_disk, read_file_bytes
from ramherd.store.connect import NAME, open_store, open_store_for_runs
from ramherd.store.logs import read_growing_runs, read_logs_bytes
from ramherd.store.protocol import Store
from ramherd.supervisor.event_log import EventLog
from ramherd.supervisor.prune import measure_new, prune
from ramherd.supervisor.start_gate import StartGate

EVERY_S = 1.0
# Measuring takes at most this share of the time: a store of 100,000 runs is read less often.
BUSY_SHARE = 0.02
# The end does not wait for a thread that removes a large tree.
CLOSE_S = 2.0


@dataclass(frozen=True, slots=True)
class DiskReport:
    """What one measurement found and changed."""

    disk: DiskState
    # None if the store could not be read.
    growth_bytes: int | None = None
    # (kind, reason) of each event.
    events: tuple[tuple[str, Reason], ...] = ()


@dataclass
class DiskWatch:
    state: Path
    total_bytes: int
    executor: Executor
    events: EventLog
    gate: StartGate
    _reports: "SimpleQueue[DiskReport]" = field(default_factory=SimpleQueue)
    _stopping: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None
    _begun_s: float = 0.0
    # Runs have been live since the last measurement.
    _has_run: bool = True
    _is_short: bool = False

    def begin(self, at_s: float, store: Store) -> None:
        """Called before the first run, so that no run prints without a limit."""
        self._begun_s = at_s
        self._apply(self._measure(store))

    def receive(self, at_s: float) -> None:
        """Called once a tick. The thread starts after one second: most herds end before that."""
        self._has_run = self._has_run or bool(self.executor.runs)
        if self._thread is None and at_s - self._begun_s >= EVERY_S:
            self._thread = threading.Thread(target=self._watch, daemon=True)
            self._thread.start()
        with suppress(Empty):
            while True:
                self._apply(self._reports.get_nowait())

    def close(self) -> None:
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(CLOSE_S)

    def _apply(self, report: DiskReport) -> None:
        if report.growth_bytes is not None:
            self.executor.set_log_growth(report.growth_bytes)
        for kind, reason in report.events:
            self.events.emit_herd(kind, reason)
        full = explain_full_disk(report.disk, str(self.state)) if report.disk.is_full else None
        self.gate.set(Cause.DISK, full)

    def _watch(self) -> None:
        took_s = 0.0
        while not self._stopping.wait(max(EVERY_S, took_s / BUSY_SHARE)):
            began_s = time.thread_time()
            with suppress(OSError):  # the directory is gone: the loop handles that
                self._reports.put(self._measure())
            took_s = time.thread_time() - began_s

    def _measure(self, store: Store | None = None) -> DiskReport:
        """While the store is locked or its disk is full, logs keep their last limit."""
        disk, events = balance(self.state)
        growth_bytes = None
        if self._has_run:
            with suppress(StoreError):
                usage, removed = self._limit_logs(store)
                growth_bytes = choose_log_growth(usage, self.total_bytes, disk)
                events += removed + self._explain_short(usage)
                self._has_run = False
        return DiskReport(disk, growth_bytes, tuple(events))

    def _limit_logs(self, store: Store | None) -> tuple[LogUsage, list[tuple[str, Reason]]]:
        if store is not None:
            return limit_logs(store, self.state / "runs", self.total_bytes)
        if not (self.state / NAME).exists():  # the loop notices that, and restores the store
            raise StoreUnavailable(f"there is no store in {self.state}")
        with closing(open_store(self.state)) as own:
            return limit_logs(own, self.state / "runs", self.total_bytes)

    def _explain_short(self, usage: LogUsage) -> list[tuple[str, Reason]]:
        """Reports once that the logs of live runs begin to get smaller."""
        left_bytes = self.total_bytes - usage.used_bytes
        was_short, self._is_short = self._is_short, left_bytes < self.total_bytes >> 6
        if was_short or not self._is_short:
            return []
        return [("logs_smaller", explain_smaller_logs(usage, self.total_bytes))]


def balance(state: Path) -> tuple[DiskState, list[tuple[str, Reason]]]:
    """Allocates the ballast, or releases it on a full disk."""
    disk = read_disk(state)
    size = next_ballast_bytes(disk)
    if size == disk.held_bytes or not set_ballast(state, size):
        return disk, []
    now = read_disk(state)
    if size and not now.held_bytes:  # a file system that does not count the bytes of a file
        return DiskState(now.free_bytes), []
    if disk.is_full == now.is_full:  # the first ballast, or a larger one
        return now, []
    kind = "ballast_released" if now.is_full else "ballast_restored"
    return now, [(kind, explain_ballast(disk, str(state)))]


def limit_logs(
    store: Store, runs_dir: Path, total_bytes: int
) -> tuple[LogUsage, list[tuple[str, Reason]]]:
    """Removes the output of the oldest finished runs if live runs need the space."""
    measure_new(store, runs_dir)
    usage = read_log_usage(store, runs_dir)
    keep_bytes = choose_kept_output(usage, total_bytes)
    if keep_bytes is None:
        return usage, []
    pruned = prune(store, runs_dir, PruneRule(keep_bytes))
    removed = explain_removed_output(pruned.runs, pruned.freed_bytes, total_bytes)
    return read_log_usage(store, runs_dir), [("logs_removed", removed)] if pruned.runs else []


def read_log_usage(store: Store, runs_dir: Path) -> LogUsage:
    growing = read_growing_runs(store)
    live_bytes = sum(
        read_file_bytes(f"{runs_dir}/{run}/{name}")
        for run, _owner in growing
        for name in ("out", "err")
    )
    writers = len({owner for _run, owner in growing})
    return LogUsage(read_logs_bytes(store), live_bytes, max(writers, 1))


def open_store_or_release(state: Path) -> Store:
    """Opens the store; if a full disk prevents that, releases the ballast and tries again."""
    try:
        return open_store_for_runs(state)
    except StoreUnavailable:
        disk = read_disk(state)
        if not disk.held_bytes or next_ballast_bytes(disk) or not set_ballast(state, 0):
            raise
        return open_store_for_runs(state)
