"""The price of a unit of tokens, by agent and model, as reported by agents."""

import time

from ramherd.store.protocol import Store
from ramherd.store.sql import classes as sql


def read_prices(store: Store) -> list[tuple[str, str, float]]:
    """Agent, model, and US dollars for a unit (`decide/token_prices.py`)."""
    return [(agent, model, usd) for agent, model, usd in store.read(sql.PRICES)]


def set_price(store: Store, agent: str, model: str, usd: float) -> None:
    """Takes effect with the store's next `commit`."""
    store.write(sql.SET_PRICE, (agent, model, usd, time.time()))


def read_job_costs(store: Store) -> list[tuple[str, float, int]]:
    """The agent, the mean cost of a job that is done, and the number of such jobs."""
    return [(agent, mean, jobs) for agent, mean, jobs in store.read(sql.JOB_COSTS)]
