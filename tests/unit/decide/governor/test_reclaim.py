"""Whose cold memory goes to swap: how much, when, and when not."""

from dataclasses import replace

import pytest

from ramherd.core.memory import MB, Scene
from ramherd.core.model import Reason, Why
from ramherd.core.policies import GrantPolicy
from ramherd.core.units import GIB, MIB
from ramherd.decide.governor.reclaim import IdleRun, Reclaim, choose_reclaim, count_waiters
from unit.decide.governor.scenes import held, pen, scene

POLICY = GrantPolicy()
WAITING = scene(1000, held("r1", 500, 99.5), pen("r2", 120, 152))
IDLE = IdleRun("r2", 120 * MIB)


def choose(
    *idle: IdleRun, at: Scene = WAITING, free_swap: int = GIB, **changes: float
) -> Reclaim | None:
    changed = replace(at, **changes)  # type: ignore[arg-type]
    return choose_reclaim(changed, idle or [IDLE], free_swap, POLICY)


def test_an_idle_agent_gives_while_a_run_waits() -> None:
    """64 MiB at a time, with the number of waiting runs."""
    assert choose() == Reclaim("r2", 64 * MIB, Reason(Why.RECLAIM, most_bytes=64 * MIB, waiting=1))


def test_a_run_that_was_just_held_is_not_waiting_yet() -> None:
    """Most holds only last until the grant is raised."""
    at = scene(
        1000, held("r1", 500, 99.5), held("r2", 5, 99.6), held("r3", 5, 90.0), pen("r4", 1, 1)
    )

    assert count_waiters(at, POLICY) == 2
    assert choose(at=scene(1000, held("r1", 500, 99.6), pen("r2", 120, 152))) is None
    assert choose(at=scene(1000, pen("r1", 500, 500), pen("r2", 120, 152))) is None


def test_pressure_and_swapping_in_stop_it() -> None:
    """From the second marks on: more would only move back and forth."""
    assert choose(memory_pressure=0.10) is None
    assert choose(memory_pressure=0.09) is not None
    assert choose(swap_in_bytes_per_s=float(MIB)) is None
    assert choose(swap_in_bytes_per_s=float(MIB - 1)) is not None


def test_the_largest_that_has_not_given_for_a_while_gives() -> None:
    """Each agent once in 30 s."""
    small, large = IdleRun("r2", 110 * MIB), IdleRun("r3", 300 * MIB, 70.1)

    first = choose(small, large)
    assert first is not None
    assert first.run == "r2"
    second = choose(small, large._replace(reclaimed_s=70.0))
    assert second is not None
    assert second.run == "r3"
    assert choose(small._replace(reclaimed_s=99.0), large) is None
    third = choose(small, IdleRun("r1", 300 * MIB))
    assert third is not None
    assert third.run == "r1"


@pytest.mark.parametrize(
    ("used", "most"),
    [(79 * MIB, None), (80 * MIB, 32 * MIB), (100 * MIB, 52 * MIB), (800 * MIB, 64 * MIB)],
)
def test_an_agent_keeps_what_it_works_with(used: int, most: int | None) -> None:
    """48 MiB; and less than a quantum is not moved."""
    chosen = choose(IdleRun("r2", used))

    assert (chosen.most_bytes if chosen is not None else None) == most


@pytest.mark.parametrize(
    ("free", "most"), [(0, None), (64 * MIB - 2, None), (64 * MIB, 32 * MIB), (100 * MIB, 50 * MIB)]
)
def test_half_of_the_free_swap_is_left_alone(free: int, most: int | None) -> None:
    """Without swap nothing is moved."""
    chosen = choose(free_swap=free)

    assert (chosen.most_bytes if chosen is not None else None) == most


def test_nothing_is_idle() -> None:
    """Commands, and agents in their tools."""
    assert choose_reclaim(WAITING, [], GIB, POLICY) is None
    assert WAITING.lease_bytes == 1000 * MB
