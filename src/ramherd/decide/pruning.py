"""Which logs of finished runs go: the oldest first, by age and by what all may hold together."""

from collections.abc import Sequence
from dataclasses import dataclass

from ramherd.core.model import KeptLog


@dataclass(frozen=True, slots=True)
class PruneRule:
    """Keep at most so much; and nothing that ended before a time, if one is given."""

    keep_bytes: int
    before_s: float | None = None


def choose_due(logs: Sequence[KeptLog], total_bytes: int, rule: PruneRule) -> Sequence[KeptLog]:
    """`logs` are the oldest, in order. What comes after one that may stay may stay as well."""
    for number, log in enumerate(logs):
        is_old = rule.before_s is not None and log.ended_s < rule.before_s
        if not is_old and total_bytes <= rule.keep_bytes:
            return logs[:number]
        total_bytes -= log.bytes
    return logs
