"""Random herds: groups of equal agents, each with a pool of runs to draw from.

The pool of a group has runs of its tables: those of its class in the store, and those of the
shipped prior, in the proportion in which the governor mixes them. A herd does not draw from the
whole pool but from a part of it, drawn again for each herd: the tables come from few runs, and the
next herd works in another project.
"""

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import NamedTuple

from ramherd.core.memory import Estimate
from ramherd.decide.governor.classes import PRIOR_RUNS, ClassRecord, estimate, prior_of
from ramherd.plan.published_shape import PUBLISHED, PUBLISHED_BASE_BYTES
from ramherd.plan.run_shapes import ShapeTables, draw_pool, history_tables, moved

POOL = 200
# A herd draws from half as many runs as the tables were made of. Predictions from half of the
# published runs for the other half were too sure of themselves without it (docs/benchmarks.md).
UNSURE = 2
LEAST_DRAWN = 4

Run = list[int]


class AgentGroup(NamedTuple):
    """Agents that are alike. `more_bytes` is what each has beside it: its MCP servers."""

    agent: str
    number: int
    record: ClassRecord
    # `--memory`, or the `memory` of a job: replaces the prior's level.
    memory_bytes: int | None = None
    more_bytes: int = 0
    leak_bytes_per_s: float = 0.0
    label: str = ""

    @property
    def history_runs(self) -> int:
        return len(self.record.recent)

    @property
    def history_share(self) -> float:
        """The share of the runs of the store, as in `classes.estimate`."""
        return self.history_runs / (self.history_runs + PRIOR_RUNS)

    @property
    def size(self) -> Estimate:
        """What the governor expects of one agent."""
        prior = replace(self.record.prior, base_bytes=self.prior_base_bytes)
        known = estimate(replace(self.record, prior=prior))
        return replace(known, base_bytes=known.base_bytes + self.more_bytes)

    @property
    def prior_base_bytes(self) -> int:
        return self.memory_bytes or self.record.prior.base_bytes

    @property
    def prior_tables(self) -> ShapeTables:
        return moved(PUBLISHED, self.prior_base_bytes, PUBLISHED_BASE_BYTES)

    def draw_pool(self, seed: int) -> "Pool":
        rng, runs = Random(seed), list[Run]()
        own = round(POOL * self.history_share)
        if own:
            runs += draw_pool(history_tables(self.record.recent, PUBLISHED), own, rng)
        if own < POOL:
            runs += draw_pool(self.prior_tables, POOL - own, rng)
        known = self.history_runs + PRIOR_RUNS if own else PUBLISHED.runs
        if self.more_bytes:
            runs = [[size + self.more_bytes for size in sizes] for sizes in runs]
        return Pool(self, runs, max(int(known / UNSURE), LEAST_DRAWN))


class Pool(NamedTuple):
    group: AgentGroup
    runs: list[Run]
    # The number of them that one herd draws from.
    drawn: int

    def draw(self, number: int, rng: Random) -> list[Run]:
        return rng.choices(rng.choices(self.runs, k=self.drawn), k=number)


def group_of(agent: str, number: int) -> AgentGroup:
    return AgentGroup(agent, number, ClassRecord(prior=prior_of(agent)))


def leaking(sizes: Sequence[int], leak_bytes_per_s: float) -> Run:
    return [size + int(leak_bytes_per_s * at_s) for at_s, size in enumerate(sizes)]
