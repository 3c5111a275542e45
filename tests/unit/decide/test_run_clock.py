"""Which time counts for a run."""

import pytest

from ramherd.decide.run_clock import LEAST_JUMP_S, LONGEST_STEP_S, find_gap_s, find_jump_s


@pytest.mark.parametrize(
    ("passed_s", "gap_s"),
    [(0.5, 0.0), (LONGEST_STEP_S, 0.0), (LONGEST_STEP_S + 0.25, 5.25), (3600.0, 3600.0)],
)
def test_a_long_time_between_two_steps_does_not_count(passed_s: float, gap_s: float) -> None:
    """A step that takes slightly longer does count."""
    assert find_gap_s(100.0, 100.0 + passed_s) == gap_s


@pytest.mark.parametrize(
    ("moved_s", "jump_s"),
    [(0.0, 0.0), (1.5, 0.0), (-1.5, 0.0), (LEAST_JUMP_S, 2.0), (-3600.0, -3600.0)],
)
def test_a_wall_clock_that_was_set_is_noticed(moved_s: float, jump_s: float) -> None:
    """In both directions; a small correction of the clock does not count."""
    assert find_jump_s(1000.0, 1000.0 + moved_s) == jump_s
