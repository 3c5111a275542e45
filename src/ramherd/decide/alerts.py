"""When the user is alerted: a run near its limit, the fleet near its budget, or a leak that will
reach the limit soon. Each alert has an upper and a lower mark, so that it is sent only once.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from ramherd.core.model import Reason, Why

FLEET = ""


@dataclass(frozen=True, slots=True)
class AlertPolicy:
    limit_marks: tuple[float, float] = (0.90, 0.80)
    budget_marks: tuple[float, float] = (0.95, 0.85)
    # Alert at ten minutes before a leak reaches its limit; reset when twice that time is left.
    leak_s: tuple[float, float] = (600.0, 1200.0)


@dataclass(frozen=True, slots=True)
class Standing:
    """One run. `slope` is its growth per second between turns; 0 means no leak."""

    run: str
    used_bytes: int
    limit_bytes: int | None = None
    slope_bytes_per_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Alert:
    run: str
    reason: Reason


@dataclass(frozen=True, slots=True)
class Told:
    """Alerts that were sent already: (run, why)."""

    alerts: frozenset[tuple[str, Why]] = field(default_factory=frozenset)


def next_alerts(
    runs: Sequence[Standing], used_bytes: int, budget_bytes: int, told: Told, policy: AlertPolicy
) -> tuple[Told, list[Alert]]:
    """New alerts, and earlier alerts that still hold. Runs that are gone are forgotten."""
    still: set[tuple[str, Why]] = set()
    fresh: list[Alert] = []
    for alert, strength in find_alerts(runs, used_bytes, budget_bytes, policy):
        key = (alert.run, alert.reason.why)
        if key in told.alerts and strength >= 0:
            still.add(key)
        elif strength >= 1:
            still.add(key)
            fresh.append(alert)
    return Told(frozenset(still)), fresh


def find_alerts(
    runs: Sequence[Standing], used_bytes: int, budget_bytes: int, policy: AlertPolicy
) -> list[tuple[Alert, float]]:
    """Each alert with 1 above the upper mark, 0 between the marks, -1 below the lower one."""
    found: list[tuple[Alert, float]] = []
    if budget_bytes:
        reason = Reason(Why.NEAR_BUDGET, used_bytes=used_bytes, budget_bytes=budget_bytes)
        share = used_bytes / budget_bytes
        found.append((Alert(FLEET, reason), between(share, *policy.budget_marks)))
    for run in runs:
        if run.limit_bytes is None:
            continue
        reason = Reason(Why.NEAR_LIMIT, used_bytes=run.used_bytes, limit_bytes=run.limit_bytes)
        share = run.used_bytes / run.limit_bytes
        found.append((Alert(run.run, reason), between(share, *policy.limit_marks)))
        if run.slope_bytes_per_s > 0:
            found.append(leak_alert(run, run.limit_bytes, policy))
    return found


def leak_alert(run: Standing, limit_bytes: int, policy: AlertPolicy) -> tuple[Alert, float]:
    left_s = max(limit_bytes - run.used_bytes, 0) / run.slope_bytes_per_s
    minute = int(run.slope_bytes_per_s * 60)
    reason = Reason(Why.LEAK, slope_bytes=minute, left_s=round(left_s, 1))
    return Alert(run.run, reason), between(-left_s, *(-mark for mark in policy.leak_s))


def between(value: float, on: float, off: float) -> float:
    return 1.0 if value >= on else 0.0 if value >= off else -1.0
