"""The bytes of one lease while one round of decisions goes on.

Every rule takes from here and gives back to here, so that no two rules promise the same byte.
"""

from collections.abc import Iterable, Sequence
from itertools import chain

from ramherd.grants import Grant, GrantPolicy, Penned, Scene
from ramherd.model import Reason, Why


class Room:
    def __init__(self, scene: Scene, policy: GrantPolicy) -> None:
        self.scene, self.policy = scene, policy
        self.grants = {run.run: run.grant_bytes for run in scene.runs}
        self.free_bytes = scene.lease_bytes - sum(self.grants.values())
        self.lowered: dict[str, Grant] = {}
        self.raised: dict[str, Grant] = {}

    @property
    def debt_bytes(self) -> int:
        return max(-self.free_bytes, 0)

    def lower(self, run: Penned, grant_bytes: int, reason: Reason) -> int:
        """The bytes that became free by it."""
        gain = self.grants[run.run] - grant_bytes
        if gain <= 0:
            return 0
        self.grants[run.run] = grant_bytes
        self.free_bytes += gain
        self.lowered[run.run] = Grant(run.run, grant_bytes, reason)
        return gain

    def grow(self, run: Penned, extra_bytes: int, reason: Reason) -> None:
        self.grants[run.run] += extra_bytes
        self.free_bytes -= extra_bytes
        self.raised[run.run] = Grant(run.run, self.grants[run.run], reason)

    def make(self, need_bytes: int) -> int:
        """What of `need_bytes` there is, at most by taking what others do not use."""
        if self.free_bytes < need_bytes:
            self._reclaim(need_bytes)
        return max(min(need_bytes, self.free_bytes), 0)

    def _reclaim(self, need_bytes: int) -> None:
        slim = self.policy.slim_bytes
        for run in self._givers():
            floor = max(run.used_bytes + slim, run.promised_bytes)
            missing = need_bytes - self.free_bytes
            if missing <= 0:
                return
            to = max(floor, self.grants[run.run] - missing)
            self.lower(run, to, Reason(Why.GIVES_ROOM, used_bytes=run.used_bytes))

    def _givers(self) -> Iterable[Penned]:
        """The grown ones first: a young one is about to use what it was given."""
        at_s, young_s = self.scene.at_s, self.policy.young_s
        idle = [run for run in self.scene.runs if is_at_work(run) and run.run not in self.raised]
        young = [run for run in idle if at_s - run.started_s < young_s]
        return chain((run for run in idle if at_s - run.started_s >= young_s), young)


def is_at_work(run: Penned) -> bool:
    """Neither held nor on its way out: what it does not use is idle."""
    return run.held_since_s is None and not run.leaving


def oldest_first(runs: Iterable[Penned]) -> Sequence[Penned]:
    return sorted(runs, key=lambda run: run.age)
