"""The budget: what memory there is, less what others use."""

from hypothesis import given
from hypothesis import strategies as st

from ramherd.decide.budget import (
    budget_bytes,
    largest_budget_bytes,
    promised_bytes,
    reserved_bytes,
)
from ramherd.model import Limit, Machine
from ramherd.units import GIB, MIB
from unit.make import MACHINE, job, policy, run, snapshot

SIZES = st.integers(0, 1 << 40)


def test_what_others_use_is_not_ours() -> None:
    """Half of 16 GiB, less the 2 GiB that are used and not by the fleet."""
    assert budget_bytes(MACHINE, 0, policy()) == 6 * GIB


def test_what_the_fleet_uses_is_not_outside() -> None:
    """The budget does not shrink because runs use it."""
    assert budget_bytes(MACHINE, 2 * GIB, policy()) == 8 * GIB
    # A look at the fleet and a look at the machine are not at the same moment.
    assert budget_bytes(MACHINE, 3 * GIB, policy()) == 8 * GIB


def test_the_budget_flag_is_a_cap_and_no_promise() -> None:
    """`--budget` takes away, and never adds."""
    assert budget_bytes(MACHINE, 0, policy(budget_cap_bytes=GIB)) == GIB
    assert budget_bytes(MACHINE, 0, policy(budget_cap_bytes=99 * GIB)) == 6 * GIB


def test_a_limit_we_live_under_counts_what_is_used_below_it() -> None:
    """In a container of 4 GiB what the rest of the machine uses is no concern of its limit."""
    machine = Machine(64 * GIB, 20 * GIB, (Limit(4 * GIB, GIB),))

    assert budget_bytes(machine, 0, policy(budget_share=1.0)) == 3 * GIB
    assert budget_bytes(machine, GIB, policy(budget_share=1.0)) == 4 * GIB
    assert largest_budget_bytes(machine, policy(budget_share=1.0)) == 4 * GIB


def test_the_tightest_of_all_limits_holds() -> None:
    """RAM, a container in it and a cgroup in that: the least of what they leave."""
    limits = (Limit(8 * GIB, 7 * GIB), Limit(4 * GIB, GIB))
    machine = Machine(16 * GIB, 10 * GIB, limits)

    assert budget_bytes(machine, 0, policy(budget_share=1.0)) == GIB
    assert machine.free_bytes == GIB
    assert machine.most_bytes == 4 * GIB


@given(
    st.builds(Machine, SIZES, SIZES, st.lists(st.builds(Limit, SIZES, SIZES)).map(tuple)),
    SIZES,
    st.none() | st.integers(1, 1 << 40),
)
def test_the_budget_lies_between_nothing_and_the_largest(
    machine: Machine, fleet: int, cap: int | None
) -> None:
    """Whatever is measured, in whatever order: never below zero, never above the largest."""
    capped = policy(budget_cap_bytes=cap)

    assert budget_bytes(machine, fleet, capped) >= 0
    if machine.available_bytes <= machine.total_bytes:
        assert budget_bytes(machine, fleet, capped) <= largest_budget_bytes(machine, capped)


def test_a_run_holds_what_it_was_promised_or_uses_if_more() -> None:
    """Reserved counts both; promised only what is still to come."""
    small, large = job("small", memory=100 * MIB), job("large", memory=100 * MIB)
    now = snapshot(run("small", small, used=30 * MIB), run("large", large, used=170 * MIB))

    assert reserved_bytes(now) == 270 * MIB
    assert promised_bytes(now) == 70 * MIB


def test_a_run_is_promised_what_it_was_admitted_with() -> None:
    """A job that was seen to need more than it asked for has more."""
    now = snapshot(run("r", job("r", memory=100 * MIB), used=30 * MIB, need_bytes=300 * MIB))

    assert reserved_bytes(now) == 300 * MIB
    assert promised_bytes(now) == 270 * MIB
