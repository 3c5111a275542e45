"""What a supervisor with many small runs may cost."""

import pytest

from bench.crowd import Cost, is_kept, rows

FEW = Cost(50, 0.02, 24.0)


@pytest.mark.parametrize(
    ("most", "kept"),
    [
        (Cost(500, 0.10, 40.0), True),
        (Cost(500, 0.101, 30.0), False),
        (Cost(500, 0.05, 40.1), False),
    ],
)
def test_the_most_runs_stay_within_their_bounds(most: Cost, kept: bool) -> None:
    """Memory and processor time."""
    assert is_kept([FEW, most]) is kept


def test_a_tick_costs_no_more_for_each_of_many_runs() -> None:
    """A fifth more is noise."""
    few = Cost(50, 0.008, 24.0)

    assert is_kept([few, Cost(500, 0.095, 30.0)])
    assert not is_kept([few, Cost(500, 0.098, 30.0)])


def test_a_row_has_the_cost_of_a_tick() -> None:
    """Two ticks a second."""
    assert rows([FEW])[-1] == "| 50 | 10.0 | 200 | 2.0% | 24.0 |"
