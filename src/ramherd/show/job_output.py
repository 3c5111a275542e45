"""Prints the output of a herd's commands on our own standard output and error, while the herd runs.

A separate thread reads the files of the runs and writes: a slow reader of our output delays only
this thread. No output is held in memory.
"""

import errno
import os
import threading
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path

from ramherd.core.model import Event
from ramherd.core.units import format_size
from ramherd.measure.run_output import OutputCursor
from ramherd.show.event_lines import printable
from ramherd.show.output_lines import OutputLines, make_tag
from ramherd.system.wait import wait_writable

STREAMS = ("out", "err")
# How often the files of live runs are read.
EVERY_S = 0.1
STARTS = ("run_started", "run_adopted")
ENDS = ("job_done", "job_failed", "job_cancelled")

# Writes all of its argument, however long that takes.
Sink = Callable[[bytes], None]


# Each line as it comes; each job when it has ended; or each job when it and all jobs before it have
# ended.
LIVE, ENDED, GIVEN = "live", "ended", "given"


def write_all(fd: int, warn: Callable[[str], None]) -> Sink:
    """Writes to a descriptor. After a failure nothing more is written, and the herd continues.
    `warn` gets the cause, unless the reader has closed its end.
    """
    is_gone = False

    def write(data: bytes) -> None:
        nonlocal is_gone
        while data and not is_gone:
            try:
                data = data[os.write(fd, data) :]
            except BlockingIOError:
                wait_writable(fd, None)
            except OSError as error:
                is_gone = True
                if error.errno != errno.EPIPE:
                    logged = "ramherd logs has what commands print"
                    warn(f"ramherd: cannot write to descriptor {fd}: {error.strerror}; {logged}")

    return write


class CommandJob:
    """A job whose output is shown, and its progress."""

    def __init__(self, name: str, tag: bytes) -> None:
        self.name, self.tag = name, tag
        self.run = ""
        self.has_ended = self.is_printed = False
        # The streams of the job's run, while they are printed.
        self.streams: list[tuple[OutputCursor, OutputLines]] = []


class JobOutput:
    """Prints the output of the jobs in `jobs` (id to name, in their order).

    `warn` gets a line about missing bytes.
    """

    def __init__(
        self, runs_dir: Path, jobs: Mapping[str, str], sinks: Mapping[str, Sink], *,
        order: str, is_tagged: bool, is_terminal: bool, warn: Callable[[str], None],
    ) -> None:  # fmt: skip
        self._runs_dir, self._sinks, self._warn = runs_dir, sinks, warn
        self._order = order
        # Other text is printed between lines: a display on a terminal, or several live jobs.
        self._is_whole = order is LIVE and (is_terminal or len(jobs) > 1)
        widest = max(map(len, jobs.values()), default=0)
        self._jobs = {
            id_: CommandJob(
                name, make_tag(name, widest, is_terminal=is_terminal) if is_tagged else b""
            )
            for id_, name in jobs.items()
        }
        # In the given order: the jobs that are not printed yet.
        self._waiting = deque(self._jobs.values())
        self._live: list[CommandJob] = []
        self._events: deque[Event] = deque()
        self._news = threading.Event()
        self._is_closing = False
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def event(self, event: Event) -> None:
        """Takes an event of the herd, without waiting."""
        if event.job in self._jobs and event.kind in (*STARTS, *ENDS):
            self._events.append(event)
            self._news.set()

    def close(self) -> None:
        """Prints the rest. The herd has ended."""
        self._is_closing = True
        self._news.set()
        self._thread.join()

    def _work(self) -> None:
        try:
            self._print_all()
        except OSError as error:
            self._warn(f"ramherd: what commands print is not shown: {error}")

    def _print_all(self) -> None:
        while not self._is_closing or self._events:
            self._news.wait(EVERY_S if self._order is LIVE else None)
            self._news.clear()
            while self._events:
                self._receive(self._events.popleft())
            for job in self._live:
                self._print_new(job)
        for job in self._jobs.values():
            self._print_rest(job)

    def _receive(self, event: Event) -> None:
        job = self._jobs[event.job]
        if event.kind in ENDS:
            job.has_ended = True
            self._print_ended(job)
            return
        self._end_streams(job)
        job.run = event.run
        if self._order is LIVE:
            self._open_streams(job)

    def _print_ended(self, ended: CommandJob) -> None:
        """Prints the job; in the given order, on its turn, also ended jobs that waited for it."""
        if self._order is not GIVEN:
            self._print_rest(ended)
            return
        while self._waiting and self._waiting[0].has_ended:
            self._print_rest(self._waiting.popleft())

    def _print_rest(self, job: CommandJob) -> None:
        if job.is_printed:
            return
        job.is_printed = True
        if job.run and not job.streams:
            self._open_streams(job)
        self._end_streams(job)

    def _open_streams(self, job: CommandJob) -> None:
        run_dir = self._runs_dir / job.run
        if not run_dir.exists():
            self._warn(f"ramherd: {printable(job.name)}: its output is gone from {run_dir}")
            return
        self._live.append(job)
        job.streams = [
            (OutputCursor(run_dir, name), OutputLines(job.tag, is_whole=self._is_whole))
            for name in STREAMS
        ]

    def _print_new(self, job: CommandJob) -> None:
        for cursor, lines in job.streams:
            for piece in cursor.read_new():
                if isinstance(piece, int):
                    self._report_missing(job, piece, "dropped: logs are kept within a bound")
                else:
                    self._sinks[cursor.stream](lines.feed(piece))

    def _end_streams(self, job: CommandJob) -> None:
        self._print_new(job)
        for cursor, lines in job.streams:
            self._sinks[cursor.stream](lines.close())
            if cursor.lost_bytes:
                self._report_missing(job, cursor.lost_bytes, "not kept: the disk was full")
        if job.streams:
            job.streams = []
            self._live.remove(job)

    def _report_missing(self, job: CommandJob, size: int, why: str) -> None:
        self._warn(f"ramherd: {printable(job.name)}: {format_size(size)} of its output were {why}")
