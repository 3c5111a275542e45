"""One moment of the memory history: the machine, and each run of the service.
`decide/history_steps.py` chooses the moments that are kept, `store/memory_history.py` stores them.
"""

from typing import NamedTuple


class RunMemory(NamedTuple):
    job: str
    attempt: int
    used_bytes: int
    grant_bytes: int
    held: bool = False


class MemoryMoment(NamedTuple):
    """`at_s` is in epoch seconds; `used_bytes` and `granted_bytes` are of all runs together."""

    at_s: int
    total_bytes: int
    available_bytes: int
    budget_bytes: int
    used_bytes: int
    granted_bytes: int
    level: str
    runs: tuple[RunMemory, ...] = ()
