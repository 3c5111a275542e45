"""`python -m ramherd.sim.bench`: the simulated benchmarks, as the tables of docs/benchmarks.md.

`--write FILE` replaces the section between its markers. Without traces (`--traces`, or
RAMHERD_TRACES) the built-in ones are used, and the tables note that.
"""

import argparse
import os
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from statistics import mean

from ramherd.core.memory import Mode
from ramherd.core.policies import GrantPolicy
from ramherd.sim.application import Application
from ramherd.sim.course import Course, make_course, read_courses
from ramherd.sim.hard_herds import (
    GIB,
    LONG_S,
    SHORT_S,
    best_number,
    burst_herd,
    heavy_herd,
    wall_s,
)
from ramherd.sim.leak_set import score
from ramherd.sim.oracle import oracle_makespan_s, passing_makespan_s
from ramherd.sim.peers import fixed, run_peer
from ramherd.sim.profiles import synthetic
from ramherd.sim.result import SimCounters, SimResult
from ramherd.sim.scenarios import SCENARIOS, play
from ramherd.sim.simulate import make_jobs, run_grants, simulate
from ramherd.sim.world import level_ground, run_world

GB = 10**9
BUDGETS = (4 * GB, 128 * GB // 10)
COPIES = 4
MARK = "bench-sim"
# Less than the memory of any agent: more runs than budget / SMALLEST always cause OOM kills.
SMALLEST = 150 * 10**6
# Not the seeds on which rules were tried: those were 100 to 147 for bursts, 0 to 5 for giants.
BURST_SEEDS = range(1000, 1048)
HEAVY_SEEDS = range(10, 16)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m ramherd.sim.bench")
    parser.add_argument("--traces", metavar="FILE", default=os.environ.get("RAMHERD_TRACES"))
    parser.add_argument("--write", metavar="FILE", help="replace the section in this file")
    options = parser.parse_args(argv)
    courses = read_courses(options.traces, 1)
    what = "published traces" if options.traces else "built-in traces (no --traces given)"
    lines: list[str] = []
    for line in report(courses, what):
        print(line, flush=True)
        lines.append(line)
    if options.write:
        write_section(Path(options.write), MARK, lines)


def write_section(path: Path, mark: str, lines: Sequence[str]) -> None:
    """Replaces the section between the two lines with this mark."""
    begin, end = f"<!-- {mark}: begin -->", f"<!-- {mark}: end -->"
    text = path.read_text()
    if begin not in text or end not in text:
        sys.exit(f"{path} has no lines {begin} and {end}")
    head, tail = text.split(begin)[0], text.split(end)[1]
    path.write_text(f"{head}{begin}\n" + "\n".join(lines) + f"\n{end}{tail}")


Row = tuple[str, ...]


def report(courses: Sequence[Course], what: str) -> Iterator[str]:
    herd = list(courses) * COPIES
    yield f"{len(courses)} {what}, {COPIES} copies, in file order."
    yield ""
    yield from table(bar(herd))
    yield from section("Beside other tools", peers(herd))
    yield from section("Other orders and other agents", others(courses))
    yield from section("Situations", situations())
    yield from section(
        "Bursts",
        bursts(),
        f"Herds in 3 GiB, mean of seeds {BURST_SEEDS[0]} to {BURST_SEEDS[-1]}. The best number is",
        "the `--max-parallel` from 1 to 16 with which all herds together are fastest.",
    )
    yield from section(
        "Giants",
        giants(courses),
        f"The {what}, {COPIES} copies in random order; 1.5 % of the jobs reach 85 to 95 % of 4 GB.",
    )
    yield from section("Several applications", applications(), "60 synthetic jobs each in 4 GB.")
    yield from section("Leaks", leaks())


def section(title: str, rows: Iterator[Row], *text: str) -> Iterator[str]:
    yield from ("", f"### {title}", "")
    if text:
        yield from (*text, "")
    yield from table(rows)


def table(rows: Iterator[Row]) -> Iterator[str]:
    for number, row in enumerate(rows):
        yield "| " + " | ".join(row) + " |"
        if number == 0:
            yield "|" + "---|" * len(row)


def bar(herd: Sequence[Course]) -> Iterator[Row]:
    """The numbers that a change must not make worse."""
    yield ("", *(f"{budget / GB:g} GB" for budget in BUDGETS), "bar")
    columns = [bar_of(herd, budget) for budget in BUDGETS]
    bars = (
        "0.96", "", "0", "0", "1.65x / 1.5x", "1.5x / 1.0x", "3 %", "0.88 at 4 GB", "", "5 s",
    )  # fmt: skip
    for cells, least in zip(zip(*columns, strict=True), bars, strict=True):
        yield (cells[0][0], *(value for _, value in cells), least)


def bar_of(herd: Sequence[Course], budget: int) -> list[tuple[str, str]]:
    oracle_s = oracle_makespan_s(herd, budget)
    started = time.process_time()
    ours = simulate(herd, budget, oracle_s=oracle_s)
    took_s = time.process_time() - started
    over = simulate(herd, budget, mode=Mode.STARTS_OVER, oracle_s=ours.oracle_s)
    plain = simulate(herd, budget, f"fixed:{budget // (500 * 10**6)}", oracle_s=ours.oracle_s)
    number, best_s = best_fixed(herd, budget)
    ours_s = ours.tally.makespan_s
    passing_s = passing_makespan_s(herd, budget)
    run_hours = sum(course.seconds for course in herd) / 3600 / 50
    return [
        ("oracle share", f"{ours.oracle_share:.3f}"),
        ("share of an oracle that also lets jobs pass", f"{passing_s / ours_s:.3f}"),
        ("OOM kills", str(ours.tally.oom_kills)),
        ("lost jobs", str(ours.lost)),
        (
            "against fixed budget / 500 MB",
            f"{plain.tally.makespan_s / ours_s:.2f}x (fixed {budget // (500 * 10**6)})",
        ),
        ("against the best fixed number without OOM kill", f"{best_s / ours_s:.2f}x ({number})"),
        ("redone work", f"{ours.redone_share:.1%}"),
        ("oracle share, agents that cannot resume", f"{over.oracle_share:.3f}"),
        ("preempted", str(ours.tally.preempted)),
        ("processor time for an hour of 50 runs", f"{took_s / run_hours:.1f} s"),
    ]


def best_fixed(herd: Sequence[Course], budget: int) -> tuple[int, int]:
    """Tries all numbers. (number, makespan)"""
    tried = (
        (run_peer(fixed(number), herd, budget, most_kills=0), number)
        for number in range(2, budget // SMALLEST + 1)
    )
    spans = [(tally.makespan_s, number) for tally, number in tried if not tally.oom_kills]
    span, number = min(spans)
    return number, span


def peers(herd: Sequence[Course]) -> Iterator[Row]:
    yield ("policy", "budget", "makespan s", "of the oracle", "OOM kills", "own kills",
           "redone", "memory used")  # fmt: skip
    for budget in BUDGETS:
        oracle_s = oracle_makespan_s(herd, budget)
        yield ("oracle", f"{budget / GB:g} GB", str(oracle_s), "1.00", "0", "0", "0.0%", "")
        half, most = budget // (500 * 10**6), budget // (280 * 10**6)
        for policy in ("grants", f"fixed:{half}", f"fixed:{most}", "reserve:512MB",
                       "memfree:500MB"):  # fmt: skip
            yield row_of(simulate(herd, budget, policy, oracle_s=oracle_s))


def row_of(result: SimResult) -> Row:
    tally = result.tally
    return (
        result.policy,
        f"{result.budget_bytes / GB:g} GB",
        str(tally.makespan_s),
        f"{result.oracle_share:.2f}",
        str(tally.oom_kills),
        str(tally.preempted),
        f"{result.redone_share:.1%}",
        f"{result.as_json()['utilisation']:.0%}",
    )


def others(courses: Sequence[Course]) -> Iterator[Row]:
    """No number was tuned to one file: the same numbers for other orders and other agents."""
    yield ("herd", "4 GB: share", "redone", "12.8 GB: share", "redone", "OOM kills, lost")
    herds: list[tuple[str, list[Course]]] = [
        ("each trace 4 times in a row", [course for course in courses for _ in range(COPIES)]),
        ("one copy", list(courses)),
    ]
    for seed in (1, 2, 3):
        shuffled = list(courses) * COPIES
        Random(seed).shuffle(shuffled)
        herds.append((f"shuffled, seed {seed}", shuffled))
    for seed in (1, 2, 3):
        made = [make_course(profile) for profile in synthetic(seed, 300)]
        herds.append((f"300 synthetic, seed {seed}", made))
    for name, herd in herds:
        results = [simulate(herd, budget) for budget in BUDGETS]
        bad = sum(result.tally.oom_kills + result.lost for result in results)
        cells = [
            text
            for result in results
            for text in (f"{result.oracle_share:.3f}", f"{result.redone_share:.1%}")
        ]
        yield (name, *cells, str(bad))


def situations() -> Iterator[Row]:
    yield ("scenario", "jobs", "done", "failed", "oracle share", "OOM kills", "preempted",
           "recycled", "redone", "longest debt s")  # fmt: skip
    for name in SCENARIOS:
        result = play(name).result
        tally = result.tally
        yield (
            name, str(result.jobs), str(tally.done), str(tally.failed),
            f"{result.oracle_share:.2f}", str(tally.oom_kills), str(tally.preempted),
            str(tally.recycled), f"{result.redone_share:.1%}", str(tally.debt_s),
        )  # fmt: skip


def bursts() -> Iterator[Row]:
    yield ("herd", "lives", "the governor", "best number", "ratio", "2 at a time", "FIFO oracle",
           "stops", "most of one job")  # fmt: skip
    for number, bursting in ((20, 7), (8, 8)):
        for life_s in (SHORT_S, LONG_S):
            herds = [burst_herd(seed, number, bursting, life_s) for seed in BURST_SEEDS]
            yield burst_row(f"{number}/{bursting}", life_s, herds)


def burst_row(name: str, life_s: tuple[int, int], herds: Sequence[Sequence[Course]]) -> Row:
    budget = 3 * GIB
    jobs = [make_jobs(herd) for herd in herds]
    played = [run_grants(herd, level_ground(budget)) for herd in jobs]
    ours_s = mean(tally.makespan_s for tally in played)
    # All at once is the governor itself.
    best_s, number = best_number(herds, budget, range(1, min(17, len(herds[0]))))
    return (
        name, f"{life_s[0]}-{life_s[1]} s", f"{ours_s:.1f} s", f"{best_s:.1f} s ({number})",
        f"{ours_s / best_s:.3f}", f"{wall_s(herds, budget, 2):.1f} s",
        f"{mean(oracle_makespan_s(herd, budget) for herd in herds):.1f} s",
        f"{mean(tally.preempted for tally in played):.1f}",
        str(max(job.stops for herd in jobs for job in herd)),
    )  # fmt: skip


def giants(courses: Sequence[Course]) -> Iterator[Row]:
    yield ("seed", "agents", "oracle share", "redone", "preempted", "most of one job",
           "giants end at s")  # fmt: skip
    budget = BUDGETS[0]
    for seed in HEAVY_SEEDS:
        herd = heavy_herd(list(courses) * COPIES, budget, seed)
        oracle_s = oracle_makespan_s(herd, budget)
        for mode, agents in ((Mode.RESUMES, "resume"), (Mode.STARTS_OVER, "start over")):
            jobs = make_jobs(herd, mode)
            tally = run_grants(jobs, level_ground(budget))
            ends = [job.done_s or 0.0 for job in jobs if job.course.name.startswith("giant")]
            yield (
                str(seed), agents, f"{oracle_s / tally.makespan_s:.3f}",
                f"{tally.redone_s / tally.work_s:.1%}", str(tally.preempted),
                str(max(job.stops for job in jobs)), ", ".join(f"{end:.0f}" for end in ends),
            )  # fmt: skip


def applications() -> Iterator[Row]:
    yield ("applications", "jobs", "done", "oracle share", "OOM kills", "preempted", "redone",
           "first ends", "last ends")  # fmt: skip
    for number in (2, 3, 4):
        tally = SimCounters()
        herds = [[make_course(one) for one in synthetic(seed, 60)] for seed in range(1, number + 1)]
        apps = [Application(make_jobs(herd), GrantPolicy(), tally) for herd in herds]
        run_world(apps, level_ground(BUDGETS[0]), tally)
        mixed = [course for row in zip(*herds, strict=True) for course in row]
        ends = sorted(max(job.done_s or 0.0 for job in app.jobs.values()) for app in apps)
        yield (
            str(number), str(len(mixed)), str(tally.done),
            f"{oracle_makespan_s(mixed, BUDGETS[0]) / tally.makespan_s:.2f}", str(tally.oom_kills),
            str(tally.preempted), f"{tally.redone_s / tally.work_s:.1%}",
            f"{ends[0]:.0f} s", f"{ends[-1]:.0f} s",
        )  # fmt: skip


def leaks() -> Iterator[Row]:
    yield ("seed", "series", "precision", "recall")
    for seed in (1, 2, 3):
        found = score(seed, 500)
        yield (str(seed), "500", f"{found.precision:.1%}", f"{found.recall:.1%}")


if __name__ == "__main__":
    main()
