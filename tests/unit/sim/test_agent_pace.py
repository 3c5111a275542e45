"""The fake agent's time: each sample in turn, and none while it is held."""

import pytest

from ramherd.sim import agent
from ramherd.sim.profiles import Profile, flat


class Clock:
    """Sleeps take no time to run; one of them can last longer than asked, as in a freezer."""

    def __init__(self) -> None:
        self.now_s = 100.0
        self.frozen_s = 0.0

    def monotonic(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds + self.frozen_s
        self.frozen_s = 0.0


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(agent, "time", clock)
    return clock


def test_a_profile_takes_its_time(clock: Clock) -> None:
    """Steps between the samples do not add up to a drift."""
    list(agent.steps(flat(1, 7.25), 0.0))

    assert clock.now_s == pytest.approx(107.25)


def test_time_in_a_freezer_does_no_work(clock: Clock) -> None:
    """Held for an hour, it needs an hour longer: holding is never free in a benchmark."""
    for at_s in agent.steps(flat(1, 5), 0.0):
        clock.frozen_s = 3600.0 if at_s == 0 else 0.0

    # The one step after the freezer comes at once.
    assert clock.now_s == pytest.approx(3705, abs=0.11)


def test_small_delays_are_made_up(clock: Clock) -> None:
    """Waking 10 ms late a hundred times is not a second in the end."""
    for _ in agent.steps(flat(1, 5), 0.0):
        clock.now_s += 0.01

    assert clock.now_s == pytest.approx(105, abs=0.02)


def test_no_sample_is_passed_over_when_late(clock: Clock) -> None:
    """A burst shorter than the delay is still allocated."""
    profile = Profile("p", tuple(i / 100 for i in range(11)), tuple(range(11)))
    seen = []
    for at_s in agent.steps(profile, 0.0):
        clock.now_s += 1.0
        seen.append(profile.sample_at(at_s))

    assert seen == list(range(10))


def test_a_resumed_agent_has_only_the_rest_before_it(clock: Clock) -> None:
    """From the middle, half the time."""
    assert next(agent.steps(flat(1, 10), 5.0)) == 5.0
    list(agent.steps(flat(1, 10), 5.0))

    assert clock.now_s == pytest.approx(105)


def test_there_is_nothing_to_do_behind_the_end(clock: Clock) -> None:
    """Resumed after its last second."""
    assert list(agent.steps(flat(1, 10), 10.0)) == []
