"""When `ramherd watch` alerts: a session that ramherd did not start is large or leaks, memory is
short, or strays pile up. Each alert has an upper and a lower mark, and is sent once in between.
Memory that goes up and down with every garbage collection is one alert as well: an alert is over
when its value has stayed below the lower mark for a while.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from ramherd.core.census_row import CensusRow, CensusTotal
from ramherd.core.policies import StrayPolicy
from ramherd.core.procid import ProcId
from ramherd.decide.alerts import between
from ramherd.decide.governor.leaks import find_leak
from ramherd.strays.nouns import Kind, ProcessScene, Verdict, WarningSign

# The lower marks. A session has recovered below this share of warn_at; after a leak, below this
# share of the most that it held, because a leak that pauses is no end of it.
LARGE_OFF, LEAK_OFF = 0.9, 0.75
# Percent points below warn_memory.
MEMORY_OFF = 10.0
STRAYS_ON, STRAYS_OFF = 10, 5
# How long a value stays below its lower mark until the alert is over.
OVER_AFTER_S = 600.0
MINUTE_S = 60


class WatchAlert(NamedTuple):
    key: str
    sign: WarningSign


def next_alerts(
    rows: Sequence[CensusRow], total: CensusTotal, scene: ProcessScene, told: Mapping[str, float],
    policy: StrayPolicy,
) -> tuple[Mapping[str, float], list[WatchAlert]]:  # fmt: skip
    """Keys that hold, with the last time that their value was above its lower mark; and the new
    alerts among them. `told` are those of the look before.
    """
    hold: dict[str, float] = {}
    fresh: list[WatchAlert] = []
    for alert, strength in find_alerts(rows, total, scene, policy):
        since_s = told.get(alert.key)
        if since_s is None and strength == 1:
            fresh.append(alert)
        if strength >= 0 and (since_s is not None or strength == 1):
            hold[alert.key] = total.at_s
        elif since_s is not None and total.at_s - since_s < OVER_AFTER_S:
            hold[alert.key] = since_s
    return hold, fresh


def find_alerts(
    rows: Sequence[CensusRow], total: CensusTotal, scene: ProcessScene, policy: StrayPolicy
) -> Iterator[tuple[WatchAlert, float]]:
    """Each with 1 above its upper mark, 0 between the marks, -1 below the lower one."""
    sessions = [row for row in rows if is_watched(row)]
    for row in sessions:
        yield judge_size(row, policy)
        yield judge_leak(row, scene, policy)
    yield judge_memory(sessions, total, policy)
    yield judge_strays(total)


def is_watched(row: CensusRow) -> bool:
    """Runs of ramherd have alerts of their own; an orphan is counted as a stray."""
    return row.kind == Kind.AGENT and not row.run and row.verdict != Verdict.ORPHAN


def judge_size(row: CensusRow, policy: StrayPolicy) -> tuple[WatchAlert, float]:
    share = row.memory_bytes / policy.warn_at_bytes
    sign = sign_of("large", row, policy.warn_at_bytes)
    return WatchAlert(key_of(row.process, "large"), sign), between(share, 1.0, LARGE_OFF)


def judge_leak(
    row: CensusRow, scene: ProcessScene, policy: StrayPolicy
) -> tuple[WatchAlert, float]:
    seen = scene.sightings.get(row.process)
    leak = find_leak(seen.points) if seen is not None else None
    sign = sign_of("grows", row, policy.warn_at_bytes)
    key = key_of(row.process, "grows")
    if leak is None:
        share = row.memory_bytes / max(row.highest_bytes, 1)
        return WatchAlert(key, sign), 0.0 if share >= LEAK_OFF else -1.0
    return WatchAlert(key, sign._replace(rate=MINUTE_S * leak.slope_bytes_per_s)), 1.0


def judge_memory(
    sessions: Sequence[CensusRow], total: CensusTotal, policy: StrayPolicy
) -> tuple[WatchAlert, float]:
    """With the largest session, whose end frees the most."""
    on = policy.warn_memory_percent
    sign = WarningSign("memory", total.used_percent, on)
    if sessions:
        largest = max(sessions, key=lambda row: row.memory_bytes)
        sign = sign._replace(pid=largest.process.pid, name=largest.software, command=largest.resume)
    return WatchAlert("memory", sign), between(total.used_percent, on, on - MEMORY_OFF)


def judge_strays(total: CensusTotal) -> tuple[WatchAlert, float]:
    sign = WarningSign("strays", total.strays, STRAYS_ON, rate=total.stray_bytes)
    return WatchAlert("strays", sign), between(total.strays, STRAYS_ON, STRAYS_OFF)


def sign_of(name: str, row: CensusRow, limit_bytes: int) -> WarningSign:
    return WarningSign(
        name, row.memory_bytes, limit_bytes, row.process.pid, row.software, command=row.resume
    )


def key_of(process: ProcId, name: str) -> str:
    return f"{name} {process.pid} {process.start_ticks}"
