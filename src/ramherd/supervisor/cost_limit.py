"""The cost of each herd's agents, and the limit for all of them together. Agents report their cost
only at their end, so each run gets a share of the limit.
"""

import math
from collections.abc import Callable, Iterable

from ramherd.core.model import Reason
from ramherd.decide.costs import MoneyLeft, explain_left, find_costly_herds

# No CLI accepts a limit of zero.
LEAST_USD = 1e-6
# While other runs may leave money, no job starts with less than this part of an even share.
SMALL = 0.25


class CostLimit:
    """Each run gets an even share of the money that is left, divided among the jobs that are still
    to come. The money spent and the shares of live runs together never exceed the limit.
    """

    def __init__(self, limit_usd: float, jobs: Iterable[str], spent_usd: float = 0.0) -> None:
        self.spent_usd = spent_usd
        self.limit_usd = limit_usd
        self._open = set(jobs)
        self._even_usd = limit_usd / max(len(self._open), 1)
        # Shares of the jobs that run, and of those that were stopped before they reported a cost.
        self._shares: dict[str, float] = {}
        self._unreported: dict[str, float] = {}
        # The cost of another reply, for each job that has run.
        self._replies: dict[str, float] = {}

    def share_usd(self) -> float:
        promised = sum(self._shares.values()) + sum(self._unreported.values())
        left = self.limit_usd - self.spent_usd - promised
        # Counted, not subtracted as sets: this runs for each job at the head of the queue.
        waiting = len(self._open) - sum(job in self._open for job in self._shares)
        share = left / max(waiting, 1)
        # Rounded as it is written on a command line.
        return max(math.floor(share / LEAST_USD + 1e-6) * LEAST_USD, LEAST_USD)

    def may_start(self, job: str) -> bool:
        """A job starts with a small share only when no live run could leave more."""
        if job not in self._open or not self._shares:
            return True
        return self.share_usd() >= SMALL * self._even_usd

    def set_share(self, job: str, usd: float) -> None:
        self._shares[job] = usd

    def end_run(self, job: str, *, reported: bool, reply_usd: float = 0.0) -> None:
        """`reported`: the cost of all runs of the job was reported or estimated. Another reply
        would cost `reply_usd`.
        """
        self._replies[job] = reply_usd
        share, before = self._shares.pop(job, 0.0), self._unreported.pop(job, 0.0)
        if not reported:
            self._unreported[job] = before + share

    def withdraw_run(self, job: str) -> None:
        """The run never began, and cost nothing."""
        self._shares.pop(job, None)

    def end_job(self, job: str) -> None:
        self._open.discard(job)

    @property
    def money(self) -> MoneyLeft | None:
        """For the cheapest reply that any job of the herd may need next. None while jobs run,
        because these may leave part of their shares, and if a job has not begun.
        """
        if self._shares or not self._open or not self._open <= self._replies.keys():
            return None
        reply_usd = min(self._replies[job] for job in self._open)
        return MoneyLeft("the herd", self.spent_usd, self.limit_usd, reply_usd)


class HerdCosts:
    """`read` returns the limit of a herd that is not loaded yet; None if the herd has none."""

    def __init__(self, read: Callable[[str], CostLimit | None]) -> None:
        self._read = read
        self._limits: dict[str, CostLimit | None] = {}
        # Herds that have reached their cost limit: none of their jobs starts any more.
        self.closed: set[str] = set()

    def __getitem__(self, herd: str) -> CostLimit | None:
        if herd not in self._limits:
            self._limits[herd] = self._read(herd)
        return self._limits[herd]

    def is_closed(self, herd: str) -> bool:
        limit = self[herd]
        return herd in self.closed or (limit is not None and limit.spent_usd >= limit.limit_usd)

    def close(self, live_usd: dict[str, float]) -> dict[str, Reason]:
        """The herds to end, each with the reason. `live_usd` is the cost of their live runs."""
        limits = {herd: limit for herd in live_usd if (limit := self[herd]) is not None}
        over = find_costly_herds(
            {herd: limit.spent_usd + live_usd[herd] for herd, limit in limits.items()},
            {herd: limit.limit_usd for herd, limit in limits.items()},
        )
        for herd, limit in limits.items():
            if (money := limit.money) is not None and money.is_spent:
                over.setdefault(herd, explain_left(money))
        self.closed |= over.keys()
        return over

    def forget_others(self, herds: Iterable[str]) -> None:
        """Limits that are not kept are read again when needed."""
        kept = set(herds)
        self._limits = {herd: limit for herd, limit in self._limits.items() if herd in kept}
        self.closed &= kept
