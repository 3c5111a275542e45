"""The supervisor's writes to the store: one short transaction at the end of each step.

A store that another process has locked, or whose disk is full, must not end runs. What could
not be written is kept and written with the next step; until then nothing new is started.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from ramherd.core.errors import StoreError, StoreUnavailable
from ramherd.store.protocol import Store

# The loop does not wait for a lock: the next step comes soon enough.
LOOP_PATIENCE_S = 0.01


class WriteBuffer:
    def __init__(self, store: Store) -> None:
        self.store = store
        self._waiting: list[Callable[[], Any]] = []
        self.trouble = ""
        store.set_patience(LOOP_PATIENCE_S)

    @property
    def is_clear(self) -> bool:
        """Whether everything added is in the store."""
        return not self._waiting

    def add(self, write: Callable[..., Any], *values: Any, **named: Any) -> None:
        """`write(store, ...)` is called in the next commit."""
        self._waiting.append(partial(write, self.store, *values, **named))

    def commit(self) -> bool:
        """Whether everything added so far is in the store."""
        if not self._waiting:
            return not self.trouble
        try:
            for write in self._waiting:
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
