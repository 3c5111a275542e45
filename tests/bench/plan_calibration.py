"""Whether `ramherd plan` says true numbers: priors fitted on one half of some runs, tested on the
other half.

A workload is a number of agents on a machine, whose RAM is chosen so that the stated risk of an OOM
kill without ramherd is in one of five bands. Its agents are drawn from published runs (TRACES),
from the simulator's synthetic runs or from agents with large bursts. Each workload splits its runs
again, states a risk from one half, and many herds of the other half show how often the kernel
kills. In the same way, the stated number of agents at once is compared with that of the simulator
in steps of one second. Fixed random numbers: the same result each time.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from random import Random
from statistics import fmean
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))
from bench.tables import publish
from ramherd.decide.governor.classes import quantile
from ramherd.plan.agent_groups import LEAST_DRAWN, POOL, UNSURE, Pool, group_of
from ramherd.plan.forecast import Site, draw_total, forecast, outcome_of
from ramherd.plan.run_shapes import draw_pool, fit_tables, outline_of
from ramherd.sim.course import Course, make_course
from ramherd.sim.hard_herds import LONG_S, burst_herd
from ramherd.sim.profiles import Profile, parse_traces, synthetic
from ramherd.sim.simulate import make_jobs, run_grants
from ramherd.sim.unlimited import total_bytes_by_second
from ramherd.sim.world import level_ground

TRACES = Path(
    os.environ.get("RAMHERD_TRACES")
    or Path(__file__).parents[3] / "shared" / "traces" / "agents.jsonl"
)
BANDS = 5
AGENTS = (3, 40)
DRAWS = 200
POPULATION = 106
SEEDS = range(11, 17)


class Population(NamedTuple):
    """Recorded or made runs, as profiles for the fit and as courses for the simulator."""

    name: str
    profiles: Sequence[Profile]
    courses: Sequence[Course]


class Stated(NamedTuple):
    """The risk of one workload: stated from one half, observed on the other."""

    stated: float
    observed: float


class Sustained(NamedTuple):
    agents: int
    stated: float
    sustained: float

    @property
    def error(self) -> float:
        return abs(self.stated / self.sustained - 1)


def read_populations() -> list[Population]:
    """Published runs where they are at hand, and synthetic shapes always."""
    made = [with_courses(f"synthetic {seed}", synthetic(seed, POPULATION)) for seed in SEEDS]
    herd = burst_herd(1, POPULATION, POPULATION // 3, LONG_S)
    made.append(Population("large bursts", [as_profile(course) for course in herd], herd))
    if not TRACES.is_file():
        print(f"{TRACES} is absent: only synthetic shapes are used", file=sys.stderr)
        return made
    with TRACES.open() as lines:
        published = with_courses("published", list(parse_traces(lines)))
    # Half of the workloads are of published runs.
    return [published] * len(made) + made


def with_courses(name: str, profiles: Sequence[Profile]) -> Population:
    return Population(name, profiles, [make_course(profile) for profile in profiles])


def as_profile(course: Course) -> Profile:
    times = tuple(float(at) for at in range(course.seconds + 1))
    return Profile(course.name, times, (*course.bytes, course.bytes[-1]))


def split(population: Population, rng: Random) -> tuple[list[int], list[int]]:
    order = list(range(len(population.profiles)))
    rng.shuffle(order)
    return order[: len(order) // 2], order[len(order) // 2 :]


class Planner:
    """The planner, with the tables of some runs instead of the shipped ones."""

    def __init__(self, populations: Sequence[Population]) -> None:
        self.outlines = {
            population.name: [outline_of(profile) for profile in population.profiles]
            for population in populations
        }

    def pool(self, population: Population, half: Sequence[int], agents: int, rng: Random) -> Pool:
        tables = fit_tables([self.outlines[population.name][at] for at in half])
        drawn = max(int(len(half) / UNSURE), LEAST_DRAWN)
        return Pool(group_of("claude", agents), draw_pool(tables, POOL, rng), drawn)


def calibrate(populations: Sequence[Population], workloads: int, herds: int) -> list[list[Stated]]:
    """`workloads` in each band."""
    rng, planner = Random(2026), Planner(populations)
    bands: list[list[Stated]] = [[] for _ in range(BANDS)]
    at = 0
    while min(map(len, bands)) < workloads:
        population = populations[at % len(populations)]
        at += 1
        half, other = split(population, rng)
        agents = rng.randint(*AGENTS)
        pool = planner.pool(population, half, agents, rng)
        peaks = sorted(max(draw_total([pool], rng)) for _ in range(DRAWS))
        seen = [
            max(total_bytes_by_second(population.courses[one].bytes
                                      for one in rng.choices(other, k=agents)))
            for _ in range(herds)
        ]  # fmt: skip
        for band in range(BANDS):
            ram = quantile(peaks, 1 - (band + rng.random()) / BANDS)
            stated = sum(peak > ram for peak in peaks) / DRAWS
            observed = sum(peak > ram for peak in seen) / herds
            bands[min(int(stated * BANDS), BANDS - 1)].append(Stated(stated, observed))
    return [band[:workloads] for band in bands]


def compare_sustained(populations: Sequence[Population], workloads: int) -> list[Sustained]:
    """The simulator in steps of a second, on runs that the planner has not seen."""
    rng, planner = Random(2027), Planner(populations)
    found: list[Sustained] = []
    for at in range(workloads):
        population = populations[at % len(populations)]
        half, other = split(population, rng)
        agents = rng.randint(20, 50)
        pool = planner.pool(population, half, agents, rng)
        mean = fmean(fmean(population.courses[one].bytes) for one in half)
        largest = max(course.peak_bytes for course in population.courses)
        budget = max(int(agents * mean * rng.uniform(0.2, 0.8)), int(largest * 1.2))
        stated = forecast([pool], Site(budget, budget)).at_once
        jobs = make_jobs([population.courses[one] for one in rng.choices(other, k=agents)])
        tally = run_grants(jobs, level_ground(budget), picture=True)
        found.append(Sustained(agents, stated, outcome_of(jobs, tally, 1).at_once))
    return found


def band_row(at: int, band: Sequence[Stated]) -> str:
    stated, observed = fmean(one.stated for one in band), fmean(one.observed for one in band)
    return (
        (
            f"| {at * 100 // BANDS} to {(at + 1) * 100 // BANDS} % | {len(band)} | {stated:.1%} |"
            f" {observed:.1%} | {(observed - stated) * 100:+.1f} |"
        )
        .replace("%", " %")
        .replace("  %", " %")
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workloads", type=int, default=400, help="in each band")
    parser.add_argument("--herds", type=int, default=20, help="of each workload")
    parser.add_argument("--sustained", type=int, default=60)
    parser.add_argument("--write", type=Path, help="the document with the marks")
    args = parser.parse_args()
    populations = read_populations()
    bands = calibrate(populations, args.workloads, args.herds)
    sustained = compare_sustained(populations, args.sustained)
    errors = sorted(one.error for one in sustained)
    lines = ["| band | workloads | mean stated | observed | points |", "|---" * 5 + "|"]
    lines += [band_row(at, band) for at, band in enumerate(bands)]
    lines += [
        "",
        f"{args.herds} herds of each workload; runs: "
        f"{', '.join(dict.fromkeys(one.name for one in populations))}. Agents at once, stated "
        f"against simulated in steps of 1 s, {len(errors)} workloads: off by "
        f"{quantile(errors, 0.5) * 100:.0f} % (median), {quantile(errors, 0.9) * 100:.0f} % (p90), "
        f"{errors[-1] * 100:.0f} % (worst).",
    ]
    publish(lines, "plan", args.write)
    return 0


if __name__ == "__main__":
    sys.exit(main())
