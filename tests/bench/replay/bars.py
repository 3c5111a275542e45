"""What came of a whole set, and the bars that ramherd is held to."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bench.replay.herd import Herd
from bench.replay.outcome import Outcome
from bench.replay.sampler import share_of_core
from bench.replay.table import Row
from bench.replay.told import Told


@dataclass(frozen=True, slots=True)
class Contest:
    """ramherd is the first of the outcomes, and `told` is what it said."""

    name: str
    herd: Herd
    source: str
    oracle_s: float
    outcomes: Sequence[Outcome]
    told: Told

    @property
    def ours(self) -> Outcome:
        return self.outcomes[0]

    @property
    def fixed(self) -> list[Outcome]:
        """First budget / 500 MB, then the best that was found and one more."""
        return [outcome for outcome in self.outcomes if outcome.tool.startswith("xargs")]


def whole_bars(contest: Contest) -> Iterator[Row]:
    ours, fixed = contest.ours, contest.fixed
    best = best_of(fixed)
    yield ("of the oracle", f"{ours.oracle_share:.2f}", "0.85 or more")
    yield ("OOM kills, jobs lost, processes left", zeros(ours), "0, 0, 0")
    yield (f"against {fixed[0].tool} (budget / 500 MB)", times(fixed[0], ours), "1.45x or more")
    yield (f"against {best.tool} (the best fixed number)", times(best, ours), "1.25x or more")
    yield ("work redone", f"{ours.work.redone_share:.1%}", "5 % at most")


def best_of(fixed: Sequence[Outcome]) -> Outcome:
    """Without OOM kills where there is one."""
    return min(fixed, key=lambda outcome: (outcome.oom_kills > 0, outcome.makespan_s))


def zeros(ours: Outcome) -> str:
    return f"{ours.oom_kills}, {ours.work.jobs - ours.work.done}, {ours.left}"


def times(other: Outcome, ours: Outcome) -> str:
    """One that was stopped would have taken longer."""
    more = " or more" if other.was_stopped else ""
    return f"{other.makespan_s / ours.makespan_s:.2f}x{more}"


def fifty_bars(contest: Contest) -> Iterator[Row]:
    share = share_of_core(contest.ours.costs, contest.herd.processes)
    rss = contest.told.supervisor_rss_bytes
    if share is not None:
        yield ("supervisor and keeper with 50 runs", f"{share:.1%} of a core", "2 % at most")
    yield ("supervisor's peak with 50 runs", f"{rss / 1e6:.1f} MB", "32 MB at most")
    if holds := contest.told.holds:
        what = f"held until running again, p95 of {holds.count} (p50 {holds.p50_s * 1000:.1f} ms)"
        yield (what, f"{holds.p95_s * 1000:.1f} ms", "5 ms at most")


BARS = {"whole": whole_bars, "fifty": fifty_bars}


def bar_rows(contests: Sequence[Contest]) -> list[Row]:
    rows = [row for one in contests if one.name in BARS for row in BARS[one.name](one)]
    return [("", "measured", "bar"), *rows]
