"""This application's part of the machine, asked of the ledger once a tick."""

from dataclasses import dataclass

from ramherd.core.errors import StoreError
from ramherd.core.memory import Scene
from ramherd.core.model import Machine
from ramherd.core.policies import GrantPolicy, Policy
from ramherd.decide.budget import budget_bytes
from ramherd.decide.governor.leases import waiting_since, wanted_lease
from ramherd.store.ledger import Answer, Ask, Ledger, OtherUse

# Who is held is not made to wait for the next tick, but the ledger is not asked at each event.
AGAIN_S = 0.02


@dataclass
class Lease:
    ledger: Ledger
    policy: Policy
    grants: GrantPolicy
    budget_bytes: int = 0
    lease_bytes: int = 0
    others: tuple[OtherUse, ...] = ()
    # What is wrong with the ledger: the last answer holds until that is over.
    trouble: str = ""
    _asked_s: float = float("-inf")

    def renew(self, machine: Machine, fleet_used_bytes: int, scene: Scene) -> None:
        self._asked_s = scene.at_s
        self.budget_bytes = budget_bytes(machine, fleet_used_bytes, self.policy)
        whole = budget_bytes(machine, fleet_used_bytes, self.policy, capped=False)
        ask = Ask(
            wants_bytes=wanted_lease(scene, self.grants),
            used_bytes=fleet_used_bytes,
            granted_bytes=sum(run.grant_bytes for run in scene.runs) + scene.ending_bytes,
            waiting_since_s=waiting_since(scene),
        )
        try:
            self._take(self.ledger.ask(ask, whole))
            self.trouble = ""
        except StoreError as error:
            self.trouble = str(error)
            self.lease_bytes = min(self.lease_bytes, self.budget_bytes)

    def _take(self, answer: Answer) -> None:
        self.others = answer.others
        self.lease_bytes = min(answer.target_bytes, self.budget_bytes)

    def is_due(self, scene: Scene) -> bool:
        """Somebody stands still, and there may be more than we asked for last."""
        held = any(run.held_since_s is not None for run in scene.runs)
        return held and self.lease_bytes < self.budget_bytes and self._is_old(scene.at_s)

    def _is_old(self, at_s: float) -> bool:
        return at_s - self._asked_s >= AGAIN_S
