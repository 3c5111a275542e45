"""How much memory all runs together may use: the existing memory, less what other programs use."""

from ramherd.core.machine import Limit, Machine
from ramherd.core.policies import Policy


def budget_bytes(
    machine: Machine, fleet_used_bytes: int, policy: Policy, *, capped: bool = True
) -> int:
    """The memory for runs now: the share of RAM, and of each cgroup limit above us, less what other
    programs use of it. Runs of other ramherds count as runs: the ledger divides the budget among
    them. `--budget` caps our part; it is not a guarantee.
    """
    taken = machine.total_bytes - machine.available_bytes
    ram = Limit(machine.total_bytes, taken, machine.herds_used_bytes)
    ours = min(
        budget_of(
            limit.limit_bytes,
            limit.used_bytes,
            fleet_used_bytes + limit.herds_used_bytes,
            policy.budget_share,
        )
        for limit in (ram, *machine.limits)
    )
    if capped and policy.budget_cap_bytes is not None:
        ours = min(ours, policy.budget_cap_bytes)
    return max(ours, 0)


def largest_budget_bytes(machine: Machine, policy: Policy) -> int:
    """The budget if nothing else used the machine."""
    whole = int(policy.budget_share * machine.most_bytes)
    return min(whole, policy.budget_cap_bytes) if policy.budget_cap_bytes else whole


def budget_of(size_bytes: int, used_bytes: int, ours_bytes: int, share: float) -> int:
    """The share of RAM or of a limit, less what other programs use of it."""
    return int(share * size_bytes) - max(used_bytes - ours_bytes, 0)
