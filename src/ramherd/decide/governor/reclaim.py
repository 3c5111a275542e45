"""Whose cold memory goes to swap while another run waits for memory, before a run is preempted.

An agent that waits for its model uses a sixth of its memory (20 of 116 MB, claude). Memory in swap
counts against no grant, and returns within the grant of its run: the sum of grants stays within the
lease whatever is swapped. The total is bounded by the free swap, and stops under pressure.
"""

from collections.abc import Sequence
from typing import NamedTuple

from ramherd.core.memory import Scene
from ramherd.core.model import Reason, Why
from ramherd.core.policies import GrantPolicy
from ramherd.decide.governor.levels import is_pressed


class IdleRun(NamedTuple):
    """An agent between two turns. `reclaimed_s` is when its memory was last moved."""

    run: str
    used_bytes: int
    reclaimed_s: float = float("-inf")


class Reclaim(NamedTuple):
    """Move at most this much of a run's memory to swap."""

    run: str
    most_bytes: int
    reason: Reason


def count_waiters(scene: Scene, policy: GrantPolicy) -> int:
    """Runs that have been held for longer than a grant from free memory takes."""
    return sum(
        run.held_since_s is not None and scene.at_s - run.held_since_s >= policy.reclaim_after_s
        for run in scene.runs
    )


def choose_reclaim(
    scene: Scene, idle: Sequence[IdleRun], free_swap_bytes: int, policy: GrantPolicy
) -> Reclaim | None:
    """Chooses the largest run whose memory was not moved for a while; half of the free swap is left
    alone. None while memory returns from swap or processes wait for it: more would only go back and
    forth.
    """
    waiting = count_waiters(scene, policy)
    if not waiting or is_pressed(scene, policy):
        return None
    rested = [one for one in idle if scene.at_s - one.reclaimed_s >= policy.reclaim_again_s]
    one = max(rested, key=lambda run: run.used_bytes, default=None)
    if one is None:
        return None
    spare = one.used_bytes - policy.reclaim_keep_bytes
    most = min(policy.reclaim_bytes, spare, free_swap_bytes // 2)
    if most < policy.quantum_bytes:
        return None
    return Reclaim(one.run, most, Reason(Why.RECLAIM, most_bytes=most, waiting=waiting))
