"""What goes of finished runs, the oldest first: their output by what all may hold together, and
everything about them by age.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from ramherd.core.model import KeptLog


@dataclass(frozen=True, slots=True)
class PruneRule:
    """Keep at most so much output; and nothing of runs that ended before a time, if one is set."""

    keep_bytes: int
    before_s: float | None = None


def choose_excess(
    logs: Sequence[KeptLog], total_bytes: int, keep_bytes: int
) -> Sequence[KeptLog]:  # fmt: skip
    """`logs` are the oldest, in order. What comes after one that may stay may stay as well."""
    for number, log in enumerate(logs):
        if total_bytes <= keep_bytes:
            return logs[:number]
        total_bytes -= log.bytes
    return logs
