"""The moments of the memory history that are kept, and those that a chart gets."""

from itertools import pairwise

import pytest

from ramherd.core.memory_moment import MemoryMoment
from ramherd.decide.history_steps import STEPS, choose_step, is_fuller, start_of_step, thin_out

NOW_S = 1_000_000
DAY_S = 86_400


def moment(at_s: int, used: int = 0, available: int = 100) -> MemoryMoment:
    return MemoryMoment(at_s, 200, available, 150, used, used, "calm")


def test_longer_steps_are_kept_longer() -> None:
    """Each is a multiple of the one before, and all have about as many moments."""
    for finer, coarser in pairwise(STEPS):
        assert coarser.step_s % finer.step_s == 0
        assert coarser.keep_s > finer.keep_s
    assert max(step.keep_s // step.step_s for step in STEPS) <= 3000


@pytest.mark.parametrize(("at_s", "start_s"), [(600, 600), (601, 600), (899, 600), (900, 900)])
def test_a_step_begins_at_a_multiple_of_its_length(at_s: int, start_s: int) -> None:
    """So that two services in a row mean the same step."""
    assert start_of_step(at_s, 300) == start_s


def test_the_fuller_of_two_moments() -> None:
    """By what the runs use, then by what the machine has left; the later one if both are equal."""
    assert is_fuller(moment(1, used=5), moment(2, used=4))
    assert not is_fuller(moment(1, used=4), moment(2, used=5))
    assert is_fuller(moment(1, available=50), moment(2, available=60))
    assert is_fuller(moment(2), moment(1))


@pytest.mark.parametrize(
    ("ago_s", "most", "step_s"),
    [
        (600, 600, 1),
        (600, 599, 10),
        (601, 1000, 10),
        (6 * 3600, 2160, 10),
        (6 * 3600, 600, 60),
        (DAY_S, 2000, 60),
        (2 * DAY_S + 1, 3000, 300),
        (7 * DAY_S, 100, 300),
        (30 * DAY_S, 2000, 300),
    ],
)
def test_the_finest_step_that_fits(ago_s: int, most: int, step_s: int) -> None:
    """It reaches back far enough, and has no more moments than asked for."""
    assert choose_step(NOW_S - ago_s, NOW_S, NOW_S, most).step_s == step_s


def test_a_short_stretch_of_long_ago_has_the_step_that_is_left_of_it() -> None:
    """The seconds of yesterday are gone."""
    assert choose_step(NOW_S - DAY_S, NOW_S - DAY_S + 300, NOW_S, 600).step_s == 60


def test_thinning_keeps_the_peaks() -> None:
    """Of a thousand moments a hundred, among them the highest, in order."""
    moments = [moment(at_s, used=900 if at_s == 457 else at_s % 7) for at_s in range(1000)]

    kept = thin_out(moments, 100)

    assert len(kept) == 100
    assert 457 in [one.at_s for one in kept]
    assert [one.at_s for one in kept] == sorted(one.at_s for one in kept)
    assert thin_out(kept, 100) == kept
    assert thin_out([], 5) == []
