"""What is removed of finished runs, the oldest first: output by total size, everything by age."""

from collections.abc import Sequence
from dataclasses import dataclass

from ramherd.core.model import KeptLog


@dataclass(frozen=True, slots=True)
class PruneRule:
    """Keep at most this much output, and nothing of runs that ended before a time, if set."""

    keep_bytes: int
    before_s: float | None = None


def choose_excess(
    logs: Sequence[KeptLog], total_bytes: int, keep_bytes: int
) -> Sequence[KeptLog]:  # fmt: skip
    """`logs` are the oldest, in order. If one log may stay, all later ones may stay too."""
    for number, log in enumerate(logs):
        if total_bytes <= keep_bytes:
            return logs[:number]
        total_bytes -= log.bytes
    return logs
