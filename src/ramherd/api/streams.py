"""Bodies that go on: events as they happen, and what a job prints."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ramherd.core.model import JobState
from ramherd.measure.run_output import read_layout, read_output
from ramherd.store.events import read_event_page, read_event_range
from ramherd.store.herds import is_owned, read_job_state, read_newest_run
from ramherd.store.protocol import Store

# Proxies and clients take a silent connection for a dead one.
HEARTBEAT_S = 15.0
MOST_CHUNK_BYTES = 128 << 10


class EventStream:
    """Server-sent events from a number on. Where numbers are missing because they were trimmed
    there is a `gap`, so that nobody takes what he has for everything.
    """

    def __init__(self, store: Store, after: int, herd: str | None, job: str | None) -> None:
        self._store = store
        self._at = after
        self._herd, self._job = herd, job
        self._sent_s = time.monotonic()
        self._gap = self._find_gap()

    def _find_gap(self) -> bytes:
        first, last = read_event_range(self._store)
        self._at = min(self._at, last)
        if not first or self._at + 1 >= first or not self._at:
            return b""
        missing = {"after": self._at, "first": first}
        return b"event: gap\ndata: %b\n\n" % json.dumps(missing).encode()

    def next_part(self) -> bytes:
        events = read_event_page(self._store, self._at, herd=self._herd, job=self._job)
        news, self._gap = self._gap + b"".join(map(render_event, events)), b""
        if events:
            self._at = events[-1]["seq"]
        now = time.monotonic()
        if news:
            self._sent_s = now
        elif now - self._sent_s >= HEARTBEAT_S:
            self._sent_s = now
            return b": still here\n\n"
        return news


def render_event(event: dict[str, Any]) -> bytes:
    return b"id: %d\ndata: %b\n\n" % (event["seq"], json.dumps(event).encode())


class LogStream:
    """What a job printed from a byte on; to its end if followed, over all of its runs."""

    def __init__(
        self, store: Store, runs_dir: Path, job: str, stream: str, start: int,
        *, follow: bool, runtime: Path,
    ) -> None:  # fmt: skip
        self._store, self._runs_dir = store, runs_dir
        self._job, self._stream, self._follow = job, stream, follow
        self._runtime = runtime
        self._run: str | None = None
        self._at = start
        self._pieces: Iterator[bytes | int] = iter(())
        self._over = False

    def next_part(self) -> bytes | None:
        """A retried job goes on in another log, once this one is read to its end."""
        if chunk := self._next_chunk():
            return chunk
        if self._over:
            return None
        # Before the output is looked at: what is printed later belongs to a job that goes on.
        over = not self._follow or self._has_ended()
        newest = read_newest_run(self._store, self._job)
        self._run = self._run or newest
        if self._has_more():
            return self._next_chunk()
        if newest != self._run:
            self._run, self._at = newest, 0
            return self.next_part()
        self._over = over
        return None if over else b""

    def _next_chunk(self) -> bytes:
        chunk = b""
        for piece in self._pieces:
            chunk += dropped_line(piece) if isinstance(piece, int) else piece
            if len(chunk) >= MOST_CHUNK_BYTES:
                break
        return chunk

    def _has_ended(self) -> bool:
        state = read_job_state(self._store, self._job)
        is_final = state is None or JobState(state).is_final
        return is_final or not is_owned(self._store, self._job, self._runtime)

    def _has_more(self) -> bool:
        if self._run is None:
            return False
        run_dir = self._runs_dir / self._run
        layout = read_layout(run_dir, self._stream)
        start, self._at = self._at, max(self._at, layout.total)
        self._pieces = read_output(run_dir, self._stream, layout, start)
        return layout.total > start


def dropped_line(size: int) -> bytes:
    return f"\n[ramherd: {size} bytes dropped here]\n".encode()
