"""What only ramherd can say: its own memory, and how long its holds lasted."""

import json
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Holds:
    """From the moment a run stands still to the moment it goes on."""

    count: int
    p50_s: float
    p95_s: float


@dataclass(frozen=True, slots=True)
class Told:
    supervisor_rss_bytes: int = 0
    holds: Holds | None = None


NOTHING = Told()


def parse_told(out: str) -> Told:
    """What `run --json` printed: nothing, if it was stopped."""
    if not out.strip():
        return NOTHING
    summary: dict[str, Any] = json.loads(out)
    holds = summary.get("holds") or {}
    return Told(
        supervisor_rss_bytes=summary["supervisor"]["rss_peak_bytes"],
        holds=Holds(**holds) if holds.get("count") else None,
    )
