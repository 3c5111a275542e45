"""The loop of the service: the herd's loop on a line that never ends.

What others ask for stands in the store. It is looked at when the API says so, and now and then
anyway: a word that was lost costs seconds, never a job.
"""

import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import StrEnum

from ramherd.act.run import LiveRun
from ramherd.core.errors import RamherdError, StoreError
from ramherd.core.model import Event, JobState, JobStatus, Reason, RunEnd, Settle, Stopping, Why
from ramherd.decide.alerts import AlertPolicy, Standing, Told, next_alerts
from ramherd.decide.budget import largest_budget_bytes
from ramherd.decide.governor.leaks import find_leak
from ramherd.service.agent_setup import ServiceAgents
from ramherd.service.alerts import AlertCommands
from ramherd.service.api_process import ApiProcess
from ramherd.service.counters import ServiceCounters
from ramherd.service.signals import ServiceSignals
from ramherd.service.worktree_cleanup import WorktreeCleanup, has_tree
from ramherd.store.events import trim_events
from ramherd.store.service_herds import end_if_over, read_jobs_with_worktree, set_worktree
from ramherd.store.service_queue import ServiceQueue
from ramherd.store.service_requests import Wish, is_paused, read_wishes
from ramherd.store.service_runs import record_stopping
from ramherd.supervisor.estimates import class_of, label_of
from ramherd.supervisor.loop import Supervisor
from ramherd.supervisor.run_herd import Rules

LOOK_EVERY_S = 5.0
TRIM_EVERY_S = 600.0
ALERT_EVERY_S = 1.0
# A herd of ten thousand that is cancelled takes some steps, and the loop stays awake.
WISHES = 200
# With so few in the window the next ones are read.
LOW = 32


class Halt(StrEnum):
    """What becomes of runs when the service is told to end."""

    STOP = "stop"
    DRAIN = "drain"
    LEAVE = "leave"


@dataclass
class ServiceSupervisor(Supervisor):
    backlog: ServiceQueue = field(kw_only=True)
    service_signals: ServiceSignals = field(kw_only=True)
    service_counters: ServiceCounters = field(kw_only=True)
    api: ApiProcess = field(kw_only=True)
    load_rules: Callable[[], Rules] = field(kw_only=True)
    publish: Callable[["ServiceSupervisor", float], None] = field(kw_only=True)
    halt: Halt = field(kw_only=True)
    tidy: Callable[[], None] = field(kw_only=True)
    commands: AlertCommands = field(kw_only=True)
    agents: ServiceAgents = field(kw_only=True)
    is_lasting: bool = True
    worktrees: WorktreeCleanup = field(default_factory=WorktreeCleanup)
    told: Told = field(default_factory=Told)
    paused: bool = False
    leaving: bool = False
    _asked: bool = True
    # The place up to which wishes were looked at in this round.
    _wished: int | None = None
    _stale: bool = True
    _again: bool = False
    _reloads: int = 0
    _looked_at_store_s: float = float("-inf")
    _trimmed_s: float = float("-inf")
    _alerted_s: float = float("-inf")

    def step(self) -> float | None:
        at_s = self.clock()
        self.attend(at_s)
        timeout_s = super().step() or 0.0
        self.alert(at_s)
        self.publish(self, at_s)
        if self.leaving and (self.halt is Halt.LEAVE or not self.executor.runs):
            return None
        again, self._again = self._again, False
        delayed_s = self.backlog.next_delayed_s
        return 0.0 if again else min(timeout_s, timeout_s if delayed_s is None else delayed_s)

    def attend(self, at_s: float) -> None:
        """What was asked of us since."""
        if self.api.look_after():
            self.watch_api()
        self.note_signals(at_s)
        self.note_worktrees()
        with suppress(StoreError):  # what was asked stays asked
            self.look_at_store(at_s)
        if at_s - self._trimmed_s >= TRIM_EVERY_S:
            self._trimmed_s = at_s
            self.note(trim_events)
            self.forget_jobs()
            self.tidy()

    def look_at_store(self, at_s: float) -> None:
        """What is wished may be so already, once the store has what we know."""
        due = self._asked or at_s - self._looked_at_store_s >= LOOK_EVERY_S
        if due and self.journal.commit():
            self.paused = is_paused(self.journal.store)
            self._asked, self._stale, self._looked_at_store_s = False, True, at_s
            self._wished = 0
        if self._wished is not None and self.journal.commit():
            self._wished = self.grant_wishes(self._wished, at_s)

    def alert(self, at_s: float) -> None:
        """Once a second: what nears its mark."""
        if at_s - self._alerted_s < ALERT_EVERY_S:
            return
        self._alerted_s = at_s
        runs = [self.standing_of(run) for run in self.executor.runs.values() if not run.is_ending]
        leased = self.memory.lease.budget_bytes
        self.told, alerts = next_alerts(runs, self.fleet_used, leased, self.told, AlertPolicy())
        for alert in alerts:
            run = self.executor.runs.get(alert.run)
            self.service_counters.counters.alerts += 1
            if run is not None:
                self.emit("alert", alert.reason, run)
            else:
                self.emit_herd("alert", alert.reason)
        self.commands.reap()

    def standing_of(self, run: LiveRun) -> Standing:
        watch = self.memory.watches.watch.get(run.id)
        leak = find_leak(watch.points) if watch is not None else None
        slope = leak.slope_bytes_per_s if leak is not None else 0.0
        limit = run.job.memory_limit_bytes
        return Standing(run.id, run.reading.used_bytes, limit, slope)

    def forget_jobs(self) -> None:
        """What is remembered of leaks and agents is of jobs that run or are about to."""
        at_work = [run.job for run in self.executor.runs.values()]
        at_work += [status.job for status in self.backlog.queue]
        watches, jobs = self.memory.watches, {job.id for job in at_work}
        self.memory.watches = replace(
            watches,
            marks={job: mark for job, mark in watches.marks.items() if job in jobs},
            recycled_s={job: at_s for job, at_s in watches.recycled_s.items() if job in jobs},
        )
        if self.agent_runs is not None and self.journal.commit():
            self.agent_runs.keep(at_work, {label_of(class_of(job)) for job in at_work})

    def take_over(self) -> None:
        """What the service before this one had to do still."""
        self.drive_agents()
        for job in read_jobs_with_worktree(self.journal.store):
            self.worktrees.settle(job)
        self.watch_api()

    def drive_agents(self) -> None:
        """With the first job that has an agent."""
        if self.agent_runs is None and (
            self.agents.agent_runs is not None
            or any(status.job.brief is not None for status in self.backlog.queue)
        ):
            from ramherd.supervisor.warm_reuse import WarmReuse  # noqa: PLC0415 - with the first agent

            self.agent_runs = self.memory.agent_runs = self.agents.drive()
            self.agent_runs.is_occupied = self.worktrees.is_at
            self.warm_reuse = WarmReuse(self.executor, self.agents.reuse)

    def note_worktrees(self) -> None:
        for job, path in self.worktrees.take():
            self.note(set_worktree, job.id, path)
            self.note(end_if_over, job.herd, time.time())

    def watch_api(self) -> None:
        self.alarms = {self.api.fileno(): self.hear_api}
        if self.worktrees.fd >= 0:
            self.alarms[self.worktrees.fd] = self.note_worktrees

    def hear_api(self) -> None:
        before, fd = self.api.is_ready, self.api.fileno()
        self._asked = self.api.hear() or self._asked
        if self.api.is_ready and not before:
            print(f"ramherd: up, {self.api.socket}", file=sys.stderr, flush=True)
        if self.api.fileno() < 0:
            self.alarms.pop(fd, None)

    def note_signals(self, at_s: float) -> None:
        signals = self.service_signals
        if signals.reloads > self._reloads:
            self._reloads = signals.reloads
            self.reload()
        if signals.ends > 1 and self.halt is Halt.DRAIN:
            self.halt = Halt.STOP
        self.leaving = self.leaving or signals.ends > 0
        if self.leaving and self.halt is Halt.STOP:
            for run in self.executor.runs.values():
                if not run.is_ending:
                    self.stop(run, Stopping(RunEnd.RECYCLED, Reason(Why.SERVICE_STOPS), at_s))

    def reload(self) -> None:
        """What is decided next is decided by the new settings; a mistake in them changes nothing.
        Pens stay what they are.
        """
        try:
            rules = self.load_rules()
        except RamherdError as error:
            print(f"ramherd: settings are as before: {error}", file=sys.stderr, flush=True)
            return
        self.policy = self.memory.policy = self.memory.lease.policy = rules.policy
        self.memory.grants = self.memory.lease.grants = rules.grants
        self.memory.recycling = rules.recycling
        self.agents.reuse = rules.reuse
        if self.warm_reuse is not None:
            self.warm_reuse.policy = rules.reuse
        self.commands.command = rules.on_alert
        self.executor.enforcer.policy = rules.grants
        self.executor.fleet.set_limit(
            largest_budget_bytes(self.machine, rules.policy) + rules.policy.fleet_slack_bytes
        )
        self._asked = True

    def grant_wishes(self, after: int, at_s: float) -> int | None:
        """Of the next so many; where to go on in the next step, None after the last."""
        found = read_wishes(self.journal.store, after, WISHES)
        for job, wish, _place in found:
            run = self.run_of(job)
            if run is not None and not run.is_ending:
                end = RunEnd.CANCELLED if wish == Wish.CANCEL else RunEnd.RECYCLED
                self.stop(run, Stopping(end, Reason(Why.ASKED), at_s))
            elif run is None and wish == Wish.CANCEL and not self.backlog[job].state.is_final:
                self.settle(Settle(job, JobState.CANCELLED, Reason(Why.ASKED)), at_s)
        self._again = self._again or len(found) == WISHES
        return found[-1][2] if len(found) == WISHES else None

    def run_of(self, job: str) -> LiveRun | None:
        return next((run for run in self.executor.runs.values() if run.job.id == job), None)

    @property
    def may_start(self) -> bool:
        return not (self.paused or self.leaving)

    def record(self) -> None:
        """The line is read again once the store has all that we know."""
        super().record()
        low = len(self.backlog.queue) < LOW
        if self.journal.is_clear and (self._stale or low):
            with suppress(StoreError):  # the next step tries again
                self.refill()

    def refill(self) -> None:
        before = [status.job.id for status in self.backlog.queue]
        self.backlog.refill()
        self.learn_classes()
        self.drive_agents()
        self._stale = False
        after = [status.job.id for status in self.backlog.queue]
        self._again = self._again or (self.may_start and before != after)

    def learn_classes(self) -> None:
        known = self.memory.classes.estimates
        fresh = [
            status.job
            for status in self.backlog.queue
            if label_of(class_of(status.job)) not in known
        ]
        if fresh:
            self.memory.classes.read(self.journal.store, fresh)

    def note_job(self, status: JobStatus) -> None:
        super().note_job(status)
        self._stale = True
        if not status.state.is_final:
            return
        self.note(end_if_over, status.job.herd, time.time())
        if status.attempts and has_tree(status.job):
            self.worktrees.settle(status.job)
            self.alarms[self.worktrees.fd] = self.note_worktrees

    def stop(self, run: LiveRun, stopping: Stopping) -> None:
        """On record first: if we die now, the next service knows why the run ended."""
        self.note(record_stopping, run.id, stopping.end, stopping.reason)
        self.journal.commit()
        super().stop(run, stopping)

    def tell(self, event: Event, name: str) -> None:
        super().tell(event, name)
        self.service_counters.note(event)
        if event.kind == "alert":
            self.commands.start(event)
