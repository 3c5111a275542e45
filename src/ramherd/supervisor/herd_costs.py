"""What the agents of each herd have cost, and what they may cost together."""

from collections.abc import Callable, Iterable

from ramherd.core.model import Reason
from ramherd.decide.run_end import cost_reason
from ramherd.supervisor.cost_limit import Purse


class Costs:
    """`read` gives the purse of a herd that is not known here yet, None if it has no limit."""

    def __init__(self, read: Callable[[str], Purse | None]) -> None:
        self._read = read
        self._purses: dict[str, Purse | None] = {}
        # Herds that have cost as much as they may: nothing of them starts any more.
        self.closed: set[str] = set()

    def __getitem__(self, herd: str) -> Purse | None:
        if herd not in self._purses:
            self._purses[herd] = self._read(herd)
        return self._purses[herd]

    def is_closed(self, herd: str) -> bool:
        purse = self[herd]
        return herd in self.closed or (purse is not None and purse.spent_usd >= purse.limit_usd)

    def close(self, herd: str, live_usd: float) -> Reason | None:
        """The reason to end a herd, if there is one. `live_usd` is what its runs have cost."""
        purse = self[herd]
        if purse is None or purse.spent_usd + live_usd < purse.limit_usd:
            return None
        self.closed.add(herd)
        return cost_reason("the herd", purse.spent_usd + live_usd, purse.limit_usd)

    def keep(self, herds: Iterable[str]) -> None:
        """The rest is forgotten, and read again when it is asked for."""
        kept = set(herds)
        self._purses = {herd: purse for herd, purse in self._purses.items() if herd in kept}
        self.closed &= kept
