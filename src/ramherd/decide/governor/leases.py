"""How applications share one machine: what each may hold of the budget.

An application below its share of budget/n gets free memory first, the one that has waited longest
before the others. For its sake, other applications give back only the memory above their share. A
hooked session loads this for each subagent, so it defines no dataclass.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ramherd.core.reasons import Reason, Why

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ramherd.core.memory import Scene
    from ramherd.core.policies import GrantPolicy


class Lease(NamedTuple):
    """One application's line in the ledger. `bytes` is its lease, `wants_bytes` the lease that it
    would like to have, `waiting_since_s` the time since which one of its jobs has waited for it.
    """

    owner: str
    bytes: int
    used_bytes: int = 0
    wants_bytes: int = 0
    waiting_since_s: float | None = None


class Choice(NamedTuple):
    """`bytes` is the lease that the ledger records, never more than the free memory. `target_bytes`
    is the lease to which the application shrinks by itself; the difference is its debt.
    """

    bytes: int
    target_bytes: int


def choose_lease(
    mine: Lease, others: Sequence[Lease], budget_bytes: int, *, granted_bytes: int
) -> Choice:
    """The next lease of `mine`: it grows only into free memory, and falls only to its grants."""
    everyone = [mine, *others]
    share = budget_bytes // len(everyone)
    free = budget_bytes - sum(lease.bytes for lease in everyone)
    before_me = sum(entitled(other, share) for other in others if goes_first(other, mine))
    more = min(mine.wants_bytes - mine.bytes, max(free - before_me, 0))
    after = mine._replace(bytes=mine.bytes + more)
    target = max(after.bytes - owed(after, others, budget_bytes), 0)
    held = min(granted_bytes, max(mine.bytes, after.bytes))
    return Choice(max(target, held), target)


def possible_bytes(others: Sequence[Lease], budget_bytes: int) -> int:
    """The largest lease that an application could get: the unleased memory, or its share."""
    free = budget_bytes - sum(other.bytes for other in others)
    return max(free, budget_bytes // (1 + len(others)))


def choose_place(since_s: float | None, held_bytes: int, *, granted_bytes: int) -> float | None:
    """The time since which an application counts as waiting. If its runs hold more than its lease,
    the lease was lost with an earlier ledger: the application goes first.
    """
    return 0.0 if held_bytes < granted_bytes else since_s


def entitled(lease: Lease, share: int) -> int:
    """The bytes that a waiting application still lacks of its share."""
    if lease.waiting_since_s is None:
        return 0
    return max(min(lease.wants_bytes, share) - lease.bytes, 0)


def goes_first(other: Lease, mine: Lease) -> bool:
    if other.waiting_since_s is None:
        return False
    return mine.waiting_since_s is None or (other.waiting_since_s, other.owner) < (
        mine.waiting_since_s,
        mine.owner,
    )


def owed(mine: Lease, others: Sequence[Lease], budget_bytes: int) -> int:
    """The bytes that `mine` has to give back: its part of the shortage, from above its share."""
    everyone = [mine, *others]
    share = budget_bytes // len(everyone)
    free = budget_bytes - sum(lease.bytes for lease in everyone)
    short = sum(entitled(other, share) for other in others) - free
    above = [max(lease.bytes - share, 0) for lease in everyone]
    if short <= 0 or not above[0]:
        return 0
    return min(above[0], -(-short * above[0] // sum(above)))


def wanted_lease(scene: Scene, policy: GrantPolicy) -> int:
    """All memory while a job is queued or a run is held; otherwise the granted bytes plus room for
    growth, so that a grant need not ask the ledger.
    """
    if scene.queue or any(run.held_since_s is not None for run in scene.runs):
        return scene.largest_bytes
    granted = sum(run.grant_bytes for run in scene.runs) + scene.ending_bytes
    growth = policy.quantum_bytes * (1 + len(scene.runs))
    return min(granted + max(growth, scene.largest_bytes // 8), scene.largest_bytes)


def waiting_since(scene: Scene) -> float | None:
    """The time since which a run is held or the first job of the queue has waited."""
    since = [run.held_since_s for run in scene.runs if run.held_since_s is not None]
    since += [candidate.queued_s for candidate in scene.queue[:1]]
    return min(since, default=None)


def explain_ledger(what: str, lease_bytes: int | None) -> Reason:
    """For a ledger that does not answer: the application continues with its present lease."""
    if lease_bytes is None:
        return Reason(Why.NO_LEASE, what=what)
    return Reason(Why.LEDGER, what=what, lease_bytes=lease_bytes)
