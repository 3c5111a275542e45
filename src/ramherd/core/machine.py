"""The machine's memory, as decisions use it."""

from typing import NamedTuple


class Limit(NamedTuple):
    """A memory limit of a cgroup that contains us, the memory used within it without page cache,
    and the part of that used by the runs of other ramherds.
    """

    limit_bytes: int
    used_bytes: int
    herds_used_bytes: int = 0


class Machine(NamedTuple):
    """The machine's memory, and the limits of the cgroups that contain us."""

    total_bytes: int
    available_bytes: int
    limits: tuple[Limit, ...] = ()
    # Memory used by the runs of all other ramherds.
    herds_used_bytes: int = 0

    @property
    def most_bytes(self) -> int:
        """RAM, or the smallest limit if it is lower."""
        return min([self.total_bytes, *(limit.limit_bytes for limit in self.limits)])

    @property
    def free_bytes(self) -> int:
        """Memory that is available on the machine and within each limit."""
        free = [limit.limit_bytes - limit.used_bytes for limit in self.limits]
        return max(min([self.available_bytes, *free]), 0)
