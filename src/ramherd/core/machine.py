"""The machine's memory as decisions see it."""

from typing import NamedTuple


class Limit(NamedTuple):
    """A memory limit that we live under, what is used of it, without page cache, and how much
    of that by the runs of other ramherds.
    """

    limit_bytes: int
    used_bytes: int
    herds_used_bytes: int = 0


class Machine(NamedTuple):
    """The machine's memory, and the limits of the cgroups that we are in."""

    total_bytes: int
    available_bytes: int
    limits: tuple[Limit, ...] = ()
    # Used by the runs of all other ramherds.
    herds_used_bytes: int = 0

    @property
    def most_bytes(self) -> int:
        """RAM, or the smallest limit."""
        return min([self.total_bytes, *(limit.limit_bytes for limit in self.limits)])

    @property
    def free_bytes(self) -> int:
        """Available on the machine, and below each limit."""
        free = [limit.limit_bytes - limit.used_bytes for limit in self.limits]
        return max(min([self.available_bytes, *free]), 0)
