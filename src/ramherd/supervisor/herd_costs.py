"""What the agents of each herd have cost, and what they may cost together."""

from collections.abc import Callable, Iterable

from ramherd.core.model import Reason
from ramherd.decide.run_end import cost_reason
from ramherd.supervisor.cost_limit import CostLimit


class HerdCosts:
    """`read` gives the cost_limit of a herd that is not known here yet, None if it has no limit."""

    def __init__(self, read: Callable[[str], CostLimit | None]) -> None:
        self._read = read
        self._purses: dict[str, CostLimit | None] = {}
        # Herds that have cost as much as they may: nothing of them starts any more.
        self.closed: set[str] = set()

    def __getitem__(self, herd: str) -> CostLimit | None:
        if herd not in self._purses:
            self._purses[herd] = self._read(herd)
        return self._purses[herd]

    def is_closed(self, herd: str) -> bool:
        cost_limit = self[herd]
        return herd in self.closed or (
            cost_limit is not None and cost_limit.spent_usd >= cost_limit.limit_usd
        )

    def close(self, herd: str, live_usd: float) -> Reason | None:
        """The reason to end a herd, if there is one. `live_usd` is what its runs have cost."""
        cost_limit = self[herd]
        if cost_limit is None or cost_limit.spent_usd + live_usd < cost_limit.limit_usd:
            return None
        self.closed.add(herd)
        return cost_reason("the herd", cost_limit.spent_usd + live_usd, cost_limit.limit_usd)

    def keep(self, herds: Iterable[str]) -> None:
        """The rest is forgotten, and read again when it is asked for."""
        kept = set(herds)
        self._purses = {
            herd: cost_limit for herd, cost_limit in self._purses.items() if herd in kept
        }
        self.closed &= kept
