"""The shape of a coding agent's memory: the numbers behind `profiles.synthetic`.

The quantiles are those of 105 published runs (AgentCgroup, arXiv 2602.09345: Claude Code on
SWE-rebench tasks). Peak and duration are drawn separately: in the runs they are hardly correlated
(correlation of their logarithms 0.21). Only + - * / on floats: the C library's exp and log may
differ in the last bit, and one seed has to give the same bytes on each machine.
"""

from bisect import bisect_left
from random import Random

_Table = tuple[tuple[float, float], ...]
PEAK_MB: _Table = (
    (0, 199), (0.1, 244), (0.25, 270), (0.5, 296), (0.75, 353), (0.9, 436), (0.95, 682), (1, 2076),
)  # fmt: skip
DURATION_S: _Table = (
    (0, 51), (0.1, 103), (0.25, 184), (0.5, 324), (0.75, 526), (0.9, 660), (0.98, 1033), (1, 2544),
)  # fmt: skip
# Means of the second half of each run, when the agent has stopped growing.
LEVEL_MB: _Table = ((0, 178), (0.1, 199), (0.5, 220), (0.8, 239), (0.9, 262), (1, 385))
# Height and length of 642 bursts that were 25 MB or more above the running median.
BURST_MB: _Table = (
    (0, 25), (0.25, 36), (0.5, 51), (0.75, 71), (0.9, 119), (0.95, 167), (0.99, 1141), (1, 1702),
)  # fmt: skip
BURST_S: _Table = ((0, 1), (0.5, 1), (0.75, 3), (0.9, 7), (1, 20))
BURSTS_PER_S = 642 / 40_600

# Share of the level over the share of the run, from medians: agents grow early, then hardly.
GROWTH: _Table = ((0, 0.76), (0.1, 0.89), (0.2, 0.94), (0.4, 1.0), (1, 1.01))
# The agent's own start; tool calls come after it (medians: 193 MB at 8 s, 166 MB at 16 s).
_START_S = 10

# Multiples of these (golden ratio, roots of 2 and 3, modulo 1) fill 0 to 1 evenly. So even a herd
# of 50 has the quantiles above, while 50 independent draws often miss the rare large peaks.
_STEPS = (0.6180339887498949, 0.4142135623730950, 0.7320508075688772)


def run_mb(seed: int, index: int) -> list[float]:
    """Memory of one run, one value per second, the last one at its end."""
    offsets = Random(seed)
    peak_at, duration_at, level_at = ((offsets.random() + index * step) % 1 for step in _STEPS)
    peak_mb = interpolate(PEAK_MB, peak_at)
    duration_s = int(interpolate(DURATION_S, duration_at))
    level_mb = min(interpolate(LEVEL_MB, level_at), 0.92 * peak_mb)
    rng = Random(seed * 1_000_003 + index)
    calm = [_calm_mb(t, duration_s, level_mb) + 2 * rng.random() for t in range(duration_s + 1)]
    return _with_bursts(calm, peak_mb, rng)


def _calm_mb(t: int, duration_s: int, level_mb: float) -> float:
    """Between tool calls: 12 MB, most of it a second later, a fall after the start, slow growth."""
    if t == 0:
        return 12.0
    if t < _START_S:
        return 0.88 * level_mb
    return level_mb * interpolate(GROWTH, (t - _START_S) / duration_s)


def _with_bursts(calm: list[float], peak_mb: float, rng: Random) -> list[float]:
    mb = list(calm)
    for t in range(_START_S, len(calm)):
        if rng.random() < BURSTS_PER_S:
            _raise(
                mb, t, int(interpolate(BURST_S, rng.random())), interpolate(BURST_MB, rng.random())
            )
    # Room below the peak, so that the peak is one short burst and is reached exactly.
    mb = [min(value, 0.97 * peak_mb) for value in mb]
    top = _START_S + int(rng.random() * (len(mb) - _START_S - 4))
    for t in range(top, top + 1 + int(rng.random() * 3)):
        mb[t] = peak_mb
    return mb


def _raise(mb: list[float], start: int, length: int, height_mb: float) -> None:
    for t in range(start, min(start + length, len(mb))):
        mb[t] += height_mb


def interpolate(table: _Table, at: float) -> float:
    """Linear interpolation between the two nearest entries; `at` is a share from 0 to 1."""
    right = max(1, bisect_left(table, (at, 0.0)))
    (low, start), (high, end) = table[right - 1], table[right]
    return start + (end - start) * (at - low) / (high - low)
