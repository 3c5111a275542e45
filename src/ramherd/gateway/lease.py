"""The gateway's lease of the machine: its own memory and that of its servers. It waits for nobody
and is never held: without a lease its memory counts as memory of other programs.
"""

from ramherd.act.runtime_files import RuntimeFiles
from ramherd.core.errors import StoreError
from ramherd.core.policies import Policy
from ramherd.core.units import MIB
from ramherd.decide.budget import budget_bytes
from ramherd.measure.cgroups import Trees
from ramherd.measure.machine import read_machine
from ramherd.store.ledger import Ask, Ledger
from ramherd.store.owner import Owner

KIND = "mcp"
RESERVE_BYTES = 64 * MIB
# Each server may grow by this until the lease is renewed.
QUANTUM_BYTES = 32 * MIB
# Calls wait meanwhile.
PATIENCE_S = 0.02


class GatewayLease:
    def __init__(self, runtime: RuntimeFiles, owner: Owner, trees: Trees, policy: Policy) -> None:
        self._runtime, self._owner, self._trees, self._policy = runtime, owner, trees, policy
        self._ledger: Ledger | None = None
        self._others: list[tuple[int, int]] = []
        self.bytes = 0

    def renew(self, own_bytes: int, server_bytes: list[int]) -> None:
        """A ledger that does not answer is asked again at the next tick."""
        used = own_bytes + sum(server_bytes)
        wants = max(RESERVE_BYTES, own_bytes) + sum(one + QUANTUM_BYTES for one in server_bytes)
        try:
            if self._ledger is None:
                path = self._runtime.path
                self._ledger = Ledger(path / "ledger.db", path, self._owner)
                self._runtime.parts.append(self._ledger.restore)
                self._ledger.file.patience_s = PATIENCE_S
            machine = read_machine(self._trees, herds=self._others)
            budget = budget_bytes(machine, used, self._policy, capped=False)
            answer = self._ledger.ask(Ask(wants, used, used, None, KIND), budget)
        except StoreError:
            return
        self._others = [(other.pid, other.used_bytes) for other in answer.others]
        self.bytes = answer.lease_bytes

    def close(self) -> None:
        if self._ledger is not None:
            self._ledger.close()
