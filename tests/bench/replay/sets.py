"""The herds of the benchmark, and the tools that meet in each."""

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from bench.replay.contest import MakeTool
from bench.replay.herd import SLACK_BYTES, AgentJob, Herd, cut
from bench.replay.tools import Tool, find_parallel, fixed, memory_parallel, ramherd
from ramherd.sim.bench import best_fixed
from ramherd.sim.course import SYNTHETIC
from ramherd.sim.profiles import MB, Profile, parse_traces, synthetic

GB = 1000 * MB
TRACES = Path(
    os.environ.get("RAMHERD_TRACES")
    or Path(__file__).parents[4] / "shared" / "traces" / "agents.jsonl"
)


def read_profiles() -> tuple[list[Profile], str]:
    """Published runs where they are at hand, and what they are."""
    if not TRACES.is_file():
        return synthetic(1, SYNTHETIC), "built-in traces"
    with TRACES.open(encoding="utf-8") as lines:
        return list(parse_traces(lines)), "published traces"


def whole(profiles: Sequence[Profile]) -> Herd:
    """A minute of a real agent in a second. Starting an agent takes 33 ms of processor time
    (bare Python 8): 2 s of its 390 on average, for every tool alike.
    """
    return Herd("4 GB", profiles, 4, 4 * GB, size=4, speed=60)


def many(profiles: Sequence[Profile]) -> Herd:
    """About 200 at once. Slower: an agent takes 0.5 ms of the processor for a second of trace, so
    these take half a core; at 1/10 time, on a busy machine, the processor set the pace. Not
    smaller: what the kernel counts in batches (2 MB) would be as much as a quantum.
    """
    return Herd("200 at once", [cut(one, 150) for one in profiles], 4, 46 * GB, size=4, speed=5)


def smoke(profiles: Sequence[Profile]) -> Herd:
    """Twice as many as fit, none of them long."""
    short = [profile for profile in profiles if profile.duration_s <= 600][:40]
    return Herd("smoke", short, 1, 4 * GB, size=4, speed=60)


def fifty(profiles: Sequence[Profile]) -> Herd:
    """In real time, with twice the room that all need together: what the governor costs, and how
    long a hold lasts where nobody has to wait for room.
    """
    chosen = [cut(profile, 75) for profile in profiles[:50]]
    budget = 2 * sum(profile.peak_bytes for profile in chosen)
    return Herd("50 in real time", chosen, 1, budget, size=4, speed=1)


def whole_tools(herd: Herd, stand_in: int | None) -> Iterator[MakeTool]:
    find_parallel()  # said before the others have run for half an hour
    yield ours(herd, stand_in)
    best = best_number(herd)
    for number in dict.fromkeys((herd.trace_budget_bytes // (500 * MB), best, best + 1)):
        yield xargs(number)
    yield parallel("memfree", herd)
    yield parallel("memsuspend", herd)


def many_tools(herd: Herd, stand_in: int | None) -> Iterator[MakeTool]:
    find_parallel()  # said before the others have run for half an hour
    yield ours(herd, stand_in)
    yield xargs(herd.trace_budget_bytes // (500 * MB))
    yield xargs(best_number(herd))
    yield parallel("memfree", herd)


def smoke_tools(herd: Herd, stand_in: int | None) -> Iterator[MakeTool]:
    yield ours(herd, stand_in)
    yield xargs(herd.trace_budget_bytes // (500 * MB))


def fifty_tools(herd: Herd, stand_in: int | None) -> Iterator[MakeTool]:
    yield ours(herd, stand_in)


def best_number(herd: Herd) -> int:
    """Found by trying all in simulation, with the slack as well: nobody keeps it free there."""
    number, _makespan_s = best_fixed(herd.courses(), herd.trace_budget_bytes + SLACK_BYTES)
    return number


def ours(herd: Herd, stand_in: int | None) -> MakeTool:
    def make(jobs: Sequence[AgentJob], _place: Path) -> Tool:
        return ramherd(herd, jobs, stand_in=stand_in)

    return make


def xargs(number: int) -> MakeTool:
    return lambda jobs, _place: fixed(number, jobs)


def parallel(option: str, herd: Herd) -> MakeTool:
    return lambda jobs, place: memory_parallel(option, herd, jobs, place)


Tools = Callable[[Herd, int | None], Iterator[MakeTool]]
SETS: dict[str, tuple[Callable[[Sequence[Profile]], Herd], Tools]] = {
    "whole": (whole, whole_tools),
    "many": (many, many_tools),
    "fifty": (fifty, fifty_tools),
    "smoke": (smoke, smoke_tools),
}
