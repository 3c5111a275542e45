"""What the loop says of memory: who is held, who got more, who waits to start and why."""

from dataclasses import replace

from ramherd.act.executor import Executor
from ramherd.act.run import LiveRun
from ramherd.core.memory import Grant
from ramherd.core.model import JobState, JobStatus, Reason, Why
from ramherd.core.run_phase import Held
from ramherd.decide.hold import explain_hold
from ramherd.decide.ramp import note_trouble
from ramherd.store.herd_queue import HerdQueue
from ramherd.store.service_queue import ServiceQueue
from ramherd.supervisor.events import Telling
from ramherd.supervisor.memory import SHORT_OF_MEMORY, MemoryGovernor


class MemoryNews(Telling):
    roster: HerdQueue | ServiceQueue
    executor: Executor
    memory: MemoryGovernor
    tick_s: float
    waits_for: Reason | None
    _told_wait: tuple[str, Why] | None = None
    _told_ledger: str = ""

    def change(self, new: JobStatus) -> None:
        raise NotImplementedError

    def tell_grants(self, at_s: float) -> None:
        """A run that is held for longer than a tick waits, and so does its job."""
        for grant in self.memory.given:
            run = self.executor.runs[grant.run]
            if self.is_reported(run) and run.held_since_s is None:
                self.tell_granted(run, grant)
        self.memory.given.clear()
        for run in self.executor.runs.values():
            held = run.phase
            if not isinstance(held, Held) or self.is_reported(run):
                continue
            if at_s - held.frozen_s > self.tick_s:
                self.tell_held(run, held)

    def is_reported(self, run: LiveRun) -> bool:
        """Whether its job was reported as held."""
        return self.roster[run.job.id].state is JobState.HELD

    def tell_held(self, run: LiveRun, held: Held) -> None:
        granted = sum(other.grant.grant_bytes for other in self.executor.runs.values())
        reason = explain_hold(held.reason, self.memory.lease.lease_bytes, granted)
        self.emit("run_held", reason, run)
        self.change(replace(self.roster[run.job.id], state=JobState.HELD, reason=reason))
        self.note_trouble(reason)

    def tell_granted(self, run: LiveRun, grant: Grant) -> None:
        self.emit("run_granted", grant.reason, run)
        status = self.roster[run.job.id]
        if status.state is JobState.HELD:
            self.change(replace(status, state=JobState.RUNNING, reason=grant.reason))

    def note_trouble(self, reason: Reason) -> None:
        if self.memory.ramp is not None:
            self.memory.ramp = note_trouble(self.memory.ramp, reason)

    def tell_ledger(self) -> None:
        trouble, told = self.memory.lease.trouble, self._told_ledger
        self._told_ledger = trouble
        if trouble and not told:
            self.emit_herd("ledger_waits", Reason(Why.LEDGER, what=trouble))

    def note_wait(self, job: str, reason: Reason) -> None:
        """Said when memory becomes the reason of the first in line, not each time that numbers
        move.
        """
        if reason.why in SHORT_OF_MEMORY and self._told_wait != (job, reason.why):
            self._told_wait = (job, reason.why)
            self.emit_job("start_waits", reason, self.roster[job])
        self.waits_for = reason
