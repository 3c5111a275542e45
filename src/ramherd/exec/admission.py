"""Decides whether a session may start: asks the machine and the ledger until both have room.

A session is never held at a grant, so its lease is the requested size, from its start to its end.
"""

import sys
import time

from ramherd.act.runtime_files import RuntimeFiles
from ramherd.core.errors import NoRoom, StoreError
from ramherd.core.model import Job, Reason, Why
from ramherd.core.policies import Policy
from ramherd.decide.budget import budget_bytes
from ramherd.decide.exec_admission import find_lease_obstacle, find_obstacle
from ramherd.measure.cgroups import Trees
from ramherd.measure.machine import read_machine
from ramherd.store.ledger import Answer, Ask, Ledger
from ramherd.store.owner import Owner
from ramherd.system.boot_clock import read_boot_s

KIND = "exec"
ASK_EVERY_S = 0.5
# While the program runs, its signals and its end must not wait for the ledger.
RUNNING_PATIENCE_S = 0.05


class Admission:
    def __init__(
        self, job: Job, policy: Policy, *, trees: Trees, runtime: RuntimeFiles, owner: Owner
    ) -> None:
        self._job, self._policy, self._trees = job, policy, trees
        self._since_s = read_boot_s()
        self._lease_bytes = 0
        self._warned = ""
        # (pid, bytes used) of the other applications: their memory is not part of `outside`.
        self._herds: list[tuple[int, int]] = []
        self._runtime, self._owner = runtime, owner
        self._ledger: Ledger | None = None
        try:
            self._open_ledger()
        except StoreError as error:
            self._warn(error)
        self.machine = read_machine(trees)

    def wait(self) -> None:
        """Waits until there is room, after one line with the reason. Raises NoRoom if it may not
        wait or if waiting cannot help.
        """
        shown = None
        while (obstacle := self.find_obstacle()) is not None:
            if obstacle.why is not shown:
                print(self._explain(obstacle), file=sys.stderr, flush=True)
                shown = obstacle.why
            time.sleep(ASK_EVERY_S)

    def _explain(self, obstacle: Reason) -> str:
        from ramherd.show.reasons import render_reason  # noqa: PLC0415 - most sessions fit

        sentence = f"{self._job.name}: {render_reason(obstacle)}"
        if obstacle.why is Why.TOO_BIG:
            raise NoRoom(sentence, hint="pass a smaller --memory, or raise budget or budget_share")
        if self._policy.no_wait:
            raise NoRoom(
                f"{sentence}, and --no-wait was given", hint="pass a smaller --memory, or wait"
            )
        return f"ramherd: {self._job.name} waits: {render_reason(obstacle)} (Ctrl-C to leave)"

    def find_obstacle(self) -> Reason | None:
        """None when the session may start. Only the ledger's answer has the memory of the other
        applications, so a first refusal is checked again with it.
        """
        known = self._herds
        obstacle = self._ask()
        return self._ask() if obstacle is not None and self._herds != known else obstacle

    def _ask(self) -> Reason | None:
        self.machine = read_machine(self._trees, herds=self._herds)
        need = self._job.memory_bytes
        obstacle = find_obstacle(need, self.machine, self._policy)
        if obstacle is not None and obstacle.why is Why.TOO_BIG:
            return obstacle
        answer = self._lease()
        if obstacle is not None or answer is None:
            return obstacle
        return find_lease_obstacle(need, answer.lease_bytes, self.machine, self._policy)

    def renew(self, used_bytes: int, *, is_due: bool) -> None:
        """Reports the memory of the running session, when that is due: memory above its lease
        counts as use by others. A lease that was lost with its ledger, or that the ledger did not
        give, is requested again each time. The terminal is the program's: a recreated runtime
        directory is not reported there.
        """
        self._runtime.restore()
        need = self._job.memory_bytes
        try:
            if self._ledger is None and is_due:
                self._open_ledger()
            if (ledger := self._ledger) is None:
                return
            ledger.file.patience_s = RUNNING_PATIENCE_S
            if self._lease_bytes < need or not ledger.file.is_current():
                self.machine = read_machine(self._trees, herds=self._herds)
                used = min(used_bytes, need)
                self._ask_ledger(ledger, Ask(need, used, need, self._since_s, KIND))
            elif is_due:
                ledger.record_used(used_bytes, KIND)
        except StoreError:
            pass  # the next report may work; a running program does not depend on the ledger

    def _lease(self) -> Answer | None:
        """None if the ledger does not answer: a line names the cause, once."""
        if self._ledger is None:
            return None
        ask = Ask(self._job.memory_bytes, 0, self._lease_bytes, self._since_s, KIND)
        try:
            answer = self._ask_ledger(self._ledger, ask)
        except StoreError as error:
            self._warn(error)
            return None
        for reason in self._ledger.pop_notices():
            from ramherd.show.reasons import render_reason  # noqa: PLC0415 - seldom

            print(f"ramherd: {render_reason(reason)}", file=sys.stderr)
        return answer

    def _ask_ledger(self, ledger: Ledger, ask: Ask) -> Answer:
        """`--budget` caps our request; all applications share the whole budget."""
        budget = budget_bytes(self.machine, ask.used_bytes, self._policy, capped=False)
        answer = ledger.ask(ask, budget)
        self._herds = [(other.pid, other.used_bytes) for other in answer.others]
        self._lease_bytes = answer.lease_bytes
        return answer

    def _open_ledger(self) -> None:
        runtime = self._runtime.path
        self._ledger = Ledger(runtime / "ledger.db", runtime, self._owner)
        self._runtime.parts.append(self._ledger.restore)

    def _warn(self, error: StoreError) -> None:
        """A ledger that cannot be used stops no program; the user gets one message."""
        if str(error) != self._warned:
            print(f"ramherd: {error}: continuing without a lease", file=sys.stderr)
        self._warned = str(error)

    def close(self) -> None:
        if self._ledger is not None:
            self._ledger.close()
