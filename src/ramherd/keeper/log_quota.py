"""How much the logs of all runs may grow until the supervisor has measured the disk again.

Used by the keeper, so os only. Growth that is not allowed is taken back at once from the largest
log: the oldest of what it holds goes, and its newest lines stay. So the bound holds however fast
runs print, and no run loses its log to another one that prints more.
"""

from __future__ import annotations

TYPE_CHECKING = False  # the keeper does without the 1 MB that `typing` costs
if TYPE_CHECKING:
    from ramherd.keeper.output_log import OutputLog

# Each stream of a live run may hold so much in any case: agents report what they do there.
LEAST_BYTES = 1 << 20
# Dropped at once, because each drop costs a system call and a change of the file's map.
STEP_BYTES = 1 << 20


class LogQuota:
    def __init__(self) -> None:
        self._logs: list[OutputLog] = []
        # None until the supervisor has set a limit.
        self._left: int | None = None

    def add(self, log: OutputLog) -> None:
        self._logs.append(log)

    def remove(self, log: OutputLog) -> None:
        """What it holds is a finished run's, and the supervisor's to count."""
        if log in self._logs:
            self._logs.remove(log)

    def set_growth(self, size: int) -> None:
        """All logs together may grow by so much from now on, or have to shrink by it."""
        self._left = size
        self._drop_excess()

    def may_grow(self, log: OutputLog) -> bool:
        """False for a log that could not make room again."""
        is_free = self._left is None or self._left > 0
        return is_free or not log.is_fixed or log.held < LEAST_BYTES

    def count(self, grown: int) -> None:
        if self._left is not None and grown > 0:
            self._left -= grown
            self._drop_excess()

    def _drop_excess(self) -> None:
        """Half of the largest log at most in one go: then another one may be the largest."""
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
