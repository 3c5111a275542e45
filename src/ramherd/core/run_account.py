"""What one run adds to the totals of its herd, besides what its end and its times say."""

from typing import NamedTuple


class RunAccount(NamedTuple):
    held_s: float = 0.0
    # Work that is done again by another run.
    redone_s: float = 0.0
    # Kills by the kernel: at the `memory_limit` of the job, and for any other cause.
    limit_kills: int = 0
    oom_kills: int = 0
