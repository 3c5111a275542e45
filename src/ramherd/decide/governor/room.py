"""The bytes of one lease during one round of decisions.

Every rule takes bytes from here and returns them here, so that no two rules promise the same byte.
"""

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet

from ramherd.core.memory import Grant, Penned, Scene
from ramherd.core.model import Reason, Why
from ramherd.core.policies import GrantPolicy


class Room:
    def __init__(self, scene: Scene, policy: GrantPolicy) -> None:
        self.scene, self.policy = scene, policy
        self.grants = {run.run: run.grant_bytes for run in scene.runs}
        self.free_bytes = scene.lease_bytes - sum(self.grants.values())
        self.lowered: dict[str, Grant] = {}
        self.raised: dict[str, Grant] = {}
        # Runs that keep their grant for now, whether they use it or not.
        self.kept: AbstractSet[str] = frozenset()
        self._givers: list[tuple[Penned, int]] | None = None

    @property
    def debt_bytes(self) -> int:
        return max(-self.free_bytes, 0)

    def lower(self, run: Penned, grant_bytes: int, reason: Reason) -> int:
        """Returns the bytes that became free."""
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
        """How much of `need_bytes` is free, if necessary after taking idle memory of other runs."""
        if self.free_bytes < need_bytes:
            self._reclaim(need_bytes)
        return max(min(need_bytes, self.free_bytes), 0)

    def _reclaim(self, need_bytes: int) -> None:
        """A run that gave all it could is not asked again in this round."""
        if self._givers is None:
            self._givers = self._find_givers()
        while self._givers and self.free_bytes < need_bytes:
            run, floor = self._givers[-1]
            to = max(floor, self.grants[run.run] - (need_bytes - self.free_bytes))
            if to == floor:
                self._givers.pop()
            self.lower(run, to, Reason(Why.GIVES_ROOM, used_bytes=run.used_bytes))

    def _find_givers(self) -> list[tuple[Penned, int]]:
        """Each run with the smallest grant that it can live with; the first to give is last in the
        list. Old runs give first: a young run is about to use its grant.
        """
        slim = self.policy.slim_bytes
        idle = [
            (run, floor)
            for run in self.scene.runs
            if self.grants[run.run] > (floor := max(run.used_bytes + slim, run.promised_bytes))
            and is_at_work(run)
            and run.run not in self.kept
        ]
        at_s, young_s = self.scene.at_s, self.policy.young_s
        idle.sort(key=lambda giver: at_s - giver[0].started_s >= young_s)
        return idle


def is_at_work(run: Penned) -> bool:
    """Neither held nor leaving: the memory that it does not use is idle."""
    return run.held_since_s is None and not run.leaving


def oldest_first(runs: Iterable[Penned]) -> Sequence[Penned]:
    return sorted(runs, key=lambda run: run.age)
