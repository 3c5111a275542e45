"""The loop: snapshot -> decide -> carry out -> record -> show.

One supervisor runs one herd. It wakes when the keeper or a signal says something, else once a
tick. What to do is decided in `decide/`, how it is done is in `act/`; here the two meet.
"""

import os
import select
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol

from ramherd.act.executor import Executor, LiveRun
from ramherd.act.signals import Signals
from ramherd.act.sweeper import Swept
from ramherd.decide.budget import budget_bytes, largest_budget_bytes
from ramherd.decide.ends import next_deadline_s
from ramherd.decide.engine import decide
from ramherd.decide.outcome import after_run
from ramherd.ids import new_id
from ramherd.learning import class_of, summary_of
from ramherd.measure.cgroups import Trees
from ramherd.measure.engines import find_client, read_engine_clients
from ramherd.measure.machine import read_machine
from ramherd.model import (
    Action,
    Clear,
    Event,
    Finish,
    JobState,
    JobStatus,
    Kill,
    Policy,
    Reason,
    RunEnd,
    Settle,
    Snapshot,
    Start,
    Stop,
    Stopping,
    Wait,
    Warn,
    Why,
)
from ramherd.queue.classes import learn_run
from ramherd.queue.journal import Journal
from ramherd.queue.roster import Roster
from ramherd.queue.store import Store
from ramherd.show.view import RunLine, View
from ramherd.tally import Tally

TICK_S = 0.5
SAMPLE_EVERY_S = 5.0


class Show(Protocol):
    def event(self, event: Event, name: str) -> None: ...
    def update(self, view: Callable[[], View]) -> None: ...


@dataclass
class Supervisor:
    herd: str
    roster: Roster
    journal: Journal
    executor: Executor
    trees: Trees
    policy: Policy
    show: Show
    signals: Signals
    tally: Tally = field(default_factory=Tally)
    clock: Callable[[], float] = time.monotonic
    given_up: bool = False
    started_s: float = 0.0
    _fleet_used: int = 0
    _looked_s: float = float("-inf")
    _sampled_s: float = float("-inf")
    _waits_for: Reason | None = None

    def __post_init__(self) -> None:
        self.machine = read_machine(self.trees)

    def run(self) -> Tally:
        """Until every job has ended and nothing of them is left."""
        self.started_s = self.clock()
        self.tally.available_before = self.machine.available_bytes
        self.executor.fleet.set_limit(
            largest_budget_bytes(self.machine, self.policy) + self.policy.fleet_slack_bytes
        )
        while (timeout_s := self.step()) is not None:
            self.wait(timeout_s)
        self.tally.wall_s = self.clock() - self.started_s
        self.tally.peak_bytes = self.executor.fleet.read().peak_bytes
        return self.tally

    def step(self) -> float | None:
        """One round; how long it may take until the next, None after the last."""
        at_s = self.clock()
        self.hear(at_s)
        snapshot = self.measure(at_s)
        # What leaves makes room for what comes: decided again at once, until all is quiet.
        while any(not isinstance(action, Wait) for action in self.decide(snapshot)):
            snapshot = self.measure(at_s)
        self.executor.close_output()
        self.record()
        # While the keeper is at work with what it was asked for.
        for swept in self.executor.sweep():
            self.note_swept(swept)
        self.show.update(lambda: self.view(at_s))
        if self.roster.is_over and not self.executor.runs:
            return None
        deadline = next_deadline_s(snapshot, self.policy)
        longest = self.executor.fleet.soon_s if self.executor.is_busy else TICK_S
        return max(min(longest, deadline - self.clock()), 0.0)

    def record(self) -> None:
        """What the keeper is asked to start is in the store first."""
        trouble = self.journal.trouble
        if self.journal.commit():
            self.executor.link.flush()
        if self.journal.trouble and not trouble:
            self.emit_herd("store_waits", Reason(Why.STORE, what=self.journal.trouble))

    def hear(self, at_s: float) -> None:
        if not self.executor.hear(at_s):
            self.executor.replace_keeper(at_s)
            self.emit_herd("keeper_lost", Reason(Why.KEEPER_LOST))
        self.record_started()

    def decide(self, snapshot: Snapshot) -> list[Action]:
        actions = decide(snapshot, self.policy)
        for action in actions:
            self.carry_out(action, snapshot.at_s)
        return actions

    def wait(self, timeout_s: float) -> None:
        """Until the keeper or a signal has something to say."""
        link, poll = self.executor.link, select.poll()
        sending = link.has_more_to_send and not self.journal.trouble
        poll.register(link.fileno(), select.POLLIN | (select.POLLOUT * sending))
        poll.register(self.signals.fd, select.POLLIN)
        if self.signals.fd in dict(poll.poll(timeout_s * 1000)):
            os.read(self.signals.fd, 4096)

    def measure(self, at_s: float) -> Snapshot:
        """Everything once a tick; between ticks only what is on its way out."""
        runs = self.executor.runs.values()
        fleet = self.executor.fleet
        if at_s - self._looked_s >= TICK_S:
            self._looked_s = at_s
            fleet.scan()
            self.machine = read_machine(self.trees)
            for run in runs:
                run.measure()
                run.moments.add(run.reading.used_bytes)
                run.available_least = min(run.available_least, self.machine.available_bytes)
            self._fleet_used = fleet.read().used_bytes
            self.record_samples(at_s)
            self.look_for_engines(runs)
        elif any(run.is_ending for run in runs):
            fleet.scan()
            for run in runs:
                if run.is_ending:
                    run.measure()
        views = [run.view(kernel_limits=fleet.kernel_limits) for run in runs]
        interrupts = max(self.signals.count, int(self.given_up))
        return Snapshot(at_s, self.machine, views, self.roster.queue, self._fleet_used, interrupts)

    def look_for_engines(self, runs: Iterable[LiveRun]) -> None:
        if clients := read_engine_clients():
            for run in runs:
                if not run.engine and run.pen is not None:
                    run.engine = find_client(run.pen.pids(), clients)

    def record_started(self) -> None:
        """Where no cgroup knows a run's processes, the first of them is what can be told."""
        while self.executor.started:
            run = self.executor.started.pop()
            if run.pen is not None and not self.executor.fleet.kernel_limits:
                self.note(Store.set_pen, run.id, run.pen.record())

    def record_samples(self, at_s: float) -> None:
        if at_s - self._sampled_s >= SAMPLE_EVERY_S:
            self._sampled_s = at_s
            for run in self.executor.runs.values():
                self.note(Store.add_sample, run.id, time.time(), run.reading.used_bytes)

    def carry_out(self, action: Action, at_s: float) -> None:
        match action:
            case Start(job, reason):
                self.start(self.roster[job], reason, at_s)
            case Wait(job, reason):
                self.note_wait(job, reason)
            case Settle():
                self.settle(action)
            case Stop(run, end, reason):
                live = self.executor.runs[run]
                self.executor.stop(live, Stopping(end, reason, at_s))
                self.emit("run_stopping", reason, live)
            case Clear(run, reason):
                live = self.executor.runs[run]
                self.executor.clear(live, at_s)
                self.tally.leftovers_ended += live.leftovers
                self.emit("leftovers_ended", reason, live)
            case Kill(run, reason):
                live = self.executor.runs[run]
                self.executor.kill(live, at_s)
                self.emit("run_killed", reason, live)
            case Warn(run, reason):
                live = self.executor.runs[run]
                live.warned = True
                self.emit("run_warning", reason, live)
            case Finish(run, end, reason):
                self.finish(self.executor.runs[run], end, reason, at_s)

    def start(self, status: JobStatus, reason: Reason, at_s: float) -> None:
        resumed = status.reason.why is Why.OVER_BUDGET
        self.change(
            replace(status, state=JobState.RUNNING, reason=reason, attempts=status.attempts + 1)
        )
        run_id, attempt = new_id(), status.attempts + 1
        available = self.machine.available_bytes
        self.note(Store.add_run, run_id, status.job.id, attempt, available)
        live = self.executor.start(run_id, status.job, attempt, at_s, resumed=resumed)
        live.available_least = available
        live.need_bytes = status.need_bytes
        if live.pen is not None:
            self.note(Store.add_pen, run_id, self.herd, run_id, live.pen.record())
        self.emit("run_started", reason, live)

    def note_wait(self, job: str, reason: Reason) -> None:
        """Said when memory becomes the reason, not each time that numbers move."""
        short = reason.why in (Why.NO_ROOM_BUDGET, Why.NO_ROOM_MACHINE)
        if short and (self._waits_for is None or self._waits_for.why is not reason.why):
            self.emit_job("start_waits", reason, self.roster[job])
        self._waits_for = reason

    def settle(self, settle: Settle) -> None:
        self.tally.no_room = self.tally.no_room or settle.reason.why in (Why.NO_WAIT, Why.TOO_BIG)
        self.given_up = self.given_up or settle.reason.why is Why.NO_WAIT
        for status in self.roster.settle(settle):
            self.note_job(status)

    def finish(self, run: LiveRun, end: RunEnd, reason: Reason, at_s: float) -> None:
        self.executor.finish(run)
        if end is RunEnd.PREEMPTED:
            self._looked_s = float("-inf")  # it made room: look again before another has to
        self.note(
            Store.end_run, run.id, end, reason, run.exit, run.reading,
            least_bytes=run.available_least, after_bytes=self.machine.available_bytes,
        )  # fmt: skip
        self.tally.add_run(run, end, reason, at_s)
        if end is RunEnd.DONE and (summary := summary_of(run, at_s)) is not None:
            self.note(learn_run, class_of(run), summary)
        self.emit("run_ended", reason, run)
        status = after_run(
            self.roster[run.job.id], end, reason,
            at_s=at_s, policy=self.policy, peak_bytes=run.reading.peak_bytes,
        )  # fmt: skip
        self.change(status)
        if run.reading.procs:
            self.emit("run_warning", Reason(Why.UNKILLABLE, processes=run.reading.procs), run)

    def change(self, new: JobStatus) -> None:
        for status in self.roster.change(new):
            self.note_job(status)

    def note_job(self, status: JobStatus) -> None:
        self.note(Store.set_job, status)
        self.tally.jobs[status.job.id].reason = status.reason
        if status.state is not JobState.RUNNING:
            self.emit_job(f"job_{status.state.value}", status.reason, status)

    def note_swept(self, swept: Swept) -> None:
        self.note(Store.drop_pen, swept.run)
        self.tally.residue_bytes += swept.residue_bytes
        if swept.residue_bytes:
            reason = Reason(Why.RESIDUE, residue_bytes=swept.residue_bytes)
            self.tell(Event("residue", reason, time.time(), self.herd, run=swept.run), "a run")

    def note(self, write: Callable[..., Any], *values: Any, **named: Any) -> None:
        self.journal.note(partial(write, self.journal.store, *values, **named))

    def emit(self, kind: str, reason: Reason, run: LiveRun) -> None:
        self.tell(Event(kind, reason, time.time(), self.herd, run.job.id, run.id), run.job.name)

    def emit_herd(self, kind: str, reason: Reason) -> None:
        self.tell(Event(kind, reason, time.time(), self.herd), "all runs")

    def emit_job(self, kind: str, reason: Reason, status: JobStatus) -> None:
        self.tell(Event(kind, reason, time.time(), self.herd, status.job.id), status.job.name)

    def tell(self, event: Event, name: str) -> None:
        self.note(Store.add_event, event)
        self.show.event(event, name)

    def view(self, at_s: float) -> View:
        counts = self.roster.counts
        return View(
            herd=self.herd,
            wall_s=at_s - self.started_s,
            total=len(self.roster),
            done=counts[JobState.DONE],
            failed=counts[JobState.FAILED],
            cancelled=counts[JobState.CANCELLED],
            runs=tuple(
                RunLine(
                    name=run.job.name,
                    attempt=run.attempt,
                    used_bytes=run.reading.used_bytes,
                    ran_s=at_s - run.started_s,
                    ending=run.is_ending,
                )
                for run in self.executor.runs.values()
            ),
            used_bytes=self._fleet_used,
            budget_bytes=budget_bytes(self.machine, self._fleet_used, self.policy),
            available_bytes=self.machine.available_bytes,
            waits_for=self._waits_for,
        )
