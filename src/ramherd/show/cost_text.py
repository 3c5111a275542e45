"""What an agent has cost, in a word: "$0.12", or "~$0.12" where part of it is an estimate."""

from collections.abc import Mapping
from typing import Any


def render_cost(said: Mapping[str, Any]) -> str:
    """`said` has the keys of `core.agent_task.SAID`; "" where no cost is known, or none arose."""
    cost_usd = said.get("cost_usd")
    if not cost_usd:
        return ""
    return f"{'~' if said.get('cost_is_estimate') else ''}${cost_usd:.2f}"
