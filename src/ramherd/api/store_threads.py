"""The threads that use the store, so that the event loop never waits for a disk or a lock.

SQLite has one writer at a time, so one thread writes and three read: writes that wait for a lock
leave the readers free. Each thread has a connection of its own.
"""

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

from ramherd.store.connect import open_store
from ramherd.store.protocol import BUSY_S, Store

READERS = 3
# A client waits for 10 s. A write that was queued behind others has less time for the lock.
READ_S = 4.0
WRITE_S = 8.0
LEAST_S = 0.2

P = ParamSpec("P")
T = TypeVar("T")
Use = Callable[Concatenate[Store, P], T]


class StoreThreads:
    def __init__(self, state: Path) -> None:
        self._state = state
        self._readers = ThreadPoolExecutor(READERS, "reader")
        self._writer = ThreadPoolExecutor(1, "writer")
        self._opened = threading.local()

    async def read(self, use: Use[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._call(self._readers, READ_S, use, *args, **kwargs)

    async def write(self, use: Use[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._call(self._writer, WRITE_S, use, *args, **kwargs)

    async def call(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """For other work that may wait for a disk."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._readers, lambda: function(*args, **kwargs))

    def close(self) -> None:
        """Does not wait for a thread that waits for a lock: the process ends anyway."""
        for pool in (self._readers, self._writer):
            pool.shutdown(wait=False, cancel_futures=True)

    async def _call(
        self, pool: ThreadPoolExecutor, within_s: float, use: Use[P, T],
        *args: P.args, **kwargs: P.kwargs,
    ) -> T:  # fmt: skip
        until_s = time.monotonic() + within_s

        def call() -> T:
            left_s = until_s - time.monotonic()
            store = self._open()
            store.set_patience(max(min(left_s, BUSY_S), LEAST_S))
            try:
                return use(store, *args, **kwargs)
            finally:
                store.rollback()

        return await asyncio.get_running_loop().run_in_executor(pool, call)

    def _open(self) -> Store:
        """The first request of a thread opens the store; if that fails, the next one does."""
        if not hasattr(self._opened, "store"):
            self._opened.store = open_store(self._state)
        store: Store = self._opened.store
        return store
