"""Admission in full, for a session that does not obviously fit: the machine, then the ledger."""

import os
import sqlite3
import sys
import time
from pathlib import Path

from ramherd.core.errors import NoRoom, StoreError
from ramherd.core.model import ProcId, Reason, Why
from ramherd.core.policies import Policy
from ramherd.decide.admission import find_obstacle
from ramherd.decide.budget import budget_bytes
from ramherd.exec.lease import KIND
from ramherd.measure.cgroups import read_trees
from ramherd.measure.machine import read_machine
from ramherd.show.reasons import render_reason
from ramherd.store.ledger import Ask, Ledger, OtherUse
from ramherd.store.owner import Owner
from ramherd.system.procfs import read_boot_id, read_process


class Asking:
    def __init__(
        self, name: str, need_bytes: int, ledger: str, owner: str, *, no_wait: bool
    ) -> None:
        self._name, self._need, self._no_wait = name, need_bytes, no_wait
        self._since_s = time.monotonic()
        self._others: tuple[OtherUse, ...] = ()
        self._ledger = open_ledger(Path(ledger), owner)

    def ask(self) -> tuple[str, str] | None:
        """None when it may start; else why not, as a word and as a sentence."""
        reason = self._find_obstacle()
        if reason is None:
            return None
        if reason.why is Why.TOO_BIG or self._no_wait:
            also = ", and --no-wait was given" if self._no_wait else ""
            hint = "ask for less: --memory 256MiB"
            raise NoRoom(f"{self._name} {render_reason(reason)}{also}", hint=hint)
        return reason.why.value, render_reason(reason)

    def _find_obstacle(self) -> Reason | None:
        policy, herds = Policy(), [(other.pid, other.used_bytes) for other in self._others]
        machine = read_machine(read_trees(), herds=herds)
        obstacle = find_obstacle(self._need, machine, policy)
        if self._ledger is None or (obstacle is not None and obstacle.why is Why.TOO_BIG):
            return obstacle
        budget = budget_bytes(machine, 0, policy)
        ask = Ask(self._need, waiting_since_s=self._since_s, kind=KIND, granted_bytes=self._need)
        answer = self._ledger.ask(ask, budget)
        self._others = answer.others
        if obstacle is None and answer.lease_bytes < self._need:
            have = answer.lease_bytes
            return Reason(
                Why.NO_ROOM_BUDGET, need_bytes=self._need, have_bytes=have, budget_bytes=budget
            )
        return obstacle

    def close(self) -> None:
        """The lease stays: it is the session's."""
        if self._ledger is not None:
            self._ledger.detach()


def open_ledger(path: Path, owner: str) -> Ledger | None:
    """A ledger that cannot be used keeps nobody from working."""
    own = read_process(os.getpid())
    proc = own.id if own is not None else ProcId(os.getpid(), 0)
    try:
        return Ledger(path, path.parent, Owner(owner, read_boot_id(), proc))
    except (StoreError, sqlite3.Error) as error:
        print(f"ramherd: {error}: going on without a lease", file=sys.stderr)
        return None
