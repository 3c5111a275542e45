"""How much all runs together may hold: what memory there is, less what others use."""

from ramherd.decide.shares import budget_of
from ramherd.model import Limit, Machine, Policy, Snapshot


def budget_bytes(machine: Machine, fleet_used_bytes: int, policy: Policy) -> int:
    """The share of memory that is ours now: of RAM, less what others use of it, and likewise of
    each limit that we live under. `--budget` is a cap on it, never a promise.
    """
    ram = Limit(machine.total_bytes, machine.total_bytes - machine.available_bytes)
    ours = min(
        budget_of(limit.limit_bytes, limit.used_bytes, fleet_used_bytes, policy.budget_share)
        for limit in (ram, *machine.limits)
    )
    if policy.budget_cap_bytes is not None:
        ours = min(ours, policy.budget_cap_bytes)
    return max(ours, 0)


def largest_budget_bytes(machine: Machine, policy: Policy) -> int:
    """What the budget could be with nothing else on the machine."""
    whole = int(policy.budget_share * machine.most_bytes)
    return min(whole, policy.budget_cap_bytes) if policy.budget_cap_bytes else whole


def reserved_bytes(snapshot: Snapshot) -> int:
    """What the running runs were promised, or hold if that is more."""
    return sum(max(run.need_bytes, run.pen.used_bytes) for run in snapshot.runs)


def promised_bytes(snapshot: Snapshot) -> int:
    """What running runs were promised and do not use yet: still to come out of `available`."""
    return sum(max(run.need_bytes - run.pen.used_bytes, 0) for run in snapshot.runs)
