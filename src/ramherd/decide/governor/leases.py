"""How applications share one machine: what each may hold of the budget.

An application below its share of budget/n gets what is free first, the one that waits longest
before the others; for it, only what others hold above their share is taken back. Loaded for
each subagent of a hooked session, so it makes no dataclass.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ramherd.core.reasons import Reason, Why

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ramherd.core.memory import Scene
    from ramherd.core.policies import GrantPolicy


class Lease(NamedTuple):
    """One application's line in the ledger. `bytes` is what it holds, `wants_bytes` what it
    would hold if it could, `waiting_since_s` since when one of its jobs waits for it.
    """

    owner: str
    bytes: int
    used_bytes: int = 0
    wants_bytes: int = 0
    waiting_since_s: float | None = None


class Choice(NamedTuple):
    """`bytes` is what the ledger writes down: never more than there is. `target_bytes` is what
    the application is to come down to by itself; the difference is its debt.
    """

    bytes: int
    target_bytes: int


def choose_lease(
    mine: Lease, others: Sequence[Lease], budget_bytes: int, *, granted_bytes: int
) -> Choice:
    """My next lease. It grows only into what is free, and falls only to what is granted."""
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
    """What an application could lease if it wanted all: what no other one holds, and its share."""
    free = budget_bytes - sum(other.bytes for other in others)
    return max(free, budget_bytes // (1 + len(others)))


def choose_place(since_s: float | None, held_bytes: int, *, granted_bytes: int) -> float | None:
    """Since when an application counts as waiting. Runs that hold more than their application has
    leased are those of one whose lease was lost with an earlier ledger: it goes first.
    """
    return 0.0 if held_bytes < granted_bytes else since_s


def entitled(lease: Lease, share: int) -> int:
    """What a waiting application still lacks of its share."""
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
    """What I am to give back: my part of what is short, of what I hold above my share."""
    everyone = [mine, *others]
    share = budget_bytes // len(everyone)
    free = budget_bytes - sum(lease.bytes for lease in everyone)
    short = sum(entitled(other, share) for other in others) - free
    above = [max(lease.bytes - share, 0) for lease in everyone]
    if short <= 0 or not above[0]:
        return 0
    return min(above[0], -(-short * above[0] // sum(above)))


def wanted_lease(scene: Scene, policy: GrantPolicy) -> int:
    """All there is while a job is queued or a run is held; else what is granted and room for
    growth, so that the grant path need not ask the ledger.
    """
    if scene.queue or any(run.held_since_s is not None for run in scene.runs):
        return scene.largest_bytes
    granted = sum(run.grant_bytes for run in scene.runs) + scene.ending_bytes
    growth = policy.quantum_bytes * (1 + len(scene.runs))
    return min(granted + max(growth, scene.largest_bytes // 8), scene.largest_bytes)


def waiting_since(scene: Scene) -> float | None:
    """Since when this application waits: its oldest held run, or the first job of its queue."""
    since = [run.held_since_s for run in scene.runs if run.held_since_s is not None]
    since += [candidate.queued_s for candidate in scene.queue[:1]]
    return min(since, default=None)


def explain_ledger(what: str, lease_bytes: int | None) -> Reason:
    """Of a ledger that does not answer: an application goes on with the lease that it has."""
    if lease_bytes is None:
        return Reason(Why.NO_LEASE, what=what)
    return Reason(Why.LEDGER, what=what, lease_bytes=lease_bytes)
