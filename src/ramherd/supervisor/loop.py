"""The loop: snapshot -> decide -> carry out -> record -> show.

One supervisor runs one herd. It wakes when the keeper or a signal says something, else once a
tick. What to do is decided in `decide/`, how it is done is in `act/`; here the two meet.
"""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ramherd.act.cleanup import CleanedPen
from ramherd.act.executor import Executor
from ramherd.act.pens.polling import POLL_S
from ramherd.act.run import LiveRun, Usage, record_engine_clients
from ramherd.core.memory import Admit, Level, SetLevel
from ramherd.core.model import (
    Action,
    Clear,
    Event,
    Finish,
    JobState,
    JobStatus,
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
from ramherd.core.policies import Policy
from ramherd.decide.budget import largest_budget_bytes
from ramherd.decide.engine import decide, refuse_waits
from ramherd.decide.job_state import after_run
from ramherd.decide.run_end import is_failed_start, next_deadline_s
from ramherd.measure.cgroups import Trees
from ramherd.measure.container_clients import read_engine_clients
from ramherd.measure.machine import read_machine
from ramherd.store.classes import learn_run
from ramherd.store.herd_queue import HerdQueue
from ramherd.store.herds import (
    add_pen,
    add_run,
    add_sample,
    drop_pen,
    end_run,
    reassign_pen,
    set_job,
    set_pen,
)
from ramherd.store.service_queue import ServiceQueue
from ramherd.store.write_buffer import WriteBuffer
from ramherd.supervisor.agent_events import LISTEN_EVERY_S, Listening
from ramherd.supervisor.counters import HerdCounters
from ramherd.supervisor.estimates import class_of, label_of
from ramherd.supervisor.events import Show
from ramherd.supervisor.memory import MemoryGovernor, Order
from ramherd.supervisor.view import make_view
from ramherd.system.ids import new_id
from ramherd.system.signals import Signals
from ramherd.system.wait import wait_for

if TYPE_CHECKING:
    from ramherd.supervisor.agent_runs import AgentRuns
    from ramherd.supervisor.warm_reuse import WarmReuse

TICK_S = 0.5
# With time scaled, and where nobody tells when a run is at its grant.
LEAST_TICK_S = 0.03
SAMPLE_EVERY_S = 5.0


@dataclass
class Supervisor(Listening):
    herd: str
    roster: HerdQueue | ServiceQueue
    journal: WriteBuffer
    executor: Executor
    trees: Trees
    policy: Policy
    memory: MemoryGovernor
    show: Show
    signals: Signals
    counters: HerdCounters = field(default_factory=HerdCounters)
    clock: Callable[[], float] = time.monotonic
    agent_runs: "AgentRuns | None" = None
    warm_reuse: "WarmReuse | None" = None
    given_up: bool = False
    is_lasting: bool = False
    started_s: float = 0.0
    fleet_used: int = 0
    waits_for: Reason | None = None
    alarms: dict[int, Callable[[], None]] = field(default_factory=dict)
    _looked_s: float = float("-inf")
    _sampled_s: float = float("-inf")

    def __post_init__(self) -> None:
        self.machine = read_machine(self.trees)
        looking = 1.0 if self.executor.fleet.kernel_limits else POLL_S / TICK_S
        self.tick_s = max(TICK_S * looking / self.memory.time_scale, LEAST_TICK_S)

    def run(self) -> HerdCounters:
        """Until every job has ended and nothing of them is left."""
        self.started_s = self.clock()
        self.counters.available_before = self.machine.available_bytes
        self.executor.fleet.set_limit(
            largest_budget_bytes(self.machine, self.policy) + self.policy.fleet_slack_bytes
        )
        while (timeout_s := self.step()) is not None:
            self.wait(timeout_s)
        self.counters.wall_s = self.clock() - self.started_s
        self.counters.peak_bytes = self.executor.fleet.read().peak_bytes
        return self.counters

    def step(self) -> float | None:
        """One round; how long it may take until the next, None after the last."""
        at_s = self.clock()
        self.hear(at_s)
        snapshot = self.measure(at_s)
        # What leaves makes room for what comes: decided again at once, until all is quiet.
        while self.decide(snapshot):
            snapshot = self.measure(at_s)
        self.govern(at_s)
        self.executor.close_output()
        self.executor.remove_exited_processes(at_s)
        self.record()
        # While the keeper is at work with what it was asked for.
        for cleaned in self.executor.clean_up():
            self.note_swept(cleaned)
        self.show.update(lambda: make_view(self, at_s))
        if self.roster.is_over and not self.executor.is_occupied:
            return None
        deadline = next_deadline_s(snapshot, self.policy)
        longest = self.executor.fleet.soon_s if self.executor.is_busy else self.tick_s
        if self.has_warm:
            longest = min(longest, LISTEN_EVERY_S)
        return max(min(longest, deadline - self.clock()), 0.0)

    def record(self) -> None:
        """What the keeper is asked to start is in the store first."""
        trouble = self.journal.trouble
        if self.journal.commit():
            self.executor.keeper.flush()
        if self.journal.trouble and not trouble:
            self.emit_herd("store_waits", Reason(Why.STORE, what=self.journal.trouble))

    def hear(self, at_s: float) -> None:
        if not self.executor.receive(at_s):
            self.executor.replace_keeper(at_s)
            self.emit_herd("keeper_lost", Reason(Why.KEEPER_LOST))
        self.record_started()

    def decide(self, snapshot: Snapshot) -> list[Action]:
        actions = decide(snapshot, self.policy)
        for action in actions:
            self.carry_out(action, snapshot.at_s)
        return actions

    def govern(self, at_s: float) -> None:
        """Who may hold how much, and so who starts and who makes room."""
        for stop in self.memory.recycle(at_s) if self.may_start else []:
            self.restart(self.executor.runs[stop.run], stop, at_s)
        for order in refuse_waits(self.memory.govern(at_s, queue=self.may_start), self.policy):
            self.carry_out(order, at_s)
        self.tell_grants(at_s)

    @property
    def may_start(self) -> bool:
        return not (self.signals.count or self.given_up)

    def restart(self, run: LiveRun, stop: Stop, at_s: float) -> None:
        """A run that cannot go on where it was is not restarted: its user should know."""
        if run.job.resumes:
            self.carry_out(stop, at_s)
        elif run.warn_once(Why.LEAK):
            self.emit("run_warning", stop.reason, run)

    def wait(self, timeout_s: float) -> None:
        """Until the keeper, a signal, a run at its grant, or an alarm has something to say."""
        link, at_s = self.executor.keeper, self.clock()
        marks, muted_s = self.executor.grant_fds(at_s), self.executor.muted_for_s(at_s)
        sending = link.has_more_to_send and not self.journal.trouble
        enforcer = self.executor.enforcer
        fds = (self.signals.fd, *enforcer.worker.fds, *marks, *self.alarms)
        ready = wait_for(link.fileno(), fds, min(timeout_s, muted_s), sending=sending)
        if self.signals.fd in ready:
            os.read(self.signals.fd, 4096)
        for fd in ready & marks.keys():
            enforcer.receive_event(marks[fd], self.clock())
        if ready.intersection(enforcer.worker.fds):
            enforcer.receive_armed(self.clock())
        for fd in ready & self.alarms.keys():
            self.alarms[fd]()

    def measure(self, at_s: float) -> Snapshot:
        """Everything once a tick; between ticks only what is on its way out."""
        runs = self.executor.runs.values()
        fleet = self.executor.fleet
        if at_s - self._looked_s >= self.tick_s:
            self.tick(at_s)
        elif ending := [run for run in runs if run.is_ending]:
            if any(run.may_have_left for run in ending):
                fleet.scan()
            for run in ending:
                run.measure()
            self.listen(at_s)
        elif self.is_time_to_listen(at_s):
            self.listen(at_s)
        views = [run.view(kernel_limits=fleet.kernel_limits, at_s=at_s) for run in runs]
        interrupts = max(self.signals.count, int(self.given_up))
        delayed = tuple(self.roster.delayed.values())
        return Snapshot(
            at_s, self.machine, views, self.roster.queue, self.fleet_used, interrupts, delayed
        )

    def tick(self, at_s: float) -> None:
        self._looked_s = at_s
        runs, fleet = self.executor.runs.values(), self.executor.fleet
        fleet.scan()
        others = [(other.pid, other.used_bytes) for other in self.memory.lease.others]
        self.machine = read_machine(self.trees, herds=others)
        for run in runs:
            run.measure()
            run.usage.add_moment(self.machine.available_bytes)
        self.fleet_used = fleet.read().used_bytes
        self.memory.tick(self.machine, self.fleet_used, at_s)
        self.tell_ledger()
        self.record_samples(at_s)
        self.listen(at_s)
        record_engine_clients(runs, read_engine_clients())

    def record_started(self) -> None:
        """Where no cgroup knows a run's processes, the first of them is what can be told."""
        while self.executor.started:
            run = self.executor.started.pop()
            if run.pen is not None and not self.executor.fleet.kernel_limits:
                self.note(set_pen, run.home, run.pen.record())

    def record_samples(self, at_s: float) -> None:
        if at_s - self._sampled_s >= SAMPLE_EVERY_S:
            self._sampled_s = at_s
            for run in self.executor.runs.values():
                self.note(add_sample, run.id, time.time(), run.reading.used_bytes)
                if run.agent_run is not None and run.agent_run.has_news:
                    self.note_said(run)

    def carry_out(self, action: Action | Order, at_s: float) -> None:
        match action:
            case Admit(job, grant_bytes, reason):
                self.start(self.roster[job], grant_bytes, reason, at_s)
            case Wait(job, reason):
                self.note_wait(job, reason)
            case Settle():
                self.settle(action, at_s)
            case Stop(run, end, reason):
                self.stop(self.executor.runs[run], Stopping(end, reason, at_s))
            case Clear(run, reason):
                live = self.executor.runs[run]
                self.counters.leftovers_ended += self.executor.clear(live, at_s)
                self.emit("leftovers_ended", reason, live)
            case Kill(run, reason):
                live = self.executor.runs[run]
                self.executor.kill(live, at_s)
                self.emit("run_killed", reason, live)
            case Warn(run, reason):
                live = self.executor.runs[run]
                live.warn_once(reason.why)
                self.emit("run_warning", reason, live)
            case Finish(run, end, reason):
                self.finish(self.executor.runs[run], end, reason, at_s)
            case SetLevel(level, reason):
                self.counters.level_changes += 1
                self.emit_herd(f"level_{level.value}", reason)

    def start(self, status: JobStatus, grant_bytes: int, reason: Reason, at_s: float) -> None:
        job, attempt = status.job, status.attempts + 1
        first_s = at_s if status.first_s is None else status.first_s
        running = replace(status, state=JobState.RUNNING, reason=reason, attempts=attempt)
        self.change(replace(running, first_s=first_s))
        run = LiveRun(
            new_id(), job, attempt, self.executor.runs_dir, at_s,
            first_s, label_of(class_of(job)), usage=Usage(self.machine.available_bytes),
        )  # fmt: skip
        self.note(add_run, run.id, job.id, attempt, run.usage.available_least)
        if self.agent_runs is not None and job.brief is not None:
            again, short = status.interrupted, self.memory.history.level is Level.SINGLE
            if why := self.agent_runs.begin(run, grant_bytes, resumed=again, short=short):
                self.emit("run_warning", why, run)
            self.note_said(run)
        idle = self.executor.start(run, grant_bytes, resumed=status.interrupted)
        if idle is not None:
            self.note(reassign_pen, run.home, run.id)
        elif run.pen is not None:
            self.note(add_pen, run.id, self.herd, run.id, run.pen.record())
        self.emit("run_started", reason, run)

    def stop(self, run: LiveRun, stopping: Stopping) -> None:
        self.executor.stop(run, stopping)
        self.emit("run_stopping", stopping.reason, run)
        if stopping.end is RunEnd.PREEMPTED:
            self.note_trouble(stopping.reason)

    def settle(self, settle: Settle, at_s: float) -> None:
        """A job that still runs ends with its run."""
        self.counters.no_room = self.counters.no_room or settle.reason.why in (
            Why.NO_WAIT,
            Why.TOO_BIG,
        )
        self.given_up = self.given_up or settle.reason.why is Why.NO_WAIT
        for run in self.executor.runs.values():
            if run.job.id == settle.job:
                self.stop(run, Stopping(RunEnd.FAILED, settle.reason, at_s))
                return
        for status in self.roster.apply(settle):
            self.note_job(status)

    def finish(self, run: LiveRun, end: RunEnd, reason: Reason, at_s: float) -> None:
        idle = self.executor.make_idle(run, at_s) if run.is_free else None
        if idle is None:
            self.executor.finish(run, at_s)
        self.note(
            end_run, run.id, end, reason, run.exit, peak_bytes=run.reading.peak_bytes,
            least_bytes=run.usage.available_least, after_bytes=self.machine.available_bytes,
        )  # fmt: skip
        if self.agent_runs is not None and run.agent_run is not None:
            self.agent_runs.end(
                run, end, most_bytes=largest_budget_bytes(self.machine, self.policy)
            )
            self.note_said(run)
        self.counters.add_run(run, end, reason, at_s)
        if is_failed_start(run.view(kernel_limits=True, at_s=at_s), end, at_s):
            self.memory.failed_starts.append(at_s)
        if end in (RunEnd.LIMIT_KILL, RunEnd.OOM_KILL):
            self.note_trouble(reason)
        if end is RunEnd.DONE and (learned := self.memory.classes.learn(run, at_s)) is not None:
            self.note(learn_run, *learned)
        self.emit("run_ended", reason, run)
        status = after_run(
            self.roster[run.job.id], end, reason,
            at_s=at_s, policy=self.policy, hit_bytes=run.hit_bytes,
        )  # fmt: skip
        self.change(status)
        if idle is not None:
            self.hand_on(idle, at_s)
        elif run.reading.procs:
            self.emit("run_warning", Reason(Why.UNKILLABLE, processes=run.reading.procs), run)

    def change(self, new: JobStatus) -> None:
        for status in self.roster.change(new):
            self.note_job(status)

    def note_job(self, status: JobStatus) -> None:
        self.note(set_job, status)
        self.counters.jobs[status.job.id].reason = status.reason
        if self.agent_runs is not None and status.state.is_final:
            self.agent_runs.end_job(status.job)
        if status.state not in (JobState.RUNNING, JobState.HELD):
            self.emit_job(f"job_{status.state.value}", status.reason, status)

    def note_swept(self, cleaned: CleanedPen) -> None:
        self.note(drop_pen, cleaned.run)
        self.counters.residue_bytes += cleaned.residue_bytes
        if cleaned.residue_bytes:
            reason = Reason(Why.RESIDUE, residue_bytes=cleaned.residue_bytes)
            self.tell(Event("residue", reason, time.time(), self.herd, run=cleaned.run), "a run")
