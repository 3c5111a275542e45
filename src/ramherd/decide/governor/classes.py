"""The prediction for the next run of a class from past runs, robust against outliers, and the prior
of a program that has not run yet.

A class is (agent, project, label). Few runs change the prior little, and an outlier never changes
it much: each value is clipped to the middle range of the seen values before it is averaged.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from ramherd.core.memory import MB, PRIOR, Estimate

# Claude's prior is from published runs. The others' base is the memory (PSS) of their process trees
# while they wait for the API (1 to 3 runs each: 158, 323, 512 and 393 MiB). They were not measured
# at work, so spread and peak are Claude's, slightly more for the larger ones.
PRIORS = {
    "claude": PRIOR,
    "codex": Estimate(base_bytes=165 * MB, sd_bytes=110 * MB, peak_bytes=260 * MB),
    "gemini": Estimate(base_bytes=340 * MB, sd_bytes=130 * MB, peak_bytes=480 * MB),
    "opencode": Estimate(base_bytes=540 * MB, sd_bytes=150 * MB, peak_bytes=700 * MB),
    "qwen": Estimate(base_bytes=410 * MB, sd_bytes=130 * MB, peak_bytes=540 * MB),
}
# Projects change: older runs predict the next one less well.
KEEP_RUNS = 64
# The prior counts as this many runs: after a handful of runs a class relies on its own.
PRIOR_RUNS = 5.0
# The quantiles to which values are clipped.
CLIP = (0.1, 0.9)
# A prediction covers a run whose mean is within two standard deviations of the base.
COVERED_SD = 2.0


@dataclass(frozen=True, slots=True)
class RunSummary:
    """One run, measured once a second."""

    mean_bytes: int
    sd_bytes: int
    peak_bytes: int
    duration_s: float


@dataclass(frozen=True, slots=True)
class ClassRecord:
    """The data of a class, and how often its prediction was right."""

    recent: tuple[RunSummary, ...] = ()
    runs: int = 0
    covered: int = 0
    prior: Estimate = field(default=PRIOR)

    @property
    def coverage(self) -> float | None:
        return self.covered / self.runs if self.runs else None


def learn(record: ClassRecord, summary: RunSummary) -> ClassRecord:
    """The prediction is checked against the run before it learns from the run."""
    known = estimate(record)
    reach = COVERED_SD * known.sd_bytes
    return replace(
        record,
        recent=(*record.recent, summary)[-KEEP_RUNS:],
        runs=record.runs + 1,
        covered=record.covered + (abs(summary.mean_bytes - known.base_bytes) <= reach),
    )


def estimate(record: ClassRecord) -> Estimate:
    recent, prior = record.recent, record.prior
    if not recent:
        return prior
    means = clipped([run.mean_bytes for run in recent])
    sds = clipped([run.sd_bytes for run in recent])
    # Weighted by duration: at a random moment, long runs are more likely to be running.
    weights = clipped([max(run.duration_s, 1.0) for run in recent])
    scale = len(recent) / sum(weights)
    weights = [weight * scale for weight in weights]
    base = mixed(prior.base_bytes, means, weights)
    spread = [sd**2 + (mean - base) ** 2 for sd, mean in zip(sds, means, strict=True)]
    return Estimate(
        base_bytes=int(base),
        sd_bytes=int(math.sqrt(mixed(prior.sd_bytes**2, spread, weights))),
        peak_bytes=int(quantile(sorted(run.peak_bytes for run in recent), 0.9)),
        duration_s=quantile(sorted(run.duration_s for run in recent), 0.5),
        runs=record.runs,
        prior_share=PRIOR_RUNS / (PRIOR_RUNS + len(recent)),
    )


def mixed(prior: float, values: Sequence[float], weights: Sequence[float]) -> float:
    total = sum(value * weight for value, weight in zip(values, weights, strict=True))
    return (prior * PRIOR_RUNS + total) / (PRIOR_RUNS + sum(weights))


def clipped(values: Sequence[float]) -> list[float]:
    ordered = sorted(values)
    low, high = (quantile(ordered, share) for share in CLIP)
    return [min(max(value, low), high) for value in values]


def quantile(ordered: Sequence[float], share: float) -> float:
    """Linear interpolation between the two nearest values of a sorted list."""
    at = share * (len(ordered) - 1)
    below = int(at)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (at - below)


def prior_of(agent: str) -> Estimate:
    """An unknown command gets the prior that was measured with the most runs."""
    return PRIORS.get(agent, PRIOR)
