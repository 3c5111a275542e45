"""Limits the growth of the logs of all runs until the supervisor has measured the disk again.

Used by the keeper, so it imports nothing. For growth over the limit, the largest log is cut at
once: it loses its oldest lines and keeps its newest. So the limit holds however fast runs print,
and no run loses its log to a run that prints more.
"""

from __future__ import annotations

TYPE_CHECKING = False  # the keeper avoids the 1 MB that `typing` costs
if TYPE_CHECKING:
    from ramherd.keeper.output_log import OutputLog

# Each stream of a live run may always keep this much: agents report their progress there.
LEAST_BYTES = 1 << 20
# Dropped in one step, because each drop costs a system call and a change of the file's map.
STEP_BYTES = 1 << 20


class LogQuota:
    def __init__(self) -> None:
        self._logs: list[OutputLog] = []
        # None until the supervisor has set a limit.
        self._left: int | None = None

    def add(self, log: OutputLog) -> None:
        self._logs.append(log)

    def remove(self, log: OutputLog) -> None:
        """The log belongs to a finished run now: the supervisor counts it."""
        if log in self._logs:
            self._logs.remove(log)

    def set_growth(self, size: int) -> None:
        """All logs together may grow by `size` from now on; if negative, they have to shrink."""
        self._left = size
        self._drop_excess()

    def may_grow(self, log: OutputLog) -> bool:
        """False for a log that could not free its space again."""
        is_free = self._left is None or self._left > 0
        return is_free or not log.is_fixed or log.held < LEAST_BYTES

    def count(self, grown: int) -> None:
        if self._left is not None and grown > 0:
            self._left -= grown
            self._drop_excess()

    def _drop_excess(self) -> None:
        """Drops at most half of the largest log at a time: then another log may be the largest."""
        while self._left is not None and self._left < 0:
            droppable = [log for log in self._logs if not log.is_fixed and log.held > LEAST_BYTES]
            if not droppable:
                return
            log = max(droppable, key=lambda log: log.held)
            size = min(max(-self._left, STEP_BYTES), max(log.held // 2, STEP_BYTES))
            dropped = log.drop(min(size, log.held - LEAST_BYTES))
            if not dropped and not log.is_fixed:  # less than a page is left to drop
                return
            self._left += dropped
