"""The shipped prior of a coding agent's memory: tables fitted to published runs.

105 runs of Claude Code on SWE-rebench tasks (AgentCgroup, arXiv 2602.09345), fitted by
`run_shapes.fit_tables`; `tests/sim/test_plan_calibration.py` compares them where the recordings are
at hand. Other agents were measured only while they wait for their model, so that their level is
moved (`run_shapes.moved`), and their bursts are Claude's: tools are the same.
"""

from ramherd.core.memory import MB
from ramherd.plan.run_shapes import ShapeTables, Table

# Megabytes (10^6).
_LEVEL_MB: Table = (
    (0, 172.6), (0.05, 193.7), (0.1, 196.8), (0.25, 203.8), (0.5, 219.4), (0.75, 227.4),
    (0.85, 234.1), (0.9, 255), (0.92, 257.2), (0.94, 269.7), (0.96, 285.7), (0.98, 295.3),
    (1, 370.1),
)  # fmt: skip
# Of the highest burst of a run, above its level.
_TOP_MB: Table = (
    (0, 10.7), (0.05, 17.8), (0.1, 30.6), (0.25, 55.2), (0.5, 80.3), (0.75, 114.7),
    (0.85, 175.6), (0.9, 229.2), (0.92, 261.7), (0.94, 436), (0.96, 667.8), (0.98, 1145.3),
    (0.99, 1712.8), (1, 2055.4),
)  # fmt: skip
_DURATION_S: Table = (
    (0, 52), (0.05, 83), (0.1, 108), (0.25, 184), (0.5, 324), (0.75, 527), (0.85, 611),
    (0.9, 661), (0.92, 761), (0.94, 815), (0.96, 877), (0.98, 1023), (1, 2544),
)  # fmt: skip
_BURSTS_PER_S: Table = (
    (0, 0), (0.05, 0), (0.1, 0.0022), (0.25, 0.0056), (0.5, 0.0151), (0.75, 0.0261),
    (0.85, 0.0309), (0.9, 0.0362), (0.92, 0.0393), (0.94, 0.0442), (0.96, 0.0471),
    (0.98, 0.0576), (1, 0.0623),
)  # fmt: skip
# The mean height of a burst, as a share of the highest of its run: usual runs, and heavy ones.
_BURST_SHARE: Table = (
    (0, 0.179), (0.05, 0.304), (0.1, 0.363), (0.25, 0.462), (0.5, 0.639), (0.75, 0.826),
    (0.85, 0.919), (0.9, 0.968), (0.92, 0.987), (0.94, 1), (0.96, 1), (0.98, 1), (1, 1),
)  # fmt: skip
_HEAVY_SHARE: Table = (
    (0, 0.016), (0.05, 0.02), (0.1, 0.027), (0.25, 0.048), (0.5, 0.191), (0.75, 0.281),
    (0.85, 0.357), (0.9, 0.438), (0.92, 0.481), (0.94, 0.534), (0.96, 0.703), (0.98, 0.955),
    (1, 0.98),
)  # fmt: skip
_BURST_S: Table = (
    (0, 1), (0.05, 2), (0.1, 2), (0.25, 2), (0.5, 2), (0.75, 4), (0.85, 8), (0.9, 12),
    (0.92, 14.6), (0.94, 17), (0.96, 24), (0.98, 36.6), (1, 120),
)  # fmt: skip
# The start of a burst, as a share of the run: tests and builds come late.
_BURST_AT: Table = (
    (0, 0.015), (0.05, 0.167), (0.1, 0.23), (0.25, 0.396), (0.5, 0.633), (0.75, 0.811),
    (0.85, 0.869), (0.9, 0.902), (0.92, 0.912), (0.94, 0.923), (0.96, 0.945), (0.98, 0.964),
    (1, 0.993),
)  # fmt: skip
# The agent's own memory, as a share of its level, over the seconds since its start.
_GROWTH: Table = (
    (0, 0.051), (1, 0.813), (5, 0.86), (10, 0.816), (20, 0.808), (35, 0.877), (50, 0.928),
    (75, 0.968), (100, 0.991), (150, 0.997), (200, 0.996), (300, 0.979), (400, 0.994),
    (600, 0.984),
)  # fmt: skip


def _bytes(table_mb: Table) -> Table:
    return tuple((share, mb * MB) for share, mb in table_mb)


PUBLISHED = ShapeTables(
    level=_bytes(_LEVEL_MB),
    top=_bytes(_TOP_MB),
    duration_s=_DURATION_S,
    bursts_per_s=_BURSTS_PER_S,
    burst_share=_BURST_SHARE,
    heavy_share=_HEAVY_SHARE,
    burst_s=_BURST_S,
    burst_at=_BURST_AT,
    growth=_GROWTH,
    level_follows_top=0.15,
    duration_follows_level=0.37,
    bursts_follow_top=0.33,
    runs=105,
)
# The mean over time of a run of the tables, which `moved` compares with.
PUBLISHED_BASE_BYTES = 215 * MB
# Of one core, the mean over the same runs.
CPU_SHARE = 0.10
