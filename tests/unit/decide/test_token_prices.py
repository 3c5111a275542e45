"""The cost of tokens, where an agent has not reported it."""

import pytest

from ramherd.decide.token_prices import (
    TokenCounts,
    estimate_left,
    listed_price,
    output_units,
    price_of,
)


def test_tokens_of_all_kinds_are_worth_so_many_input_tokens() -> None:
    """By the ratios of the price list."""
    assert TokenCounts(fresh=100).units == 100
    assert TokenCounts(written=100).units == 125
    assert TokenCounts(written_1h=100).units == 200
    assert TokenCounts(read=100).units == 10
    assert TokenCounts(output=100).units == 500
    assert TokenCounts(1, 4, 1, 10, 1).units == 1 + 5 + 2 + 1 + 5


def test_output_is_guessed_by_its_length() -> None:
    """Four letters per token, and each token is worth five input tokens."""
    assert output_units(8) == 10


def test_a_report_shows_the_price_of_a_unit() -> None:
    """41,000 tokens in and 500 out for 0.174 dollars; a report of zero shows no price."""
    assert price_of(TokenCounts(fresh=41_000, output=500).units, 0.174) == pytest.approx(4e-6)
    assert price_of(0, 0.1) is None
    assert price_of(100, 0) is None
    assert price_of(0.5, 0.5) == 1


@pytest.mark.parametrize(
    ("model", "usd"),
    [
        ("claude-opus-4-1-20250805", 15e-6),
        ("claude-opus-4-20250514", 15e-6),
        ("claude-opus-5-5", 4e-6),
        ("claude-opus-4-5", 5e-6),
        ("claude-sonnet-4-5", 3e-6),
        ("claude-haiku-4-5", 1e-6),
        ("claude-3-5-haiku-latest", 0.8e-6),
        ("gpt-5", None),
        ("", None),
    ],
)
def test_some_models_are_listed(model: str, usd: float | None) -> None:
    """The longest matching name; other models have no price."""
    assert listed_price(model) == (None if usd is None else pytest.approx(usd, rel=1e-9))


def test_what_is_reported_later_replaces_an_estimate() -> None:
    """A small remainder is the error of the estimate, not a cost."""
    assert estimate_left(1.0, 0.0) == 1.0
    assert estimate_left(1.0, 0.4) == 0.6
    assert estimate_left(1.0, 0.96) == 0.0
    assert estimate_left(20.0, 19.0) == 0.0
    assert estimate_left(1.0, 0.94) == pytest.approx(0.06)
    assert estimate_left(1.0, 2.0) == 0.0
    assert estimate_left(0.0, 0.0) == 0.0
