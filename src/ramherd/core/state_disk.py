"""The disk of the state directory, as it was measured."""

from ramherd.core.record import record


@record
class LogUsage:
    """What the output of all runs takes; `writers` ramherds have live runs."""

    finished_bytes: int
    live_bytes: int
    writers: int = 1

    @property
    def used_bytes(self) -> int:
        return self.finished_bytes + self.live_bytes


@record
class DiskState:
    """`ballast_bytes` is how large the ballast is meant to be, `held_bytes` what it holds: nothing
    after it was released.
    """

    free_bytes: int
    ballast_bytes: int = 0
    held_bytes: int = 0

    @property
    def is_full(self) -> bool:
        """Since the ballast was released, until there is room for it."""
        return self.ballast_bytes > 0 and self.held_bytes == 0
