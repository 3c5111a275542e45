"""What tokens cost, where an agent has not reported it.

Tokens of all kinds are counted in units, each worth one plain input token: the kinds have fixed
ratios in the price lists of the vendors. So one report of a cost shows the price of a unit, and
that price holds for every other reply of the same model.
"""

from typing import NamedTuple

# Anthropic's price list: to write a cache for 5 minutes or an hour, to read it, and the output.
WRITTEN, WRITTEN_1H, READ, OUTPUT = 1.25, 2.0, 0.1, 5.0
# US dollars for a million input tokens, by the beginning of a model's name, the longest first: for
# models of which no cost was seen yet. claude-opus-5-5 as Claude Code 2.1.325 reckons, the others
# as Anthropic lists them.
LISTED = {
    "claude-3-5-haiku": 0.8,
    "claude-opus-5-5": 4.0,
    "claude-opus-4-1": 15.0,
    "claude-opus-4-20": 15.0,
    "claude-opus": 5.0,
    "claude-sonnet": 3.0,
    "claude-haiku": 1.0,
}
# What is left of an estimate once its true cost is known: the error of the estimate.
NOISE = 0.05
# Letters of English text or of code in one token; JSON around it makes it a little less.
LETTERS_IN_TOKEN = 4


class TokenCounts(NamedTuple):
    """`fresh` input came from no cache. `written` and `written_1h` went into one for 5 minutes,
    or for an hour; `read` came from one.
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
    """Of output that was printed, before its tokens are known."""
    return OUTPUT * letters / LETTERS_IN_TOKEN


def price_of(units: float, cost_usd: float) -> float | None:
    """Of one unit, as a report shows it; a report of nothing shows no price."""
    return cost_usd / units if units > 0 and cost_usd > 0 else None


def listed_price(model: str) -> float | None:
    """Of a model of which no cost was seen yet."""
    for name, usd in LISTED.items():
        if model.startswith(name):
            return usd / 1e6
    return None


def estimate_left(estimate_usd: float, reported_usd: float) -> float:
    """Of an estimate, when the agent has reported `reported_usd` of what was estimated."""
    left = estimate_usd - reported_usd
    return left if left > NOISE * estimate_usd else 0.0
