"""What the agents of a herd may cost together, where they say what they cost at their end only."""

import math
from collections.abc import Iterable

# No CLI takes a limit of nothing.
LEAST_USD = 1e-6
# A part of an even share for which nobody starts as long as another may leave more.
SMALL = 0.25


class CostLimit:
    """Each run is told a share of what is left, even for all jobs that are still to come: what was
    spent and what those that live may spend is never above the limit.
    """

    def __init__(self, limit_usd: float, jobs: Iterable[str], spent_usd: float = 0.0) -> None:
        self.spent_usd = spent_usd
        self.limit_usd = limit_usd
        self._open = set(jobs)
        self._even_usd = limit_usd / max(len(self._open), 1)
        # Of the jobs that run; and of those that were stopped before they said what they cost.
        self._told: dict[str, float] = {}
        self._unsaid: dict[str, float] = {}

    def share_usd(self) -> float:
        promised = sum(self._told.values()) + sum(self._unsaid.values())
        left = self.limit_usd - self.spent_usd - promised
        share = left / max(len(self._open - self._told.keys()), 1)
        # As it is written on a command line.
        return max(math.floor(share / LEAST_USD + 1e-6) * LEAST_USD, LEAST_USD)

    def may_start(self, job: str) -> bool:
        """A small share is for when nobody runs who might leave more."""
        if job not in self._open or not self._told:
            return True
        return self.share_usd() >= SMALL * self._even_usd

    def tell(self, job: str, usd: float) -> None:
        self._told[job] = usd

    def end_run(self, job: str, *, said: bool) -> None:
        """`said`: what it says is of all its runs."""
        told, before = self._told.pop(job, 0.0), self._unsaid.pop(job, 0.0)
        if not said:
            self._unsaid[job] = before + told

    def end_job(self, job: str) -> None:
        self._open.discard(job)
