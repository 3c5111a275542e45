"""One machine and the applications on it, second by second, with the ledger's own rules."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ramherd.decide.governor.leases import (
    Lease,
    choose_lease,
    has_run_at_work,
    least_lease,
    waiting_since,
    wanted_lease,
)
from ramherd.sim.application import Application
from ramherd.sim.result import SimCounters

LONGEST_S = 40 * 86_400


@dataclass(frozen=True, slots=True)
class Ground:
    """The machine: the memory for all applications together at each second."""

    budget_at: Callable[[int], int]
    largest_bytes: int


def level_ground(budget_bytes: int) -> Ground:
    return Ground(lambda _at_s: budget_bytes, budget_bytes)


def run_world(
    apps: Sequence[Application],
    ground: Ground,
    tally: SimCounters,
    *,
    longest_s: int = LONGEST_S,
) -> SimCounters:
    """Runs until every job of every application has ended. `tally` is that of the machine."""
    leases = [Lease(str(number), 0) for number in range(len(apps))]
    owed_s = 0
    for app in apps:
        app.largest_bytes = ground.largest_bytes
    while not all(app.is_over for app in apps) and tally.makespan_s < longest_s:
        second = tally.makespan_s
        budget = ground.budget_at(second)
        share_out(apps, leases, budget, float(second))
        for app in apps:
            app.step(float(second))
        granted = sum(app.granted_bytes for app in apps)
        owed_s = owed_s + 1 if granted > budget else 0
        tally.debt_s = max(tally.debt_s, owed_s)
        used = {run.id: run.used for app in apps for run in app.runs.values()}
        tally.see(used)
        # The limit at which runs of peers are killed. After the budget fell, memory above it is
        # debt: the machine keeps a fifth of its memory for that.
        tally.oom_kills += not owed_s and sum(used.values()) > budget
        tally.makespan_s = second + 1
    return tally


def share_out(
    apps: Sequence[Application], leases: list[Lease], budget_bytes: int, at_s: float
) -> None:
    """One application gets all; several apply the ledger's rules one after another."""
    if len(apps) == 1:
        apps[0].lease_bytes = budget_bytes
        return
    for number, app in enumerate(apps):
        scene = app.scene(at_s)
        over = app.is_over
        mine = Lease(
            owner=str(number),
            bytes=leases[number].bytes,
            used_bytes=app.used_bytes,
            wants_bytes=0 if over else wanted_lease(scene, app.policy),
            waiting_since_s=None if over else waiting_since(scene),
        )
        others = [
            lease for place, lease in enumerate(leases)
            if place != number and (lease.bytes or lease.wants_bytes)
        ]  # fmt: skip
        choice = choose_lease(
            mine,
            others,
            budget_bytes,
            granted_bytes=app.granted_bytes,
            least_bytes=least_lease(scene),
            is_at_work=has_run_at_work(scene),
        )
        leases[number] = Lease(
            mine.owner, choice.bytes, mine.used_bytes, mine.wants_bytes, mine.waiting_since_s
        )
        app.lease_bytes = choice.target_bytes
