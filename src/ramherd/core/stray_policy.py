"""The numbers that verdicts on strays and warnings compare with. `config/load.py` fills them.

Alone in its file: settings are read at every start, and the nouns of strays take 6 ms to make.
"""

from typing import NamedTuple


class StrayPolicy(NamedTuple):
    grace_s: float = 600.0
    # An agent waits for its user this long over lunch; a server unused for so long is lost.
    idle_s: float = 1800.0
    suspect_s: float = 4 * 3600.0
    warn_at_bytes: int = 3 << 29
    warn_subagents: int = 3
    warn_mcp: int = 10
    warn_node: int = 40
    warn_memory_percent: int = 80
