"""Enforces grants on real pens: a run is frozen at its mark, and continues with a larger grant.

The mark is a little below the grant, so that a held run stays within it; the backstop, which is
the kernel's own limit, is a margin above. The governor decides how much each run gets, and
`decide/hold.py` which run is frozen.
"""

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from queue import Empty, SimpleQueue

from ramherd.act.pens import Pen
from ramherd.act.run import LiveRun
from ramherd.core.memory import CacheFull, Hold
from ramherd.core.policies import GrantPolicy
from ramherd.decide.hold import choose_hold, is_at_limit
from ramherd.system.wait import clear_event, open_event, set_event

# A run that reads and writes files crosses its mark by page cache again and again: its events are
# read at most this often. A run that grows by 1 GB/s meanwhile stays below the backstop.
MUTE_S = 0.05
LEAVING_BYTES = 64 << 20
ARMING_THREADS = 4
# Many runs have ended by then, and no run has grown to its first grant (60 ms at 3.3 GB/s).
SETTLED_S = 0.02


class GrantEnforcer:
    def __init__(self, policy: GrantPolicy) -> None:
        self.policy = policy
        self.worker = KernelWorker()

    def set_first_grant(self, run: LiveRun, grant_bytes: int) -> None:
        """Before any process is in the pen: there is nothing to measure yet."""
        self._set(run, grant_bytes)

    def set_grant(self, run: LiveRun, grant_bytes: int, at_s: float) -> bool:
        """Returns False and changes nothing if the run has grown past the new grant meanwhile."""
        before = run.grant.grant_bytes
        self._set(run, grant_bytes)
        run.measure()
        if grant_bytes < before and run.reading.used_bytes > grant_bytes:
            self._set(run, before)
            run.measure()
            self.enforce(run, at_s)
            return False
        if run.held_since_s is not None and grant_bytes > before:
            self._release(run, at_s)
        else:
            self.enforce(run, at_s)
        return True

    def _set(self, run: LiveRun, grant_bytes: int) -> None:
        mark_bytes = max(grant_bytes - self.policy.arm_below_bytes, 1)
        run.set_grant(grant_bytes, mark_bytes)
        if run.pen is not None:
            run.pen.set_grant(mark_bytes, grant_bytes + self.policy.margin_bytes)
            if run.pen.arms_slowly:
                self.worker.arm(run)

    def receive_armed(self, at_s: float) -> None:
        """New marks are armed. They cause no event for memory that is used already."""
        for run, event, mark in self.worker.receive_armed():
            if run.pen is None:  # it could not be started
                os.close(event)
                continue
            run.pen.set_event(event)
            run.measure()
            self.enforce(run, at_s)
            if mark != run.grant.mark_bytes:  # the older of two marks may arrive last
                self.worker.arm(run)

    def _release(self, run: LiveRun, at_s: float) -> None:
        """Thaws only if the new grant is enough for a moment; else the wait begins again."""
        if isinstance(self._choose(run), Hold):
            run.wait_again(at_s)
        else:
            run.release(at_s)

    def raise_backstop(self, run: LiveRun) -> None:
        """A run that was asked to end may need a little more memory to do so: at its backstop it
        would sleep in the kernel, and receive no signal but KILL.
        """
        if run.pen is not None and run.grant.grant_bytes:
            most = run.grant.grant_bytes + self.policy.margin_bytes + LEAVING_BYTES
            run.pen.set_grant(run.grant.mark_bytes, most)

    def receive_event(self, run: LiveRun, at_s: float) -> None:
        """The kernel reports that the run is at its mark, or was."""
        if run.pen is not None:
            run.pen.clear_event()
            run.measure()
            self.enforce(run, at_s)
            if run.grant.cache_full or is_at_limit(run.grant, run.job.memory_limit_bytes):
                run.mute_events(at_s + MUTE_S)

    def enforce(self, run: LiveRun, at_s: float) -> None:
        """Called after each measurement."""
        if run.held_since_s is not None or run.is_ending:
            return
        chosen = self._choose(run)
        if isinstance(chosen, Hold):
            run.hold(chosen.reason, at_s)
        else:
            run.set_cache_full(is_full=isinstance(chosen, CacheFull))

    def _choose(self, run: LiveRun) -> Hold | CacheFull | None:
        return choose_hold(run.reading, run.grant, run.job.memory_limit_bytes, self.policy)

    def trim(self, run: LiveRun) -> None:
        """In a thread: the kernel takes a while to drop page cache. The page cache keeps half of
        the memory between the use of the run and its mark.
        """
        run.set_cache_full(is_full=False)
        if run.pen is not None:
            to_bytes = (run.reading.used_bytes + run.grant.mark_bytes) // 2
            self.worker.trim(run.pen, to_bytes)

    def reclaim(self, run: LiveRun, most_bytes: int) -> None:
        """In a thread too."""
        if run.pen is not None:
            self.worker.reclaim(run.pen, most_bytes)

    def close(self) -> None:
        self.worker.close()


class KernelWorker:
    """Makes slow kernel calls in threads: to drop page cache, move cold memory to swap, and arm
    marks of cgroup v1.

    One thread trims, since that uses the processor. Arming only waits (16 ms for each mark), and
    many runs grow at a time, so several threads arm; a newer mark replaces one of the same run that
    is still in the queue.
    """

    def __init__(self) -> None:
        # Readable when a mark was armed; empty until the first mark.
        self.fds: list[int] = []
        self._arming: SimpleQueue[LiveRun | None] = SimpleQueue()
        self._queued: set[str] = set()
        self._armed: SimpleQueue[tuple[LiveRun, int, int]] = SimpleQueue()
        self._trims: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        # Cold memory is being moved to swap.
        self.is_reclaiming = False
        self._threads: list[threading.Thread] = []
        self._trimmer: threading.Thread | None = None

    def arm(self, run: LiveRun) -> None:
        if run.id in self._queued:
            return
        if not self.fds:
            self.fds.append(open_event())
        self._queued.add(run.id)
        self._arming.put(run)
        if len(self._threads) < min(ARMING_THREADS, self._arming.qsize()):
            self._threads.append(start_thread(self._arm_all))

    def _arm_all(self) -> None:
        while (run := self._arming.get()) is not None:
            early_s = min(run.started_s + SETTLED_S - time.monotonic(), SETTLED_S)
            if early_s > 0:
                time.sleep(early_s)
            self._queued.discard(run.id)
            if run.is_ending:
                continue
            mark = run.grant.mark_bytes
            event = run.pen.arm() if run.pen is not None else None
            if event is not None:
                self._armed.put((run, event, mark))
                set_event(self.fds[0])

    def receive_armed(self) -> Iterator[tuple[LiveRun, int, int]]:
        """The runs whose new marks are armed, with their events and marks."""
        for fd in self.fds:
            clear_event(fd)
        with suppress(Empty):
            while True:
                yield self._armed.get_nowait()

    def trim(self, pen: Pen, to_bytes: int) -> None:
        self._add_trim(lambda: pen.trim(to_bytes))

    def reclaim(self, pen: Pen, most_bytes: int) -> None:
        self.is_reclaiming = True
        self._add_trim(lambda: self._reclaim(pen, most_bytes))

    def _reclaim(self, pen: Pen, most_bytes: int) -> None:
        pen.reclaim(most_bytes)
        self.is_reclaiming = False

    def _add_trim(self, trim: Callable[[], None]) -> None:
        self._trims.put(trim)
        if self._trimmer is None:
            self._trimmer = start_thread(self._trim_all)

    def _trim_all(self) -> None:
        while (trim := self._trims.get()) is not None:
            trim()

    def close(self) -> None:
        for _ in self._threads:
            self._arming.put(None)
        if self._trimmer is not None:
            self._trims.put(None)
        for thread in (*self._threads, *filter(None, [self._trimmer])):
            thread.join()
        for _run, event, _mark in self.receive_armed():
            os.close(event)
        while self.fds:
            os.close(self.fds.pop())


def start_thread(target: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=target, daemon=True)
    thread.start()
    return thread
