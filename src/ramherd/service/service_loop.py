"""The loop of the service: the loop of a herd on a queue that never ends, and the work before and
after each of its steps.

Requests are in the store. They are read when the API reports one, and periodically anyway: a lost
report costs seconds, never a job.
"""

import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from ramherd.act.run import LiveRun
from ramherd.core.errors import RamherdError, StoreError
from ramherd.core.model import Event, Job, JobState, JobStatus, RunEnd, Stopping, Why
from ramherd.decide.budget import largest_budget_bytes
from ramherd.decide.job_bases import is_blocked
from ramherd.decide.job_requests import choose_settle, choose_stop, stop_for_service
from ramherd.decide.run_clock import find_jump_s
from ramherd.decide.start_pause import Cause, explain_service_end, explain_user_pause
from ramherd.service.alerts import Alerts
from ramherd.service.api_process import SILENT_S, ApiProcess
from ramherd.service.census_watch import CensusWatch
from ramherd.service.service_agents import ServiceAgents
from ramherd.service.service_counters import ServiceCounters
from ramherd.service.service_signals import ServiceSignals
from ramherd.store.events import trim_events
from ramherd.store.herds import SERVICE
from ramherd.store.inputs import (
    environment_path,
    find_unused_environment,
    forget_environment,
    remove_inputs,
)
from ramherd.store.memory_history import trim_moments
from ramherd.store.protocol import Store
from ramherd.store.service_herds import (
    add_level_change,
    end_if_over,
    raise_herd_peak,
    read_unfinished,
    read_unfinished_of_dead,
    shift_delays,
)
from ramherd.store.service_queue import ServiceQueue
from ramherd.store.service_requests import (
    Wish,
    read_open_jobs,
    read_paused_s,
    read_spooled,
    read_wishes,
    remove_spooled,
)
from ramherd.store.service_runs import record_stopping, write_stopping
from ramherd.store.start_pauses import forget_starts
from ramherd.store.write_buffer import WriteBuffer
from ramherd.supervisor.estimates import class_of, label_of
from ramherd.supervisor.loop import Loop
from ramherd.supervisor.run_herd import Rules, add_warm_reuse, measure_costs

READ_EVERY_S = 5.0
TRIM_EVERY_S = 600.0
# Cancelling a herd of ten thousand takes several steps, so that the loop stays responsive.
REQUESTS = 200
# With fewer jobs than this in the window, the next ones are read.
LOW = 32


class Halt(StrEnum):
    """What happens to runs when the service is told to end."""

    STOP = "stop"
    DRAIN = "drain"
    LEAVE = "leave"


@dataclass
class Service:
    loop: Loop
    queue: ServiceQueue
    signals: ServiceSignals
    counters: ServiceCounters
    api: ApiProcess
    alerts: Alerts
    watch: CensusWatch
    agents: ServiceAgents
    load_rules: Callable[[], Rules]
    publish: Callable[["Service", float], None]
    state: Path
    remove_unused: Callable[[], None]
    halt: Halt
    # When the user paused the service.
    paused_s: float | None = None
    leaving: bool = False
    # The peak memory of all runs of a herd together, for herds that have runs.
    _peaks: dict[str, int] = field(default_factory=dict)
    _is_requested: bool = True
    # The place up to which requests were carried out in this round.
    _done_up_to: int | None = None
    _is_stale: bool = True
    _again: bool = False
    _reloads: int = 0
    _read_s: float = float("-inf")
    _trimmed_s: float = float("-inf")
    # Jobs that have ended since the inputs of ended jobs and herds were last removed.
    _ended: list[JobStatus] = field(default_factory=list)
    # How far the wall clock is ahead of the monotonic clock.
    _ahead_s: float = field(default_factory=lambda: time.time() - time.monotonic())

    def __post_init__(self) -> None:
        hooks = self.loop.events.hooks
        hooks.event, hooks.job_changed = self._record_event, self._record_job
        hooks.run_stopping, hooks.run_ended = self._record_stopping, self._record_end
        hooks.committed, hooks.worktree_finished = self._commit, self._record_worktree

    def run(self) -> None:
        """Runs until it is told to end."""
        self._resume_setup()
        self.loop.begin()
        try:
            while (timeout_s := self.step()) is not None:
                self.loop.wait(timeout_s)
        finally:
            self.loop.worktrees.close()
            self.loop.on_done.close()
        self.loop.end()

    def step(self) -> float | None:
        at_s = self.loop.clock()
        self.receive(at_s)
        timeout_s = self.loop.step() or 0.0
        self._measure_herds()
        self.alerts.check(self.loop, at_s)
        self.watch.check()
        self.publish(self, at_s)
        if self.leaving and (self.halt is Halt.LEAVE or not self.loop.executor.runs):
            return None
        again, self._again = self._again, False
        delayed_s = self.queue.next_delayed_s
        return 0.0 if again else min(timeout_s, timeout_s if delayed_s is None else delayed_s)

    def receive(self, at_s: float) -> None:
        """Signals and requests since the last step."""
        self._follow_wall_clock()
        self._check_api()
        self._receive_signals(at_s)
        with suppress(StoreError):  # requests stay in the store
            self._read_requests(at_s)
        gate = self.loop.gate
        paused_s = self.paused_s
        gate.set(Cause.USER, None if paused_s is None else explain_user_pause(paused_s))
        gate.set(Cause.SERVICE_ENDS, explain_service_end() if self.leaving else None)
        if at_s - self._trimmed_s >= TRIM_EVERY_S:
            self._trimmed_s = at_s
            self.loop.events.record(trim_events)
            most_bytes = self.loop.memory.policy.memory_history_bytes
            self.loop.events.record(trim_moments, int(time.time()), most_bytes)
            self._forget_jobs()
            self.remove_unused()

    def _follow_wall_clock(self) -> None:
        """The store has the delays of jobs in wall-clock time."""
        ahead_s = time.time() - time.monotonic()
        if jump_s := find_jump_s(self._ahead_s, ahead_s):
            self.loop.events.record(shift_delays, jump_s)
            self._is_stale = True
        self._ahead_s = ahead_s

    @property
    def _writes(self) -> WriteBuffer:
        return self.loop.events.writes

    @property
    def _store(self) -> Store:
        return self._writes.store

    def _receive_signals(self, at_s: float) -> None:
        signals, runs = self.signals, self.loop.executor.runs
        if signals.reloads > self._reloads:
            self._reloads = signals.reloads
            self.reload()
        if signals.ends > 1 and self.halt is Halt.DRAIN:
            self.halt = Halt.STOP
        self.leaving = self.leaving or signals.ends > 0
        self.loop.is_halting = self.leaving and self.halt is Halt.STOP
        if self.loop.is_halting:
            for stop in stop_for_service(run.id for run in runs.values() if not run.is_ending):
                self.loop.carry_out(stop, at_s)

    def _read_requests(self, at_s: float) -> None:
        """Commits first: recorded changes may fulfil some requests already."""
        due = self._is_requested or at_s - self._read_s >= READ_EVERY_S
        if due:
            self._carry_out_spooled(at_s)
        if due and self._writes.commit():
            self.paused_s = read_paused_s(self._store)
            self._is_requested, self._is_stale, self._read_s = False, True, at_s
            self.agents.read_limits()
            self._done_up_to = 0
        if self._done_up_to is not None and self._writes.commit():
            self._done_up_to = self._carry_out_requests(self._done_up_to, at_s)

    def _carry_out_spooled(self, at_s: float) -> None:
        """Carries out cancellations that were requested while the store was locked. A request is
        removed once the store has its result.
        """
        names = read_spooled(self._store)
        for job in [job for name in names for job in read_open_jobs(self._store, name)]:
            self._carry_out(job, at_s, Wish.CANCEL)
        if names and self._writes.commit():
            remove_spooled(self._store, names)

    def _carry_out(self, job: str, at_s: float, wish: Wish) -> None:
        run, cancel = self.loop.runs.run_of(job), wish is not Wish.RECYCLE
        why = Why.INTERRUPTED if wish is Wish.INTERRUPT else Why.ASKED
        if run is not None and not run.is_ending:
            self.loop.carry_out(choose_stop(run.id, cancel=cancel, why=why), at_s)
        elif run is None and (settle := choose_settle(self.queue[job], cancel=cancel, why=why)):
            self.loop.carry_out(settle, at_s)

    def _carry_out_requests(self, after: int, at_s: float) -> int | None:
        """Carries out REQUESTS of them; returns where to continue, None after the last."""
        found = read_wishes(self._store, after, REQUESTS)
        for job, wish, _place in found:
            self._carry_out(job, at_s, Wish(wish))
        self._again = self._again or len(found) == REQUESTS
        return found[-1][2] if len(found) == REQUESTS else None

    def _forget_jobs(self) -> None:
        """State about leaks and agents is kept only for jobs that run or are about to."""
        loop = self.loop
        jobs = [run.job for run in loop.executor.runs.values()]
        jobs += [status.job for status in self.queue.queue]
        watches, ids = loop.memory.watches, {job.id for job in jobs}
        loop.memory.watches = replace(
            watches,
            marks={job: mark for job, mark in watches.marks.items() if job in ids},
            recycled_s={job: at_s for job, at_s in watches.recycled_s.items() if job in ids},
        )
        if loop.agents.runs is not None and self._writes.commit():
            loop.agents.runs.forget_others(jobs)

    def _resume_setup(self) -> None:
        """Takes up the work that the previous service left."""
        self.loop.events.record(forget_starts, SERVICE)
        self.read_classes()
        self._load_agents()
        self.loop.worktrees.add(read_unfinished(self._store))
        self.loop.worktrees.add(read_unfinished_of_dead(self._store))
        self._watch_api()

    def _load_agents(self) -> None:
        """Loads them with the first job that has an agent."""
        parts = self.loop.agents
        if parts.warm is not None:
            return
        if parts.runs is not None or any(one.job.brief is not None for one in self.queue.queue):
            self.agents.load().is_occupied = self.loop.worktrees.is_busy_with
            add_warm_reuse(self.loop, self.agents.reuse, is_lasting=True)

    def _record_worktree(self, job: Job) -> None:
        self.loop.events.record(end_if_over, job.herd, time.time(), self._describe)
        self._ended.append(self.queue[job.id])

    def _check_api(self) -> None:
        self._receive_api()
        fd = self.api.fileno()
        if self.api.stop_if_hung():
            self.loop.alarms.pop(fd, None)
            text = f"ramherd: the API hung for {SILENT_S:.0f} s, and is started again"
            print(text, file=sys.stderr, flush=True)
        if self.api.restart_if_gone():
            self._watch_api()

    def _watch_api(self) -> None:
        self.loop.alarms = {self.api.fileno(): self._receive_api}

    def _receive_api(self) -> None:
        before, fd = self.api.is_listening, self.api.fileno()
        self._is_requested = self.api.receive() or self._is_requested
        if self.api.is_listening and not before:
            print(f"ramherd: up, {self.api.socket}", file=sys.stderr, flush=True)
        if self.api.fileno() < 0:
            self.loop.alarms.pop(fd, None)

    def reload(self) -> None:
        """The next decisions use the new settings; a mistake in them changes nothing. Pens stay as
        they are.
        """
        try:
            rules = self.load_rules()
        except RamherdError as error:
            print(f"ramherd: settings are as before: {error}", file=sys.stderr, flush=True)
            return
        memory, executor = self.loop.memory, self.loop.executor
        memory.policy = memory.lease.policy = rules.policy
        memory.grants = memory.lease.grants = executor.enforcer.policy = rules.grants
        memory.recycling = rules.recycling
        self.loop.disk.total_bytes = rules.policy.log_total_bytes
        self.agents.reuse = rules.reuse
        if self.loop.agents.warm is not None:
            self.loop.agents.warm.policy = rules.reuse
        self.alerts.commands.command = self.watch.on_alert = rules.on_alert
        self.watch.every_s = rules.watch_every_s
        executor.fleet.set_limit(
            largest_budget_bytes(memory.machine, rules.policy) + rules.policy.fleet_slack_bytes
        )
        self._is_requested = True

    def _commit(self) -> None:
        """Called after each commit."""
        if self._writes.is_clear:
            self._remove_inputs()
        self._refill()

    def _remove_inputs(self) -> None:
        """Removes files that no run needs any more: the environment of a herd that has ended, and
        large inputs of a job that is done. The next start removes the rest.
        """
        ended, self._ended = self._ended, []
        for status in ended:
            if status.job.large and status.state is JobState.DONE:
                remove_inputs(self.state, status.job.id)
        for herd in {status.job.herd for status in ended}:
            with suppress(StoreError):
                if name := find_unused_environment(self._store, herd):
                    environment_path(self.state, name).unlink(missing_ok=True)
                    self.loop.events.record(forget_environment, name)

    def _refill(self) -> None:
        """Reads the head of the queue again once the store has everything."""
        if not self._writes.is_clear or not (
            self._is_stale or self.queue.is_stale or len(self.queue.queue) < LOW
        ):
            return
        before = [status.job.id for status in self.queue.queue]
        with suppress(StoreError):  # the next step tries again
            self.queue.refill()
            self.read_classes()
            self._load_agents()
            self._is_stale = False
            after = [status.job.id for status in self.queue.queue]
            may_start = self.loop.may_start(self.loop.clock())
            self._again = self._again or (may_start and before != after)

    def read_classes(self) -> None:
        classes = self.loop.memory.classes
        fresh = [
            status.job
            for status in self.queue.queue
            if label_of(class_of(status.job)) not in classes.estimates
        ]
        if fresh:
            classes.read(self._store, fresh)

    def _record_job(self, status: JobStatus) -> None:
        self._is_stale = True
        if status.state.is_final or is_blocked(status):
            self.loop.events.record(end_if_over, status.job.herd, time.time(), self._describe)
        if status.state.is_final:
            self._ended.append(status)

    def _measure_herds(self) -> None:
        used: Counter[str] = Counter()
        for run in self.loop.executor.runs.values():
            used[run.job.herd] += run.reading.used_bytes
        self._peaks = {herd: max(self._peaks.get(herd, 0), now) for herd, now in used.items()}

    def _record_end(self, run: LiveRun, end: RunEnd, at_s: float) -> None:
        self.counters.add_run(run, end, at_s)
        herd = run.job.herd
        peak = max(self._peaks.get(herd, 0), run.reading.peak_bytes)
        self.loop.events.record(raise_herd_peak, herd, peak)

    def _describe(self) -> dict[str, Any]:
        """The part of a herd's summary that is the same for all herds of the service."""
        memory, executor = self.loop.memory, self.loop.executor
        return {
            "budget_bytes": memory.lease.most_possible_bytes,
            "pen": executor.fleet.kind,
            "supervisor": measure_costs(executor),
        }

    def _record_stopping(self, run: LiveRun, stopping: Stopping) -> None:
        """Called before the run is stopped: if the service dies, the next one finds the reason."""
        self.loop.events.record(record_stopping, run.id, stopping.end, stopping.reason)
        if not self._writes.commit():
            write_stopping(run.dir, stopping.end, stopping.reason)

    def _record_event(self, event: Event) -> None:
        self.counters.add_event(event)
        if event.kind.startswith("level_"):
            for herd in self._peaks:
                self.loop.events.record(add_level_change, herd)
        if event.kind == "alert":
            self.counters.counters.alerts += 1
            self.alerts.commands.start(event)
