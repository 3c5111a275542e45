"""Planned restarts of agents that leak, between turns, with their session resumed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from ramherd.core.model import Reason, RunEnd, Stop, Why
from ramherd.core.policies import RecyclePolicy
from ramherd.decide.governor.leaks import IdleSamples, Leak, find_leak, next_samples


@dataclass(frozen=True, slots=True)
class Own:
    """An agent's own processes, without its tool calls. `turn_over`: a restart now loses nothing. A
    size of None means that a tool call is open.
    """

    run: str
    job: str
    own_bytes: int | None
    turn_over: bool = True


@dataclass(frozen=True, slots=True)
class Watches:
    """State kept between rounds: samples by run, marks and last restarts by job."""

    watch: Mapping[str, IdleSamples] = field(default_factory=dict)
    marks: Mapping[str, int] = field(default_factory=dict)
    recycled_s: Mapping[str, float] = field(default_factory=dict)


def recycle(
    seen: Sequence[Own], watches: Watches, at_s: float, policy: RecyclePolicy
) -> tuple[Watches, list[Stop]]:
    """Called at most once a second; runs that are gone are forgotten."""
    watch = {own.run: next_of(own, watches, at_s) for own in seen}
    watches = replace(watches, watch=watch)
    stops: list[Stop] = []
    for own in seen:
        if own.own_bytes is None or not own.turn_over:
            continue
        mark = watches.marks.get(own.job, policy.recycle_at_bytes)
        if own.own_bytes >= mark and is_back(own, watches, at_s, policy):
            watches = replace(watches, marks={**watches.marks, own.job: 2 * mark})
        elif (why := find_reason(own.own_bytes, mark, watch[own.run], policy)) is not None:
            stops.append(Stop(own.run, RunEnd.RECYCLED, why))
            watches = replace(watches, recycled_s={**watches.recycled_s, own.job: at_s})
    return watches, stops


def next_of(own: Own, watches: Watches, at_s: float) -> IdleSamples:
    watch = watches.watch.get(own.run, IdleSamples())
    return watch if own.own_bytes is None else next_samples(watch, at_s, own.own_bytes)


def is_back(own: Own, watches: Watches, at_s: float, policy: RecyclePolicy) -> bool:
    last = watches.recycled_s.get(own.job)
    return last is not None and at_s - last < policy.back_within_s


def find_reason(
    own_bytes: int, mark: int, watch: IdleSamples, policy: RecyclePolicy
) -> Reason | None:
    if own_bytes >= mark:
        return Reason(Why.OVER_MARK, own_bytes=own_bytes, mark_bytes=mark)
    # The trend is calculated only near the mark, because it compares every pair.
    leak = find_leak(watch.points) if own_bytes >= mark // 2 else None
    return None if leak is None else near_mark(leak, mark, policy)


def near_mark(leak: Leak, mark: int, policy: RecyclePolicy) -> Reason | None:
    left_s = leak.left_s(mark)
    if left_s > policy.horizon_s:
        return None
    return Reason(
        Why.LEAK,
        slope_bytes=int(leak.slope_bytes_per_s * 60),
        left_s=round(left_s, 1),
        certainty=round(leak.certainty, 3),
        mark_bytes=mark,
    )
