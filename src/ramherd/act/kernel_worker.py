"""What takes the kernel a while, in threads: dropping page cache, and arming marks of cgroup v1.

One thread trims, since that takes the processor. Arming only waits (16 ms for each mark), and
many runs grow at a time, so there are some threads for it; while one waits for its turn a newer
mark of the same run takes its place.
"""

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from queue import Empty, SimpleQueue

from ramherd.act.pens import Pen
from ramherd.act.run import LiveRun
from ramherd.system.wait import clear_event, open_event, set_event

ARMING_THREADS = 4
# Many a run is over by then, and no run has grown to its first grant (60 ms at 3.3 GB/s).
SETTLED_S = 0.02


class KernelWorker:
    def __init__(self) -> None:
        # Becomes readable when something was armed; there is none before the first time.
        self.fds: list[int] = []
        self._arming: SimpleQueue[LiveRun | None] = SimpleQueue()
        self._queued: set[str] = set()
        self._armed: SimpleQueue[tuple[LiveRun, int, int]] = SimpleQueue()
        self._trims: SimpleQueue[tuple[Pen, int] | None] = SimpleQueue()
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
            self._threads.append(start(self._arm_all))

    def _arm_all(self) -> None:
        while (run := self._arming.get()) is not None:
            time.sleep(min(max(run.started_s + SETTLED_S - time.monotonic(), 0.0), SETTLED_S))
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
        self._trims.put((pen, to_bytes))
        if self._trimmer is None:
            self._trimmer = start(self._trim_all)

    def _trim_all(self) -> None:
        while (trim := self._trims.get()) is not None:
            pen, to_bytes = trim
            pen.trim(to_bytes)

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


def start(target: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=target, daemon=True)
    thread.start()
    return thread
