"""Whether `ramherd exec` may start: its program is never held, so it has to fit from the start."""

from ramherd.core.model import Machine, Reason, Why
from ramherd.core.policies import Policy
from ramherd.decide.budget import budget_bytes, largest_budget_bytes


def find_obstacle(need_bytes: int, machine: Machine, policy: Policy) -> Reason | None:
    """None if the program may start; `too_big` if waiting does not help."""
    most = largest_budget_bytes(machine, policy)
    if need_bytes > most:
        return Reason(Why.TOO_BIG, need_bytes=need_bytes, budget_bytes=most)
    budget = budget_bytes(machine, 0, policy)
    if need_bytes > budget:
        return Reason(
            Why.NO_ROOM_BUDGET, need_bytes=need_bytes, have_bytes=budget, budget_bytes=most
        )
    if need_bytes > machine.free_bytes:
        return Reason(Why.NO_ROOM_MACHINE, need_bytes=need_bytes, have_bytes=machine.free_bytes)
    return None


def find_lease_obstacle(
    need_bytes: int, lease_bytes: int, machine: Machine, policy: Policy
) -> Reason | None:
    """The same for the lease: other applications may hold the rest of the budget."""
    if lease_bytes >= need_bytes:
        return None
    budget = budget_bytes(machine, 0, policy, capped=False)
    return Reason(
        Why.NO_ROOM_BUDGET, need_bytes=need_bytes, have_bytes=lease_bytes, budget_bytes=budget
    )
