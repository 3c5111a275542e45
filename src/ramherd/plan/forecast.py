"""Many random herds on the simulator's own engine: how many agents run at once, for how long, and
what happens without ramherd.

Seeds are fixed, and the number of draws depends on the size of the herd, never on the clock: the
same question gets the same answer. A herd above `MOST_SIMULATED` agents is simulated as a part of
it in the same part of the memory.
"""

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from statistics import fmean, median
from typing import NamedTuple

from ramherd.core.memory import Mode
from ramherd.core.policies import GrantPolicy, RecyclePolicy
from ramherd.decide.governor.classes import ClassRecord, estimate, quantile
from ramherd.plan.agent_groups import AgentGroup, Pool, Run, leaking
from ramherd.sim.application import Application
from ramherd.sim.course import Course
from ramherd.sim.result import SimCounters
from ramherd.sim.sim_jobs import SimJob
from ramherd.sim.unlimited import total_bytes_by_second
from ramherd.sim.world import level_ground, run_world

SEED = 1
MOST_SIMULATED = 100
# Herds with ramherd, each a whole simulation.
DRAWS = 6
# Herds without ramherd: sums only. At 300 the standard error of a risk of 50 % is 3 points.
MOST_ALONE, LEAST_ALONE, ALONE_WORK = 300, 60, 20_000
# Simulated agents x steps of one draw: 0.05 s.
WORK = 2_000
MOST_STEP_S = 15
# A tool call is open while a run is this much above its smallest neighbours.
CALL_SHARE = 1.125
# Agents reach their base within this time of the first start, and wait for nobody.
SETTLED_S = 20
POINTS = 100


class Site(NamedTuple):
    """The memory for agents on one host, and the rules."""

    budget_bytes: int
    # The kernel kills above this: without ramherd there is no budget.
    kill_bytes: int
    max_parallel: int | None = None
    recycle_at_bytes: int | None = RecyclePolicy().recycle_at_bytes


class HerdOutcome(NamedTuple):
    """One simulated herd."""

    at_once: float
    peak_at_once: int
    makespan_s: float
    unlimited_s: float
    preempted: int
    recycled: int
    failed: int
    used: tuple[int, ...]
    step_s: int


class Forecast(NamedTuple):
    agents: int
    at_once: float
    # Of the draws, the lowest and the highest.
    at_once_range: tuple[float, float]
    makespan_s: float
    slowdown: float
    preempted: float
    recycled: float
    # Jobs that need more than the whole budget.
    failed: float
    draws: int
    step_s: int
    # Memory over time: p10, p50 and p90 of the draws, in steps of `step_s`.
    band: tuple[tuple[float, float, float], ...]


class Alone(NamedTuple):
    """All agents at once, without ramherd."""

    risk: float
    peak_bytes: tuple[float, float, float]
    draws: int
    step_s: int
    median_by_step: tuple[float, ...]


def forecast(pools: Sequence[Pool], site: Site, draws: int = DRAWS) -> Forecast:
    number = sum(pool.group.number for pool in pools)
    parts = -(-number // MOST_SIMULATED)
    step_s = choose_step_s(pools, parts)
    found = [
        simulate_herd(pools, site, parts, step_s, Random(SEED * 1_000 + draw))
        for draw in range(draws)
    ]
    at_once = [min(one.at_once * parts, number) for one in found]
    return Forecast(
        agents=number,
        at_once=fmean(at_once),
        at_once_range=(min(at_once), max(at_once)),
        makespan_s=median(one.makespan_s for one in found),
        slowdown=max(median(one.makespan_s / one.unlimited_s for one in found), 1.0),
        preempted=fmean(one.preempted * parts for one in found),
        recycled=fmean(one.recycled * parts for one in found),
        failed=fmean(one.failed * parts for one in found),
        draws=draws,
        step_s=step_s,
        band=band_of([[used * parts for used in one.used] for one in found]),
    )


def choose_step_s(pools: Sequence[Pool], parts: int) -> int:
    """Coarse steps for large herds of long runs, a second for small ones."""
    agent_s = sum(
        pool.group.number * fmean(len(run) for run in pool.runs) / parts for pool in pools
    )
    shortest_s = min(fmean(len(run) for run in pool.runs) for pool in pools)
    return int(max(min(agent_s / WORK, shortest_s / 20, MOST_STEP_S), 1))


def simulate_herd(
    pools: Sequence[Pool], site: Site, parts: int, step_s: int, rng: Random
) -> HerdOutcome:
    jobs = draw_jobs(pools, parts, step_s, rng)
    policy = GrantPolicy().scaled(step_s, 1)
    # As many starts in a step as in its seconds.
    policy = policy._replace(
        max_starting=policy.max_starting * step_s,
        stagger_share=min(policy.stagger_share * step_s, 1.0),
    )
    if site.max_parallel is not None:
        policy = policy._replace(max_parallel=max(site.max_parallel // parts, 1))
    recycling = None
    if site.recycle_at_bytes is not None and any(job.leak_bytes_per_s for job in jobs):
        recycling = RecyclePolicy(site.recycle_at_bytes).scaled(step_s)
    tally = SimCounters(picture=[])
    app = Application(jobs, policy, tally, recycling=recycling)
    for pool in pools:
        record = learned_record(pool.group)
        app.records[pool.group.label] = record
        app.estimates[pool.group.label] = estimate(record)
    run_world([app], level_ground(max(site.budget_bytes // parts, 1)), tally)
    return outcome_of(jobs, tally, step_s)


def draw_jobs(pools: Sequence[Pool], parts: int, step_s: int, rng: Random) -> list[SimJob]:
    """The groups take turns, as in a job file that mixes them."""
    drawn = [
        (pool.group, sizes)
        for pool in pools
        for sizes in pool.draw(max(round(pool.group.number / parts), 1), rng)
    ]
    rng.shuffle(drawn)
    return [
        SimJob(
            f"job-{seq:04}", seq, make_coarse(sizes, step_s), Mode.RESUMES, label=group.label,
            leak_bytes_per_s=int(group.leak_bytes_per_s * step_s),
        )
        for seq, (group, sizes) in enumerate(drawn)
    ]  # fmt: skip


def learned_record(group: AgentGroup) -> ClassRecord:
    """With the agent's MCP servers, which are in its pen."""
    more = group.more_bytes
    prior = replace(group.record.prior, base_bytes=group.prior_base_bytes + more)
    recent = tuple(
        replace(run, mean_bytes=run.mean_bytes + more, peak_bytes=run.peak_bytes + more)
        for run in group.record.recent
    )
    return replace(group.record, prior=prior, recent=recent)


def make_coarse(sizes: Run, step_s: int) -> Course:
    """One sample for each step, not the highest of it: bursts are shorter than a step, and the
    highest would make all of them as long as one.
    """
    samples = sizes[(step_s - 1) // 2 :: step_s] or sizes[-1:]
    calm = sorted(samples)[len(samples) // 2] * CALL_SHARE
    calls: list[int] = []
    for at, size in enumerate(samples):
        is_open = bool(calls) and size > calm and samples[at - 1] > calm
        calls.append(calls[-1] if is_open else at)
    return Course("planned", tuple(samples), tuple(calls), step_s)


def outcome_of(jobs: Sequence[SimJob], tally: SimCounters, step_s: int) -> HerdOutcome:
    picture = tally.picture or []
    running = [len(used) for used in picture]
    last_start = int(max((job.first_s or 0.0 for job in jobs), default=0.0))
    settled = -(-SETTLED_S // step_s)
    waiting = running[settled:last_start]
    peak = max(running, default=0)
    return HerdOutcome(
        # The mean while jobs wait; nobody waits where all have started at once.
        at_once=fmean(waiting) if waiting else float(peak),
        peak_at_once=peak,
        makespan_s=float(tally.makespan_s * step_s),
        unlimited_s=float(max(job.course.seconds for job in jobs) * step_s),
        preempted=tally.preempted,
        recycled=tally.recycled,
        failed=tally.failed,
        used=tuple(sum(used.values()) for used in picture),
        step_s=step_s,
    )


def band_of(series: Sequence[Sequence[float]]) -> tuple[tuple[float, float, float], ...]:
    """p10, p50 and p90 of each step; a herd that is over uses nothing."""
    length = max((len(one) for one in series), default=0)
    band: list[tuple[float, float, float]] = []
    for at in range(length):
        values = sorted(one[at] if at < len(one) else 0 for one in series)
        low, middle, high = (quantile(values, share) for share in (0.1, 0.5, 0.9))
        band.append((low, middle, high))
    return tuple(band)


def forecast_alone(pools: Sequence[Pool], kill_bytes: int) -> Alone:
    number = sum(pool.group.number for pool in pools)
    draws = min(max(ALONE_WORK // number, LEAST_ALONE), MOST_ALONE)
    rng = Random(SEED)
    leaky = [with_leak(pool) for pool in pools]
    totals = [draw_total(leaky, rng) for _ in range(draws)]
    peaks = sorted(max(total) for total in totals)
    longest = max(len(total) for total in totals)
    step_s = max(longest // POINTS, 1)
    sampled = [total[::step_s] for total in totals[:40]]
    low, middle, high = (quantile(peaks, share) for share in (0.1, 0.5, 0.9))
    return Alone(
        risk=sum(peak > kill_bytes for peak in peaks) / draws,
        peak_bytes=(low, middle, high),
        draws=draws,
        step_s=step_s,
        median_by_step=tuple(point[1] for point in band_of(sampled)),
    )


def with_leak(pool: Pool) -> Pool:
    leak = pool.group.leak_bytes_per_s
    return pool._replace(runs=[leaking(sizes, leak) for sizes in pool.runs]) if leak else pool


# Above this many agents, each drawn run stands for several.
MOST_SUMMED = 200
# With none, risks stated from half of the recorded runs were too sure (docs/benchmarks.md).
PROJECT_SPREAD = 0.03


def draw_total(pools: Sequence[Pool], rng: Random) -> list[int]:
    number = sum(pool.group.number for pool in pools)
    times = -(-number // MOST_SUMMED)
    runs = [
        sizes
        for pool in pools
        for sizes in pool.draw(max(round(pool.group.number / times), 1), rng)
    ]
    # All agents of a herd work in the same project, and may all be larger or smaller.
    scale = number / len(runs) * (1 + rng.gauss(0, PROJECT_SPREAD))
    return [int(size * scale) for size in total_bytes_by_second(runs)]
