"""The supervisor's writes to the store: one short transaction at the end of each step.

A store that another process has locked, or whose disk is full, must not end runs. Failed writes are
kept and repeated with the next step; until then nothing new is started.
"""

import time
from collections.abc import Callable
from functools import partial
from typing import Any

from ramherd.core.errors import StoreDamaged, StoreError, StoreUnavailable
from ramherd.store.protocol import BUSY_S, Store

# The loop does not wait for a lock: the next step comes soon enough.
LOOP_PATIENCE_S = 0.01
RETRY_S = 0.05


class WriteBuffer:
    def __init__(self, store: Store) -> None:
        self.store = store
        # The run whose start is being recorded; writes added meanwhile can be withdrawn.
        self.start = ""
        self._waiting: list[tuple[str, Callable[[], Any]]] = []
        self.trouble = ""
        # Why the files of the store cannot be restored.
        self._loss = ""
        store.set_patience(LOOP_PATIENCE_S)

    @property
    def is_clear(self) -> bool:
        """Whether everything added is in the store."""
        return not self._waiting

    def add(self, write: Callable[..., Any], *values: Any, **named: Any) -> None:
        """`write(store, ...)` is called in the next commit."""
        self._waiting.append((self.start, partial(write, self.store, *values, **named)))

    def write_now(self, write: Callable[..., Any], *values: Any) -> None:
        """Before the loop runs: waits for another process's lock."""
        self.store.set_patience(BUSY_S)
        write(self.store, *values)
        self.store.commit()
        self.store.set_patience(LOOP_PATIENCE_S)

    def withdraw(self, start: str) -> None:
        """Drops the writes that are part of the start of this run."""
        self._waiting = [waiting for waiting in self._waiting if waiting[0] != start]

    def commit(self) -> bool:
        """Whether everything added so far is in the store."""
        if self._loss or not self._waiting:
            self.trouble = self._loss
            return not self.trouble
        try:
            for _start, write in self._waiting:
                write()
            self.store.commit()
        except (StoreUnavailable, StoreDamaged) as error:
            self.store.rollback()
            self.trouble = str(error)
            return False
        except StoreError:
            self.store.rollback()
            raise
        self._waiting.clear()
        self.trouble = ""
        return True

    def check_store(self) -> list[str]:
        """Restores deleted or damaged files of the store. Returns what was done, in words."""
        try:
            self.store.check()
            self._loss = ""
        except StoreError as error:
            self._loss = str(error)
        return self.store.pop_restored()

    def commit_last(self, for_s: float, is_told_to_end: Callable[[], bool]) -> str:
        """Tries for `for_s`, because no other step comes. Returns why writes are missing, or ""."""
        deadline = time.monotonic() + for_s
        try:
            while not self.commit():
                if time.monotonic() >= deadline or is_told_to_end():
                    return self.trouble
                time.sleep(RETRY_S)
        except StoreError as error:
            return str(error)
        return ""
