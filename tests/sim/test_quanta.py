"""Bursts whose growth takes time: between two quanta a run is not held, while others wait.

The simulator grows a run in no time. Here a run fills each quantum in some milliseconds, as on a
real machine, and the governor decides several times meanwhile.
"""

from dataclasses import replace

import pytest

from ramherd.core.memory import MB, Grant, History, Penned, Scene
from ramherd.core.model import Stop
from ramherd.core.policies import GrantPolicy
from ramherd.decide.governor.govern import govern

LEASE_BYTES = 3000 * MB
BASE_BYTES, BURST_BYTES = 110 * MB, 1500 * MB
# A run fills a quantum in the first time; a burst lasts for the second after its last quantum.
FILL_S, BURST_S = 0.010, 3.0
STEP_S, APART_S, MOST_S = 0.005, 0.3, 100.0


class Bursting:
    """One run whose tool call begins to grow at `begin_s`."""

    def __init__(self, number: int, begin_s: float) -> None:
        self.penned = Penned(
            run=f"r{number}", job=f"j{number}", seq=number, first_s=0.0, started_s=0.0,
            used_bytes=BASE_BYTES, grant_bytes=BASE_BYTES,
        )  # fmt: skip
        self.begin_s = begin_s
        self.grown_s = begin_s
        self.full_s: float | None = None

    def advance(self, at_s: float, policy: GrantPolicy) -> None:
        """Fills its grant, and is held there unless the whole burst fits."""
        run = self.penned
        filled = min(run.grant_bytes - policy.arm_below_bytes, BURST_BYTES)
        if self.full_s is not None:
            is_over = at_s - self.full_s >= BURST_S
            self.penned = replace(run, used_bytes=BASE_BYTES if is_over else BURST_BYTES)
        elif at_s < self.begin_s or at_s - self.grown_s < FILL_S:
            return
        elif filled == BURST_BYTES:
            self.penned, self.full_s = replace(run, used_bytes=BURST_BYTES), at_s
        elif run.held_since_s is None:
            self.penned = replace(run, used_bytes=filled, held_since_s=at_s)

    def regrant(self, grant_bytes: int, at_s: float) -> None:
        if grant_bytes > self.penned.grant_bytes:
            self.penned = replace(self.penned, held_since_s=None)
            self.grown_s = at_s
        self.penned = replace(self.penned, grant_bytes=grant_bytes)


def play(bursts: int, policy: GrantPolicy) -> list[str]:
    """The runs that were stopped until all others had their burst."""
    at_s, history = 100.0, History()
    runs = {f"r{n}": Bursting(n, at_s + n * APART_S) for n in range(bursts)}
    stopped: list[str] = []
    while any(run.full_s is None for run in runs.values()):
        assert at_s < 100.0 + MOST_S
        for run in runs.values():
            run.advance(at_s, policy)
        seen = [run.penned for run in runs.values()]
        at = Scene(at_s, LEASE_BYTES, seen, (), LEASE_BYTES, budget_bytes=LEASE_BYTES)
        history, actions = govern(at, history, policy)
        for action in actions:
            if isinstance(action, Grant):
                runs[action.run].regrant(action.grant_bytes, at_s)
            elif isinstance(action, Stop):
                stopped.append(action.run)
                del runs[action.run]
        at_s += STEP_S
    return stopped


@pytest.mark.parametrize(("bursts", "most"), [(3, 0), (4, 0), (6, 1)])
def test_a_burst_between_two_quanta_keeps_its_turn(bursts: int, most: int) -> None:
    """Each is finished before the next one takes its room, and hardly any run is stopped."""
    assert len(play(bursts, GrantPolicy())) <= most


def test_without_its_turn_more_runs_are_stopped() -> None:
    """What the rule is for: half grown bursts block each other."""
    assert len(play(6, GrantPolicy(growing_s=0.0))) > 1
