"""The cost of one round of the governor: it grows no faster than the number of runs."""

import sys
from collections.abc import Callable
from functools import partial
from types import FrameType

import pytest

from ramherd.core.memory import History, Penned, Scene
from ramherd.core.policies import GrantPolicy
from ramherd.decide.governor.govern import govern
from unit.decide.governor.scenes import held, pen, scene, waiting_job

POLICY = GrantPolicy()


def count_calls(act: Callable[[], object]) -> int:
    """Calls of Python and C functions: the same on each machine, however busy it is."""
    calls = 0

    def count(_frame: FrameType, event: str, _arg: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        act()
    finally:
        sys.setprofile(before)
    return calls


def many(number: int, *, every_held: int | None, lease_mb: float) -> Scene:
    def one(at: int) -> Penned:
        is_held = every_held is not None and at % every_held == 0
        return held(f"r{at}", 10, 990.0) if is_held else pen(f"r{at}", 8, 40)

    runs = [one(at) for at in range(1, number + 1)]
    return scene(lease_mb * number, *runs, at_s=1000.0, queue=[waiting_job(9000)])


@pytest.mark.parametrize("every_held", [None, 10, 2])
@pytest.mark.parametrize("lease_mb", [16.0, 80.0])
def test_the_cost_of_a_round_grows_no_faster_than_the_runs(
    every_held: int | None, lease_mb: float
) -> None:
    """From 50 to 500 runs at most eleven times, with room and without."""
    few, lots = (
        count_calls(partial(govern, at, History(), POLICY))
        for at in (many(number, every_held=every_held, lease_mb=lease_mb) for number in (50, 500))
    )

    assert lots <= 11 * few
