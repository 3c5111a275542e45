"""Whether a session may start: the machine and the ledger are asked until both have room.

A session is never held at a grant, so its lease is what was asked for, from its start to its end.
"""

import sys
import time
from pathlib import Path

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

KIND = "exec"
ASK_EVERY_S = 0.5


class Admission:
    def __init__(
        self, job: Job, policy: Policy, *, trees: Trees, runtime: RuntimeFiles, owner: Owner
    ) -> None:
        self._job, self._policy, self._trees = job, policy, trees
        self._since_s = time.monotonic()
        # (pid, bytes used) of the other applications: what they use is no part of `outside`.
        self._herds: list[tuple[int, int]] = []
        self._ledger = open_ledger(runtime.path, owner)
        self._runtime = runtime
        if self._ledger is not None:
            runtime.parts.append(self._ledger.restore)
        self.machine = read_machine(trees)

    def wait(self) -> None:
        """Until there is room, with one line that says why it waits; NoRoom if it may not wait or
        if waiting cannot help.
        """
        shown = None
        while (obstacle := self.find_obstacle()) is not None:
            if obstacle.why is not shown:
                print(self._explain(obstacle), file=sys.stderr, flush=True)
                shown = obstacle.why
            time.sleep(ASK_EVERY_S)

    def _explain(self, obstacle: Reason) -> str:
        from ramherd.show.reasons import render_reason  # noqa: PLC0415 - most sessions fit

        sentence = f"{self._job.name} {render_reason(obstacle)}"
        if obstacle.why is Why.TOO_BIG:
            raise NoRoom(sentence, hint="pass a smaller --memory, or raise budget or budget_share")
        if self._policy.no_wait:
            raise NoRoom(
                f"{sentence}, and --no-wait was given", hint="pass a smaller --memory, or wait"
            )
        return f"ramherd: {self._job.name} waits: {render_reason(obstacle)} (Ctrl-C to leave)"

    def find_obstacle(self) -> Reason | None:
        """None when it may start. What the other applications use is known only from the ledger's
        answer, so a first refusal is looked at again with it.
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
        try:
            answer = self._lease(Ask(need, 0, need, self._since_s, KIND))
        except StoreError as error:
            warn_of_ledger(error)
            self._ledger = answer = None
        if obstacle is not None or answer is None:
            return obstacle
        return find_lease_obstacle(need, answer.lease_bytes, self.machine, self._policy)

    def record_used(self, used_bytes: int) -> None:
        """Reports what the session uses. What it uses above its lease counts as use by others. The
        terminal is the program's: a runtime directory that was made again is no news there.
        """
        self._runtime.restore()
        try:
            if self._ledger is not None:
                self._ledger.record_used(used_bytes, KIND)
        except StoreError:
            pass  # the next report may work; a running program does not depend on the ledger

    def _lease(self, ask: Ask) -> Answer | None:
        """`--budget` caps what we ask for; what all applications share is the whole budget."""
        if self._ledger is None:
            return None
        answer = self._ledger.ask(ask, budget_bytes(self.machine, 0, self._policy, capped=False))
        self._herds = [(other.pid, other.used_bytes) for other in answer.others]
        return answer

    def close(self) -> None:
        """A lease that cannot be given back is void once this process is gone."""
        try:
            if self._ledger is not None:
                self._ledger.close()
        except StoreError:
            pass


def open_ledger(runtime: Path, owner: Owner) -> Ledger | None:
    """A ledger that cannot be used keeps nobody from working."""
    try:
        return Ledger(runtime / "ledger.db", runtime, owner)
    except StoreError as error:
        warn_of_ledger(error)
        return None


def warn_of_ledger(error: StoreError) -> None:
    print(f"ramherd: {error}: going on without a lease", file=sys.stderr)
