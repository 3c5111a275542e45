"""What a herd may cost, shared by runs that say what they cost at their end."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramherd.supervisor.cost_limit import LEAST_USD, CostLimit
from support.reached import Reached


def test_each_is_told_an_even_share() -> None:
    """The first does not get all: the sum is what is left."""
    cost_limit = CostLimit(9.0, "abc")
    for job in "abc":
        assert cost_limit.share_usd() == pytest.approx(3.0)
        cost_limit.set_share(job, cost_limit.share_usd())


def test_what_one_does_not_spend_is_for_the_others() -> None:
    """Once it has ended for good; what it did not say may be spent."""
    cost_limit = CostLimit(9.0, "abc")
    cost_limit.set_share("a", 3.0)
    cost_limit.spent_usd += 1.0
    cost_limit.end_run("a", reported=True)
    cost_limit.end_job("a")
    assert cost_limit.share_usd() == pytest.approx(4.0)

    cost_limit.set_share("b", 4.0)
    cost_limit.end_run("b", reported=False)
    assert cost_limit.share_usd() == pytest.approx(2.0)
    cost_limit.set_share("b", 2.0)
    cost_limit.spent_usd += 5.0
    cost_limit.end_run("b", reported=True)
    assert cost_limit.share_usd() == pytest.approx(1.5)


def test_nobody_starts_for_a_small_share_while_another_may_leave_more() -> None:
    """Each start sends the whole history again; alone, it takes what is there."""
    cost_limit = CostLimit(10.0, "ab")
    cost_limit.set_share("a", 5.0)
    cost_limit.spent_usd += 4.0
    assert not cost_limit.may_start("b")
    assert cost_limit.may_start("of another kind")

    cost_limit.end_run("a", reported=True)
    assert cost_limit.may_start("b")


@given(
    st.lists(
        st.tuples(st.integers(0, 9), st.floats(0, 1.5), st.booleans()), min_size=15, max_size=60
    )
)
def test_spent_and_promised_are_never_above_the_limit(
    reached: Reached, steps: list[tuple[int, float, bool]]
) -> None:
    """Whoever starts and ends, and however much of it they take."""
    cost_limit, told = CostLimit(10.0, map(str, range(10))), dict[str, float]()
    for number, part, over in steps:
        job = str(number)
        if job in told:
            cost_limit.spent_usd += min(part, 1.0) * told.pop(job)
            cost_limit.end_run(job, reported=True)
            if over:
                cost_limit.end_job(job)
        elif cost_limit.may_start(job):
            told[job] = cost_limit.share_usd()
            cost_limit.set_share(job, told[job])
        # A start with nothing left is told the least that a CLI takes.
        assert cost_limit.spent_usd + sum(told.values()) <= 10.0 + len(steps) * LEAST_USD
    reached(cost_limit.spent_usd + sum(told.values()) > 5.0, "half of the limit")
