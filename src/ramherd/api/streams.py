"""Response bodies without a fixed end: events as they happen, and the output of a job."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from ramherd.api.request_head import HttpError
from ramherd.api.store_threads import StoreThreads
from ramherd.core.errors import StoreError
from ramherd.core.model import JobState
from ramherd.measure.run_output import read_layout, read_output
from ramherd.store.events import read_event_page, read_event_range
from ramherd.store.herds import is_owned, read_job_state, read_newest_run
from ramherd.store.protocol import Store

# Streams have their own limit: open streams keep no other request out.
MOST_STREAMS = 128
# How often the store is polled; a log that prints nothing is read less often.
EVERY_S = 0.2
SELDOM_S = 1.0
# Proxies and clients take a silent connection for a dead one.
HEARTBEAT_S = 15.0
HEARTBEAT = b": still here\n\n"
MOST_CHUNK_BYTES = 128 << 10
PAGE = 500


class Streams:
    """All open streams. One read of the store serves all streams that wait for events."""

    def __init__(self, threads: StoreThreads) -> None:
        self._threads = threads
        self._is_closing = False
        self._open = 0
        self._last = -1
        self._news = asyncio.Event()
        self._watch: asyncio.Task[None] | None = None

    def close(self) -> None:
        """Each stream ends at its next part."""
        self._is_closing = True
        self._news.set()

    def check_room(self) -> None:
        if self._open >= MOST_STREAMS:
            raise HttpError(429, f"{self._open} streams are open, which is the most")

    async def events(self, after: int, herd: str | None, job: str | None) -> AsyncIterator[bytes]:
        """Server-sent events from a number on. Where events were trimmed the client gets a `gap`,
        so that it does not take its events for all of them.
        """
        with self._counted():
            at, gap = after, b""
            with suppress(StoreError):
                at, gap = await self._threads.read(find_start, after)
            if gap:
                yield gap
            while not self._is_closing:
                self._watch = self._watch or asyncio.create_task(self._watch_events())
                news = self._news
                text, at, is_full = await self._read_page(at, herd, job)
                if text:
                    yield text
                if is_full or await is_set_within(news, HEARTBEAT_S):
                    continue
                yield HEARTBEAT

    async def _read_page(
        self, at: int, herd: str | None, job: str | None
    ) -> tuple[bytes, int, bool]:
        try:
            return await self._threads.read(render_page, at, herd, job)
        except StoreError:  # tried again with the next events
            return b"", at, False

    async def log(self, log: "LogReader") -> AsyncIterator[bytes]:
        pause_s = EVERY_S
        with self._counted():
            while not self._is_closing:
                part: bytes | None = b""
                try:
                    part = await self._threads.read(log.next_part)
                except StoreError:  # tried again
                    pass
                except OSError:  # `ramherd prune` has removed it
                    return
                if part is None:
                    return
                if part:
                    pause_s = EVERY_S
                    yield part
                else:
                    await asyncio.sleep(pause_s)
                    pause_s = min(pause_s * 2, SELDOM_S)

    @contextmanager
    def _counted(self) -> Iterator[None]:
        self._open += 1
        try:
            yield
        finally:
            self._open -= 1

    async def _watch_events(self) -> None:
        """While there are streams: wakes all of them when there are new events."""
        while self._open and not self._is_closing:
            with suppress(StoreError):  # tried again
                _first, last = await self._threads.read(read_event_range)
                if last != self._last:
                    self._last = last
                    self._news.set()
                    self._news = asyncio.Event()
            await asyncio.sleep(EVERY_S)
        self._watch = None


async def is_set_within(event: asyncio.Event, seconds: float) -> bool:
    try:
        await asyncio.wait_for(event.wait(), seconds)
    except TimeoutError:
        return False
    return True


def find_start(store: Store, after: int) -> tuple[int, bytes]:
    """The number to begin with, and the line about missing events."""
    first, last = read_event_range(store)
    at = min(after, last)
    if not first or at + 1 >= first or not at:
        return at, b""
    missing = {"after": at, "first": first}
    return at, b"event: gap\ndata: %b\n\n" % json.dumps(missing).encode()


def render_page(
    store: Store, after: int, herd: str | None, job: str | None
) -> tuple[bytes, int, bool]:
    """The next events, the number of the last, and whether there may be more."""
    events = read_event_page(store, after, herd=herd, job=job, most=PAGE)
    last = events[-1]["seq"] if events else after
    return b"".join(map(render_event, events)), last, len(events) == PAGE


def render_event(event: dict[str, Any]) -> bytes:
    return b"id: %d\ndata: %b\n\n" % (event["seq"], json.dumps(event).encode())


class LogReader:
    """The output of a job from a byte on; if followed, to its end, over all of its runs."""

    def __init__(
        self, runs_dir: Path, job: str, stream: str, start: int, *, follow: bool, runtime: Path
    ) -> None:
        self._runs_dir, self._runtime = runs_dir, runtime
        self._job, self._stream, self._follow = job, stream, follow
        self._run: str | None = None
        self._at = start
        self._pieces: Iterator[bytes | int] = iter(())
        self._over = False

    def next_part(self, store: Store) -> bytes | None:
        """b"" when there is nothing new, None after the last part. A retried job continues in
        another log, once this one is read to its end.
        """
        if chunk := self._next_chunk():
            return chunk
        if self._over:
            return None
        # Checked before the output is read: later output belongs to a job that goes on.
        over = not self._follow or self._has_ended(store)
        newest = read_newest_run(store, self._job)
        self._run = self._run or newest
        if self._has_more():
            return self._next_chunk()
        if newest != self._run:
            self._run, self._at = newest, 0
            return self.next_part(store)
        self._over = over
        return None if over else b""

    def _next_chunk(self) -> bytes:
        chunk = b""
        for piece in self._pieces:
            chunk += dropped_line(piece) if isinstance(piece, int) else piece
            if len(chunk) >= MOST_CHUNK_BYTES:
                break
        return chunk

    def _has_ended(self, store: Store) -> bool:
        state = read_job_state(store, self._job)
        is_final = state is None or JobState(state).is_final
        return is_final or not is_owned(store, self._job, self._runtime)

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
