"""How much all runs together may hold: what memory there is, less what others use."""

from ramherd.core.machine import Limit, Machine
from ramherd.core.policies import Policy


def budget_bytes(
    machine: Machine, fleet_used_bytes: int, policy: Policy, *, capped: bool = True
) -> int:
    """The share of memory that is for runs now: of RAM, less what others use of it, and likewise
    of each limit that we live under. Runs of other ramherds are runs as well: the
    ledger divides the budget among them. `--budget` is a cap on our part, never a promise.
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
    """What the budget could be with nothing else on the machine."""
    whole = int(policy.budget_share * machine.most_bytes)
    return min(whole, policy.budget_cap_bytes) if policy.budget_cap_bytes else whole


def budget_of(size_bytes: int, used_bytes: int, ours_bytes: int, share: float) -> int:
    """The share of RAM or of a limit, less what others use of it."""
    return int(share * size_bytes) - max(used_bytes - ours_bytes, 0)
