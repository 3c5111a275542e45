"""The supervisor's writes to the store: one short transaction at the end of each step.

A store that another process has locked, or whose disk is full, must not end runs. What could
not be written is kept and written with the next step; until then nothing new is started.
"""

import time
from collections.abc import Callable
from functools import partial
from typing import Any

from ramherd.core.errors import StoreError, StoreUnavailable
from ramherd.store.protocol import Store

# The loop does not wait for a lock: the next step comes soon enough.
LOOP_PATIENCE_S = 0.01
RETRY_S = 0.05


class WriteBuffer:
    def __init__(self, store: Store) -> None:
        self.store = store
        # The run whose start is being recorded; what is added meanwhile can be withdrawn.
        self.start = ""
        self._waiting: list[tuple[str, Callable[[], Any]]] = []
        self.trouble = ""
        store.set_patience(LOOP_PATIENCE_S)

    @property
    def is_clear(self) -> bool:
        """Whether everything added is in the store."""
        return not self._waiting

    def add(self, write: Callable[..., Any], *values: Any, **named: Any) -> None:
        """`write(store, ...)` is called in the next commit."""
        self._waiting.append((self.start, partial(write, self.store, *values, **named)))

    def withdraw(self, start: str) -> None:
        """What is part of the start of this run is never written."""
        self._waiting = [waiting for waiting in self._waiting if waiting[0] != start]

    def commit(self) -> bool:
        """Whether everything added so far is in the store."""
        if not self._waiting:
            return not self.trouble
        try:
            for _start, write in self._waiting:
                write()
            self.store.commit()
        except StoreUnavailable as error:
            self.store.rollback()
            self.trouble = str(error)
            return False
        except StoreError:
            self.store.rollback()
            raise
        self._waiting.clear()
        self.trouble = ""
        return True

    def commit_last(self, for_s: float, is_told_to_end: Callable[[], bool]) -> str:
        """Tries for so long: no other step comes. Why not everything is in the store, or ""."""
        deadline = time.monotonic() + for_s
        try:
            while not self.commit():
                if time.monotonic() >= deadline or is_told_to_end():
                    return self.trouble
                time.sleep(RETRY_S)
        except StoreError as error:
            return str(error)
        return ""
