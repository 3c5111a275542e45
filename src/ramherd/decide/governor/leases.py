"""How applications share one machine: what each may hold of the budget.

An application below its share of budget/n gets free memory first, the one that has waited longest
before the others. For its sake, other applications give back only the memory above their share.
Applications that can do nothing with their share take turns with all that is free. A hooked session
loads this for each subagent, so it defines no dataclass.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ramherd.core.reasons import Reason, Why

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ramherd.core.memory import Scene
    from ramherd.core.policies import GrantPolicy

# The number of queued jobs whose need is looked at.
LOOK = 20


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
    mine: Lease,
    others: Sequence[Lease],
    budget_bytes: int,
    *,
    granted_bytes: int,
    least_bytes: int = 0,
    is_at_work: bool = True,
) -> Choice:
    """The next lease of `mine`: it grows only into free memory, and falls only to its grants.
    `least_bytes` is the smallest lease with which one of its jobs can go on: if that exceeds its
    share, it owes nothing while it has waited longest. Without a run at work, it gives up a lease
    that is of no use to it for now.
    """
    everyone = [mine, *others]
    share = budget_bytes // len(everyone)
    free = budget_bytes - sum(lease.bytes for lease in everyone)
    older = [other for other in others if goes_first(other, mine)]
    if older and not is_at_work and is_useless(mine, least_bytes, older, share, free):
        return Choice(min(granted_bytes, mine.bytes), 0)
    before_me = sum(entitled(other, share) for other in older)
    more = min(mine.wants_bytes - mine.bytes, max(free - before_me, 0))
    after = mine._replace(bytes=mine.bytes + more)
    keeps_all = least_bytes > share and not older
    debt = 0 if keeps_all else owed(after, others, budget_bytes)
    target = max(after.bytes - debt, 0)
    held = min(granted_bytes, max(mine.bytes, after.bytes))
    return Choice(max(target, held), target)


def is_useless(
    mine: Lease, least_bytes: int, older: Sequence[Lease], share: int, free_bytes: int
) -> bool:
    """Whether no job can go on with the share, or with the rest that an older application leaves
    which needs more than its own share. If two applications kept such leases, both would wait
    forever.
    """
    if least_bytes > share:
        return True
    is_rest = any(other.bytes > share for other in older)
    return is_rest and least_bytes > mine.bytes + free_bytes


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


def least_lease(scene: Scene) -> int:
    """The smallest lease with which a job can go on: that of the only run, or more if it is held;
    without a run, the smallest need of the first jobs in the queue. 0 with several runs.
    """
    at_work = [run for run in scene.runs if not run.leaving]
    if len(at_work) > 1:
        return 0
    if at_work:
        return at_work[0].grant_bytes + (at_work[0].held_since_s is not None)
    # A job that was stopped at a grant needs more than that.
    needs = [one.need_bytes + one.is_returning for one in scene.queue[:LOOK]]
    needs += [run.grant_bytes + 1 for run in scene.runs]
    return min(needs, default=0)


def has_run_at_work(scene: Scene) -> bool:
    return any(not run.leaving for run in scene.runs)


def waiting_since(scene: Scene) -> float | None:
    """The time since which a run is held or the first job of the queue has waited. A job that was
    stopped and the only run of an application have waited since their job began, so that no other
    application goes first before the job has ended.
    """
    since = [run.held_since_s for run in scene.runs if run.held_since_s is not None]
    since += [run.first_s for run in scene.runs] if len(scene.runs) == 1 else []
    since += [one.queued_s if one.first_s is None else one.first_s for one in scene.queue[:1]]
    return min(since, default=None)


def explain_ledger(what: str, lease_bytes: int | None) -> Reason:
    """For a ledger that does not answer: the application continues with its present lease."""
    if lease_bytes is None:
        return Reason(Why.NO_LEASE, what=what)
    return Reason(Why.LEDGER, what=what, lease_bytes=lease_bytes)
