"""What a unit of tokens costs (`decide/token_prices.py`), by agent and model, as reported."""

from collections.abc import Iterable
from typing import NamedTuple

from ramherd.decide.token_prices import listed_price, price_of


class ModelPrice(NamedTuple):
    agent: str
    model: str
    usd: float


class PriceBook:
    """Shared by all runs of a supervisor: what one run shows is known to the others at once."""

    def __init__(self) -> None:
        self._prices: dict[tuple[str, str], float] = {}
        self._learned: dict[tuple[str, str], float] = {}
        # Another one for each change.
        self.version = 0

    def load(self, prices: Iterable[tuple[str, str, float]]) -> None:
        """What was learned before: agent, model and price."""
        self._prices.update({(agent, model): usd for agent, model, usd in prices})
        self.version += 1

    def find(self, agent: str, model: str) -> float | None:
        """Seen in a report, else listed; None if it is not known."""
        seen = self._prices.get((agent, model))
        return listed_price(model) if seen is None else seen

    def learn(self, agent: str, model: str, units: float, cost_usd: float) -> None:
        price, key = price_of(units, cost_usd), (agent, model)
        if price is None or self._prices.get(key) == price:
            return
        self._prices[key] = self._learned[key] = price
        self.version += 1

    def pop_learned(self) -> list[ModelPrice]:
        """What is new since the last call, for the store."""
        learned, self._learned = self._learned, {}
        return [ModelPrice(*key, usd) for key, usd in learned.items()]
