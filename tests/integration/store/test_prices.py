"""Prices that agents have shown, on a real store."""

from contextlib import closing
from pathlib import Path

from ramherd.store.connect import open_store
from ramherd.store.prices import read_prices, set_price


def test_the_last_price_of_a_model_is_kept(tmp_path: Path) -> None:
    """For each agent and model, also for the next ramherd."""
    with closing(open_store(tmp_path)) as store:
        assert read_prices(store) == []
        for usd in (5e-6, 4e-6):
            set_price(store, "claude", "opus", usd)
        set_price(store, "claude", "haiku", 1e-6)
        store.commit()
    with closing(open_store(tmp_path)) as store:
        assert sorted(read_prices(store)) == [("claude", "haiku", 1e-6), ("claude", "opus", 4e-6)]
