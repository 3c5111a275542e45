"""Ends strays: plans, opens each process by pidfd, scans again, signals, and records every end."""

import signal
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ramherd.strays.judge.reap_plan import ReapPlan, choose_named, choose_orphans, explain_end
from ramherd.strays.nouns import PsRow
from ramherd.strays.render import render_facts
from ramherd.strays.scan import Scan, Scanner
from ramherd.system.pidfd import EndResult, close_processes, end_processes, open_processes

# A process may start another one at its end: the last round leaves no time for that.
ROUNDS = (signal.SIGTERM, signal.SIGTERM, signal.SIGKILL)
DONE = (EndResult.ENDED, EndResult.KILLED)


class Reaped(NamedTuple):
    """`plan` is the first plan, `scan` the machine afterwards."""

    plan: ReapPlan
    scan: Scan
    ended: list[tuple[PsRow, EndResult]]

    @property
    def succeeded(self) -> bool:
        return not self.plan.refused and all(how in DONE for _row, how in self.ended)

    @property
    def ended_software(self) -> dict[str, int]:
        return Counter(row.software for row, how in self.ended if how in DONE)


@dataclass
class Reaper:
    """`named` are pids that the user names; without any, proved orphans are ended. `grace_s` is the
    time between TERM and KILL.
    """

    scanner: Scanner
    grace_s: float
    named: Sequence[int] = ()
    all_users: bool = False
    ended: list[tuple[PsRow, EndResult]] = field(default_factory=list)

    def plan(self) -> Reaped:
        scan = self.scanner.scan_closely()
        return Reaped(self.choose(scan), scan, [])

    def reap(self) -> Reaped:
        first, scan, _none = self.plan()
        plan = first
        for number in ROUNDS:
            if not plan.ends:
                break
            self.end(plan, scan, number)
            scan = self.scanner.scan(scan)
            plan = self.choose(scan)
        return Reaped(first, scan, self.ended)

    def choose(self, scan: Scan) -> ReapPlan:
        if self.named:
            return choose_named(scan.rows, self.named, all_users=self.all_users)
        grace_s = self.scanner.policy.grace_s
        return choose_orphans(scan.rows, scan.scene.at_s, grace_s, all_users=self.all_users)

    def end(self, plan: ReapPlan, scan: Scan, number: int) -> None:
        """Opened by pidfd first, then judged again: the signalled process is the judged one."""
        opened = open_processes(row.process.id for row in plan.ends)
        try:
            again = {row.process.id: row for row in self.choose(self.scanner.scan(scan)).ends}
            chosen = {proc: fd for proc, fd in opened.items() if proc in again}
            for proc, how in end_processes(chosen, self.grace_s, number).items():
                self.ended.append((again[proc], how))
                self._record(again[proc], how)
        finally:
            close_processes(opened)

    def _record(self, row: PsRow, how: EndResult) -> None:
        evidence = None if self.named else render_facts(row.evidence[:1])
        reason = explain_end(row, evidence, outcome=how.value)
        self.scanner.record_event("reaped", reason, time.time())
