"""The cost of tokens, where an agent has not reported it.

Tokens of all kinds are counted in units, each worth one plain input token: the kinds have fixed
ratios in the price lists of the vendors. So one reported cost gives the price of a unit, and that
price holds for every other reply of the same model.
"""

from typing import NamedTuple

# Anthropic's price list: writing a cache for 5 minutes or an hour, reading it, and output.
WRITTEN, WRITTEN_1H, READ, OUTPUT = 1.25, 2.0, 0.1, 5.0
# US dollars for a million input tokens, by the beginning of a model's name, the longest first. Used
# for models without a reported cost. claude-opus-5-5 as Claude Code 2.1.325 calculates it, the
# others as listed by Anthropic.
LISTED = {
    "claude-3-5-haiku": 0.8,
    "claude-opus-5-5": 4.0,
    "claude-opus-4-1": 15.0,
    "claude-opus-4-20": 15.0,
    "claude-opus": 5.0,
    "claude-sonnet": 3.0,
    "claude-haiku": 1.0,
}
# The rest of an estimate once the true cost is known: the error of the estimate.
NOISE = 0.05
# Letters of English text or code per token; the JSON around the text lowers it slightly.
LETTERS_IN_TOKEN = 4


class TokenCounts(NamedTuple):
    """`fresh` input did not come from a cache. `written` and `written_1h` were written to a cache
    for 5 minutes or an hour; `read` came from a cache.
    """

    fresh: float = 0
    written: float = 0
    written_1h: float = 0
    read: float = 0
    output: float = 0

    @property
    def units(self) -> float:
        return (
            self.fresh
            + WRITTEN * self.written
            + WRITTEN_1H * self.written_1h
            + READ * self.read
            + OUTPUT * self.output
        )


def output_units(letters: int) -> float:
    """The units of printed output whose tokens are not known yet."""
    return OUTPUT * letters / LETTERS_IN_TOKEN


def price_of(units: float, cost_usd: float) -> float | None:
    """The price of one unit from a report; a report of zero shows no price."""
    return cost_usd / units if units > 0 and cost_usd > 0 else None


def listed_price(model: str) -> float | None:
    """The price for a model without a reported cost."""
    for name, usd in LISTED.items():
        if model.startswith(name):
            return usd / 1e6
    return None


def estimate_left(estimate_usd: float, reported_usd: float) -> float:
    """The remaining estimate after the agent has reported `reported_usd` of it."""
    left = estimate_usd - reported_usd
    return left if left > NOISE * estimate_usd else 0.0
