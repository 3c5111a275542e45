"""The cost of an agent, in a word: "$0.12", or "~$0.12" if part of it is an estimate."""

from collections.abc import Mapping
from typing import Any


def render_cost(said: Mapping[str, Any]) -> str:
    """`said` has the keys of `core.agent_task.SAID`. "" if no cost is known, which is not 0."""
    cost_usd = said.get("cost_usd")
    if cost_usd is None:
        return ""
    return render_usd(cost_usd, is_estimate=bool(said.get("cost_is_estimate")))


def render_usd(cost_usd: float, *, is_estimate: bool = False) -> str:
    text = f"${cost_usd:.2f}" if cost_usd >= 0.01 or cost_usd == 0 else f"${cost_usd:.2g}"
    return f"~{text}" if is_estimate else text
