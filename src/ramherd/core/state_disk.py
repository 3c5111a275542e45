"""The measured state of the disk of the state directory."""

from ramherd.core.record import record


@record
class LogUsage:
    """Disk space used by the output of all runs; `writers` counts the ramherds with live runs."""

    finished_bytes: int
    live_bytes: int
    writers: int = 1

    @property
    def used_bytes(self) -> int:
        return self.finished_bytes + self.live_bytes


@record
class DiskState:
    """`ballast_bytes` is the intended size of the ballast, `held_bytes` its present size: 0 after
    it was released.
    """

    free_bytes: int
    ballast_bytes: int = 0
    held_bytes: int = 0

    @property
    def is_full(self) -> bool:
        """True from the release of the ballast until there is room for it again."""
        return self.ballast_bytes > 0 and self.held_bytes == 0
