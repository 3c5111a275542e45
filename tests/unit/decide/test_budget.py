"""The budget: the existing memory, less what other programs use."""

from hypothesis import given
from hypothesis import strategies as st

from ramherd.core.model import Limit, Machine
from ramherd.core.units import GIB
from ramherd.decide.budget import budget_bytes, largest_budget_bytes
from support.make import MACHINE, policy
from support.reached import Reached

SIZES = st.integers(0, 1 << 40)


def test_what_others_use_is_not_ours() -> None:
    """Half of 16 GiB, less the 2 GiB that other programs use."""
    assert budget_bytes(MACHINE, 0, policy()) == 6 * GIB


def test_what_the_fleet_uses_is_not_outside() -> None:
    """The budget does not shrink because runs use it."""
    assert budget_bytes(MACHINE, 2 * GIB, policy()) == 8 * GIB
    # The fleet and the machine are not measured at the same moment.
    assert budget_bytes(MACHINE, 3 * GIB, policy()) == 8 * GIB


def test_the_budget_flag_is_a_cap_and_no_promise() -> None:
    """`--budget` can lower the budget, but never raises it."""
    assert budget_bytes(MACHINE, 0, policy(budget_cap_bytes=GIB)) == GIB
    assert budget_bytes(MACHINE, 0, policy(budget_cap_bytes=99 * GIB)) == 6 * GIB


def test_a_limit_we_live_under_counts_what_is_used_below_it() -> None:
    """The limit of a 4 GiB container does not count memory used elsewhere on the machine."""
    machine = Machine(64 * GIB, 20 * GIB, (Limit(4 * GIB, GIB),))

    assert budget_bytes(machine, 0, policy(budget_share=1.0)) == 3 * GIB
    assert budget_bytes(machine, GIB, policy(budget_share=1.0)) == 4 * GIB
    assert largest_budget_bytes(machine, policy(budget_share=1.0)) == 4 * GIB


def test_the_tightest_of_all_limits_holds() -> None:
    """RAM, a container in it and a cgroup in that: the smallest remainder counts."""
    limits = (Limit(8 * GIB, 7 * GIB), Limit(4 * GIB, GIB))
    machine = Machine(16 * GIB, 10 * GIB, limits)

    assert budget_bytes(machine, 0, policy(budget_share=1.0)) == GIB
    assert machine.free_bytes == GIB
    assert machine.most_bytes == 4 * GIB


@given(
    st.builds(
        Machine,
        SIZES,
        SIZES,
        st.lists(st.builds(Limit, SIZES, SIZES, SIZES), max_size=2).map(tuple),
        SIZES,
    ),
    SIZES,
    st.none() | st.integers(1, 1 << 40),
)
def test_the_budget_lies_between_nothing_and_the_largest(
    reached: Reached, machine: Machine, fleet: int, cap: int | None
) -> None:
    """Whatever is measured, in any order: never below zero, never above the largest budget."""
    capped = policy(budget_cap_bytes=cap)

    budget = budget_bytes(machine, fleet, capped)
    reached(budget == 0, "nothing left")
    reached(budget > 0, "a budget")
    assert budget >= 0
    if reached(machine.available_bytes <= machine.total_bytes, "a look at one moment"):
        assert budget_bytes(machine, fleet, capped) <= largest_budget_bytes(machine, capped)


def test_runs_of_other_ramherds_are_not_outside() -> None:
    """They count as runs: the ledger divides the budget among all ramherds."""
    machine = Machine(16 * GIB, 9 * GIB, herds_used_bytes=5 * GIB)

    assert budget_bytes(machine, 0, policy()) == 6 * GIB
    assert budget_bytes(machine, 2 * GIB, policy()) == 8 * GIB
    # The sizes that they report are older than the measured ones.
    assert budget_bytes(Machine(16 * GIB, 9 * GIB, (), 99 * GIB), 0, policy()) == 8 * GIB


def test_another_ramherd_counts_only_in_the_limits_it_lives_under() -> None:
    """3 GiB of our 4 GiB container are used, 1 GiB by runs of the other; its rest is outside."""
    inside = Machine(64 * GIB, 60 * GIB, (Limit(4 * GIB, 3 * GIB, GIB),), 2 * GIB)
    outside = Machine(64 * GIB, 60 * GIB, (Limit(4 * GIB, 3 * GIB, 0),), 2 * GIB)
    rules = policy(budget_share=1.0)

    assert budget_bytes(inside, 0, rules) == 2 * GIB
    assert budget_bytes(outside, 0, rules) == GIB


def test_the_ledger_divides_what_is_there_without_our_cap() -> None:
    """`--budget` caps only our part: other applications may use the rest."""
    capped = policy(budget_cap_bytes=GIB)

    assert budget_bytes(MACHINE, 0, capped, capped=False) == 6 * GIB
    assert largest_budget_bytes(MACHINE, capped) == GIB
