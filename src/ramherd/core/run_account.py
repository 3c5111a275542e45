"""Numbers that one run adds to the totals of its herd, besides its end and its times."""

from typing import NamedTuple


class RunAccount(NamedTuple):
    held_s: float = 0.0
    # Work that another run does again.
    redone_s: float = 0.0
    # Kills by the kernel: at the job's `memory_limit`, and for any other cause.
    limit_kills: int = 0
    oom_kills: int = 0
