"""The census: all agents, servers and tools that were seen on this machine, and what they used.
`store/census.py` stores it, `ramherd watch` shows it.
"""

from typing import NamedTuple

from ramherd.core.procid import ProcId


class CensusRow(NamedTuple):
    """One process from its start to its end, or to the newest look. Times are epoch seconds."""

    process: ProcId
    software: str
    # agent, mcp, language, tool, ... (`strays/nouns.py`)
    kind: str
    # The pid of the agent that it belongs to; 0 if none is known.
    session: int
    # Of an agent: its working directory, and the command that continues its session there.
    cwd: str
    resume: str
    # The ramherd run that it belongs to; empty for a process that ramherd did not start.
    run: str
    verdict: str
    started_s: float
    seen_s: float
    ended_s: float | None
    memory_bytes: int
    highest_bytes: int
    highest_s: float
    # Bytes per hour; None if there is no certain trend.
    trend_bytes: float | None
    # (epoch seconds, bytes) since the first look.
    points: tuple[tuple[float, int], ...] = ()


class CensusTotal(NamedTuple):
    """One look: how many of each there were, and their memory. Strays are those left behind."""

    at_s: float
    agents: int
    servers: int
    tools: int
    strays: int
    memory_bytes: int
    stray_bytes: int
    used_percent: float


class Census(NamedTuple):
    rows: list[CensusRow]
    totals: list[CensusTotal]
