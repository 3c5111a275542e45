"""The loop: measure -> decide -> act -> record -> show.

It wakes when the keeper or a signal reports something or a run reaches its grant, else once a tick.
`decide/` decides what to do, `act/` does it; the parts that the loop calls are beside it. A herd
and the service use the same loop, on different queues.
"""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from ramherd.act.executor import Executor
from ramherd.act.pens.polling import POLL_S
from ramherd.act.run import record_engine_clients
from ramherd.act.runtime_files import RuntimeFiles
from ramherd.core.memory import Admit, SetLevel
from ramherd.core.model import (
    Action,
    Clear,
    Finish,
    Kill,
    Reason,
    RunEnd,
    Settle,
    Snapshot,
    Stop,
    Stopping,
    Wait,
    Warn,
    Why,
)
from ramherd.decide.budget import largest_budget_bytes
from ramherd.decide.engine import decide, refuse_waits
from ramherd.decide.keeper_health import (
    FailedKeeper,
    KeeperHealth,
    after_failed_keeper,
    after_question,
    explain_replacement,
    find_pause,
    next_health,
)
from ramherd.decide.run_clock import find_gap_s
from ramherd.decide.run_end import next_deadline_s
from ramherd.decide.start_pace import explain_calm
from ramherd.decide.start_pause import Cause
from ramherd.measure.cgroups import Trees
from ramherd.measure.container_clients import read_engine_clients
from ramherd.measure.machine import read_machine
from ramherd.store.herd_queue import HerdQueue
from ramherd.store.owner import Owner
from ramherd.store.service_queue import ServiceQueue
from ramherd.store.usage_windows import record_window
from ramherd.supervisor.disk_watch import DiskWatch
from ramherd.supervisor.event_log import EventLog
from ramherd.supervisor.herd_counters import HerdCounters
from ramherd.supervisor.job_states import AgentParts
from ramherd.supervisor.make_view import make_view
from ramherd.supervisor.memory_governor import MemoryGovernor, Order
from ramherd.supervisor.on_done_queue import OnDoneQueue
from ramherd.supervisor.restored_store import record_known
from ramherd.supervisor.runs import Runs
from ramherd.supervisor.start_gate import StartGate
from ramherd.supervisor.start_waits import StartWaits
from ramherd.supervisor.worktree_queue import WorktreeQueue
from ramherd.system.signals import Signals
from ramherd.system.wait import wait_for

TICK_S = 0.5
# The shortest tick, for scaled time and for polling pens.
LEAST_TICK_S = 0.03
# A warm process does not end after its result, so its output is read in between.
READ_EVERY_S = 0.1


@dataclass
class Loop:
    queue: HerdQueue | ServiceQueue
    executor: Executor
    memory: MemoryGovernor
    runs: Runs
    agents: AgentParts
    events: EventLog
    gate: StartGate
    waits: StartWaits
    counters: HerdCounters
    signals: Signals
    trees: Trees
    runtime: RuntimeFiles
    # The owner of these herds, and the record of the fleet, for a store that has to be restored.
    owner: Owner
    fleet_id: str
    disk: DiskWatch
    worktrees: WorktreeQueue
    on_done: OnDoneQueue
    clock: Callable[[], float] = time.monotonic
    # Other descriptors to wait for, and the function to call when one is readable.
    alarms: dict[int, Callable[[], None]] = field(default_factory=dict)
    # The service is ending, and with it every run.
    is_halting: bool = False
    keeper_health: KeeperHealth = field(default_factory=KeeperHealth)
    # Set until a keeper answers again.
    failed_keeper: FailedKeeper | None = None
    started_s: float = 0.0
    # Jobs that had ended before, of a herd that is resumed.
    ended_before: int = 0
    _stepped_s: float | None = None
    _ticked_s: float = float("-inf")
    _read_agents_s: float = float("-inf")

    def __post_init__(self) -> None:
        self.memory.machine = read_machine(self.trees)
        looking = 1.0 if self.executor.fleet.kernel_limits else POLL_S / TICK_S
        self.tick_s = max(TICK_S * looking / self.memory.time_scale, LEAST_TICK_S)

    def run(self) -> None:
        """Runs until every job has ended and none of their processes is left."""
        self.begin()
        try:
            while (timeout_s := self.step()) is not None:
                self.wait(timeout_s)
        finally:
            self.worktrees.close()
            self.on_done.close()
        self.end()

    def begin(self) -> None:
        machine, policy = self.memory.machine, self.memory.policy
        self.started_s = self.memory.keeper_died_s = self.clock()
        counts = self.queue.counts
        self.ended_before = sum(counts[state] for state in counts if state.is_final)
        self.keeper_health = KeeperHealth(self.started_s)
        self.counters.available_before = machine.available_bytes
        most_bytes = largest_budget_bytes(machine, policy) + policy.fleet_slack_bytes
        self.executor.fleet.set_limit(most_bytes)
        self.disk.begin(self.started_s, self.events.writes.store)

    def end(self) -> None:
        self.counters.wall_s = self.clock() - self.started_s
        self.counters.peak_bytes = self.executor.fleet.read().peak_bytes
        self.disk.close()

    def step(self) -> float | None:
        """One round. Returns how long the next wait may last at most; None after the last round."""
        at_s = self.clock()
        self._skip_gap(at_s)
        self.receive(at_s)
        snapshot = self.measure(at_s)
        # Runs that end free memory for others: decides again at once, until nothing changes.
        while actions := decide(snapshot, self.memory.policy):
            for action in actions:
                self.carry_out(action, at_s)
            snapshot = self.measure(at_s)
        self.govern(at_s)
        has_news = self.worktrees.advance(at_s, self.signals.count)
        self.executor.close_output()
        self.executor.remove_exited_processes(at_s)
        self.record()
        # After the requests were sent: the keeper starts runs meanwhile.
        self.runs.clean_up()
        self.on_done.advance(at_s, self.signals.count)
        self.events.display.update(lambda: make_view(self, at_s))
        if self.queue.is_over and not self.is_occupied:
            return None
        if has_news:
            return 0.0
        deadline_s = next_deadline_s(snapshot, self.memory.policy)
        return max(min(self._longest_s(), deadline_s - self.clock()), 0.0)

    @property
    def is_occupied(self) -> bool:
        """Work is under way that the end of a herd waits for."""
        return self.executor.is_occupied or self.worktrees.is_busy or self.on_done.is_busy

    def _skip_gap(self, at_s: float) -> None:
        """Time in which the machine slept or ramherd was stopped counts for no run."""
        gap_s = find_gap_s(self._stepped_s or at_s, at_s)
        self._stepped_s = at_s
        if not gap_s:
            return
        self.keeper_health = KeeperHealth(at_s)
        for run in self.executor.runs.values():
            run.skip(gap_s)

    def receive(self, at_s: float) -> None:
        if not self.executor.receive(at_s):
            self.executor.replace_keeper(at_s)
            self.memory.keeper_died_s = at_s
            self.runs.record_keeper_death()
            self._record_new_keeper(Reason(Why.KEEPER_LOST), at_s)
        self._restart_keeper(at_s)
        self._watch_keeper(at_s)
        if self.executor.started:
            self.gate.record_start()
            self.runs.record_started()

    def _restart_keeper(self, at_s: float) -> None:
        """Tries again to start a keeper, at longer and longer intervals."""
        executor, failed = self.executor, self.failed_keeper
        if what := executor.pop_keeper_failure():
            self.failed_keeper = after_failed_keeper(failed, what, at_s)
        elif executor.keeper.has_answered:
            self.failed_keeper = None
        elif failed is not None and not executor.has_keeper and at_s >= failed.next_s:
            executor.start_keeper()

    def _watch_keeper(self, at_s: float) -> None:
        """A keeper that hangs keeps no run from ending. It is replaced if it does not recover."""
        is_heard = self.executor.is_keeper_heard or not self.executor.has_keeper
        health = next_health(self.keeper_health, at_s, is_heard=is_heard)
        if health.is_due:
            self.executor.keeper.send("ping")
            health = after_question(health)
        self.keeper_health, self.executor.is_keeper_hanging = health, health.is_hanging
        self.gate.set(Cause.KEEPER, find_pause(health, self.failed_keeper))
        if health.is_hanging:
            is_last = self.is_halting or self.signals.count > 0
            self.executor.end_without_keeper(at_s, is_last=is_last)
        if health.is_lost:
            self.executor.replace_keeper(at_s, is_dead=False)
            self._record_new_keeper(explain_replacement(), at_s)

    def _record_new_keeper(self, reason: Reason, at_s: float) -> None:
        self.keeper_health = KeeperHealth(at_s)
        self.events.emit_herd("keeper_lost", reason)

    def measure(self, at_s: float) -> Snapshot:
        """Measures everything once a tick; between ticks, only runs that are ending."""
        runs, fleet = self.executor.runs.values(), self.executor.fleet
        if at_s - self._ticked_s >= self.tick_s:
            self._tick(at_s)
        elif ending := [run for run in runs if run.is_ending]:
            if any(run.may_have_left for run in ending):
                fleet.scan()
            for run in ending:
                run.measure()
            self.read_agents(at_s)
        elif self.agents.runs is not None and self._is_time_to_read_agents(at_s):
            self.read_agents(at_s)
        views = [run.view(kernel_limits=fleet.kernel_limits, at_s=at_s) for run in runs]
        interrupts = max(self.signals.count, int(self.runs.given_up))
        return Snapshot(
            at_s, self.memory.machine, views, self.queue.queue, self.memory.fleet_used, interrupts,
            tuple(self.queue.delayed.values()),
        )  # fmt: skip

    def _tick(self, at_s: float) -> None:
        self._ticked_s = at_s
        self.disk.receive(at_s)
        if (news := self.runtime.restore()) is not None:
            kind = "runtime_restored" if news.why is Why.RUNTIME_RESTORED else "runtime_missing"
            self.events.emit_herd(kind, news)
        self.restore_store()
        runs, fleet = self.executor.runs.values(), self.executor.fleet
        fleet.scan()
        others = [(other.pid, other.used_bytes) for other in self.memory.lease.others]
        machine = read_machine(self.trees, herds=others)
        for run in runs:
            run.measure()
            run.usage.add_moment(machine.available_bytes)
        self.memory.tick(machine, fleet.read().used_bytes, at_s)
        self.memory.reclaim(at_s)
        self.runs.record_samples(at_s)
        self.runs.clear_survivors(at_s)
        self.read_agents(at_s)
        if runs:
            record_engine_clients(runs, read_engine_clients())

    def restore_store(self) -> None:
        """Restores deleted or damaged store files. A short herd ends before the next tick."""
        for what in self.events.writes.check_store():
            record_known(self)
            self.events.emit_herd("store_restored", Reason(Why.STORE_RESTORED, what=what))

    def _is_time_to_read_agents(self, at_s: float) -> bool:
        return self.executor.is_busy or at_s - self._read_agents_s >= READ_EVERY_S

    def read_agents(self, at_s: float) -> None:
        """Reads new output of agents, and stops runs that cost too much."""
        self._read_agents_s = at_s
        agents, runs = self.agents.runs, self.executor.runs.values()
        if agents is None:
            return
        for kind, run, reason in agents.read_output(runs, at_s):
            self.events.emit_run(kind, reason, run)
        self.runs.record_sessions()
        for run, reason in agents.find_stalls(runs, self.memory.policy.stall_after_s, at_s):
            self.events.emit_run("alert", reason, run)
        for agent in agents.limits.pop_calmed():
            self.events.emit_herd("api_calm", explain_calm(agent))
        for key, window in agents.limits.pop_unsaved().items():
            self.events.record(record_window, key, window)
        for action in agents.stop_costly(runs, self.queue.queue):
            self.carry_out(action, at_s)
        warm = self.agents.warm
        if warm is not None and warm.is_wanted:
            demand = warm.read_demand(at_s, may_start=self.may_reuse(at_s))
            for run, reason in warm.renew(demand, at_s):
                self.events.emit_run("agent_retired", reason, run)
            if (admit := warm.choose_start(demand)) is not None:
                self.carry_out(admit, at_s)

    def govern(self, at_s: float) -> None:
        """Carries out the governor's orders: grants, starts, and runs that make room."""
        memory, may_start = self.memory, self.may_start(at_s)
        for stop in memory.recycle(at_s) if may_start else []:
            self.runs.restart(stop, at_s)
        for settle in memory.end_unserved(at_s) if may_start else []:
            self.carry_out(settle, at_s)
        memory.waits_for, memory.first_wait = self.gate.reason, None
        for order in refuse_waits(memory.govern(at_s, queue=may_start), memory.policy):
            self.carry_out(order, at_s)
        memory.report(at_s, longer_than_s=self.tick_s)
        wait = memory.first_wait
        self.waits.record(wait, self.queue[wait.job].job.name if wait is not None else "", at_s)

    def may_start(self, at_s: float) -> bool:
        if self.signals.count or self.runs.given_up or not self.memory.lease.is_known:
            return False
        # A new keeper may still fail: nothing is recorded as started before it works.
        return self.executor.keeper.has_answered and self.gate.is_open(at_s)

    def may_reuse(self, at_s: float) -> bool:
        """Whether warm processes serve jobs: they do not while suspects run first."""
        return self.may_start(at_s) and self.memory.trial is None

    def carry_out(self, action: Action | Order, at_s: float) -> None:
        runs = self.executor.runs
        match action:
            case Admit(job, grant_bytes, reason):
                self.runs.start(job, grant_bytes, reason, at_s)
            case Wait():
                self.memory.record_wait(action, at_s)
            case Settle():
                self.runs.apply_settle(action, at_s)
            case Stop(run, end, reason):
                self.runs.stop(runs[run], Stopping(end, reason, at_s))
            case Clear(run, reason):
                self.runs.clear(runs[run], reason, at_s)
            case Kill(run, reason):
                self.runs.kill(runs[run], reason, at_s)
            case Warn(run, reason):
                self.runs.warn(runs[run], reason)
            case Finish(run, end, reason):
                self._finish(run, end, reason, at_s)
            case SetLevel(level, reason):
                self.counters.level_changes += 1
                self.events.emit_herd(f"level_{level.value}", reason)

    def _finish(self, run: str, end: RunEnd, reason: Reason, at_s: float) -> None:
        """A warm process that becomes free serves the first suitable job of the queue at once."""
        idle = self.runs.finish(self.executor.runs[run], end, reason, at_s)
        if idle is not None and self.agents.warm is not None:
            admit = self.agents.warm.reuse(idle, at_s, may_start=self.may_reuse(at_s))
            if admit is not None:
                self.carry_out(admit, at_s)

    def record(self) -> None:
        """Commits, then sends the requests: a run is in the store before the keeper starts it.
        Requests that end runs do not wait for the store.
        """
        writes = self.events.writes
        is_committed = writes.commit()
        if is_committed:
            self.runs.release_starts()
        self.executor.keeper.flush()
        if is_committed:
            self.events.hooks.committed()
        trouble = Reason(Why.STORE, what=writes.trouble) if writes.trouble else None
        self.gate.set(Cause.STORE, trouble)

    def _longest_s(self) -> float:
        longest_s = self.executor.fleet.soon_s if self.executor.is_busy else self.tick_s
        is_warm = self.agents.warm is not None and self.agents.warm.is_used
        return min(longest_s, READ_EVERY_S) if is_warm else longest_s

    def wait(self, timeout_s: float) -> None:
        """Waits for the keeper, a signal, an alarm, or a run that reaches its grant."""
        keeper, enforcer, at_s = self.executor.keeper, self.executor.enforcer, self.clock()
        marks, muted_s = self.executor.grant_fds(at_s), self.executor.muted_for_s(at_s)
        sending = keeper.has_more_to_send
        helpers = (*enforcer.worker.fds, *self.worktrees.fds, *self.on_done.fds)
        fds = (self.signals.fd, *helpers, *marks, *self.alarms)
        ready = wait_for(keeper.fileno(), fds, min(timeout_s, muted_s), sending=sending)
        if self.signals.fd in ready:
            os.read(self.signals.fd, 4096)
        for fd in ready & marks.keys():
            enforcer.receive_event(marks[fd], self.clock())
        if ready.intersection(enforcer.worker.fds):
            enforcer.receive_armed(self.clock())
        for fd in ready & self.alarms.keys():
            self.alarms[fd]()
