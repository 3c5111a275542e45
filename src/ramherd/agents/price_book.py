"""The reported price of a unit of tokens (`decide/token_prices.py`), by agent and model."""

from collections.abc import Iterable
from typing import NamedTuple

from ramherd.decide.token_prices import listed_price, price_of


class ModelPrice(NamedTuple):
    agent: str
    model: str
    usd: float


class PriceBook:
    """Shared by all runs of a supervisor: a price from one run applies to the others at once."""

    def __init__(self) -> None:
        self._prices: dict[tuple[str, str], float] = {}
        self._learned: dict[tuple[str, str], float] = {}
        # Incremented with each change.
        self.version = 0

    def load(self, prices: Iterable[tuple[str, str, float]]) -> None:
        """Adds the prices learned before: agent, model and price."""
        self._prices.update({(agent, model): usd for agent, model, usd in prices})
        self.version += 1

    def find(self, agent: str, model: str) -> float | None:
        """The price seen in a report, else the listed price; None if there is none."""
        seen = self._prices.get((agent, model))
        return listed_price(model) if seen is None else seen

    def learn(self, agent: str, model: str, units: float, cost_usd: float) -> None:
        price, key = price_of(units, cost_usd), (agent, model)
        if price is None or self._prices.get(key) == price:
            return
        self._prices[key] = self._learned[key] = price
        self.version += 1

    def pop_learned(self) -> list[ModelPrice]:
        """The prices learned since the last call, for the store."""
        learned, self._learned = self._learned, {}
        return [ModelPrice(*key, usd) for key, usd in learned.items()]
