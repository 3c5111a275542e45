"""Runs from their start to their end: carried out, recorded, counted and shown."""

import time
from dataclasses import dataclass, field, replace

from ramherd.act.executor import Executor
from ramherd.act.run import LiveRun, Usage
from ramherd.act.warm_pool import IdleProcess
from ramherd.core.memory import Level
from ramherd.core.model import JobState, JobStatus, Reason, RunEnd, Settle, Stop, Stopping, Why
from ramherd.decide.budget import largest_budget_bytes
from ramherd.decide.costs import after_spending
from ramherd.decide.job_state import after_run
from ramherd.decide.run_end import explain_denials, is_failed_start, is_for_memory
from ramherd.decide.suspects import after_other_death, after_survival, is_survivor
from ramherd.decide.warm import explain_reuse
from ramherd.store.classes import learn_run
from ramherd.store.herds import (
    RunClock,
    add_leftovers,
    add_pen,
    add_residue,
    add_run,
    add_sample,
    drop_pen,
    end_run,
    reassign_pen,
    set_error,
    set_pen,
    set_run_account,
    set_run_clock,
    set_said,
)
from ramherd.store.prices import set_price
from ramherd.supervisor.estimates import class_of, label_of
from ramherd.supervisor.event_log import EventLog
from ramherd.supervisor.herd_counters import HerdCounters, account_of
from ramherd.supervisor.job_states import AgentParts, JobStates
from ramherd.supervisor.memory_governor import MemoryGovernor
from ramherd.supervisor.start_gate import StartGate
from ramherd.system.ids import new_id
from ramherd.system.procfs import read_boot_id

SAMPLE_EVERY_S = 5.0


@dataclass
class Runs:
    executor: Executor
    memory: MemoryGovernor
    jobs: JobStates
    agents: AgentParts
    events: EventLog
    gate: StartGate
    counters: HerdCounters
    # With `--no-wait`: a job would have to wait, so the whole herd ends.
    given_up: bool = False
    _sampled_s: float = float("-inf")
    _boot_id: str = field(default_factory=read_boot_id)
    # The earlier states of jobs whose starts are not in the store yet, by run.
    _before_start: dict[str, JobStatus] = field(default_factory=dict)

    def start(self, job_id: str, grant_bytes: int, reason: Reason, at_s: float) -> None:
        if not self.gate.begin_start(at_s):
            return
        status = self.jobs[job_id]
        job, attempt = status.job, status.attempts + 1
        first_s = at_s if status.first_s is None else status.first_s
        available = self.memory.machine.available_bytes
        run = LiveRun(
            new_id(), job, attempt, self.executor.runs_dir, at_s,
            first_s, label_of(class_of(job)), usage=Usage(available), stops=status.stops,
        )  # fmt: skip
        try:
            why_smaller = self._prepare_agent(run, grant_bytes, status)
            idle = self.executor.start(run, grant_bytes, resumed=status.interrupted)
        except OSError as error:
            # Nothing worth a report has happened: the job is as before.
            self._withdraw_agent(run)
            self._pause_starts(error.errno or 0, self.executor.describe_failure(error), at_s)
            return
        if idle is not None:
            reason = explain_reuse(idle.process.jobs, idle.process.most_jobs)
        self._before_start[run.id] = status
        running = replace(status, state=JobState.RUNNING, reason=reason, attempts=attempt)
        with self.events.start_of(run.id):
            self.jobs.change(replace(running, first_s=first_s))
            self._record_start(run, idle, why_smaller, reason)

    def _prepare_agent(
        self, run: LiveRun, grant_bytes: int, before: JobStatus
    ) -> Reason | None:  # fmt: skip
        """Returns why the model is smaller than usual, if it is."""
        if self.agents.runs is None or run.job.brief is None:
            return None
        short = self.memory.history.level is Level.SINGLE
        stopped = before.reason if before.interrupted else None
        return self.agents.runs.prepare(run, grant_bytes, stopped=stopped, short=short)

    def _withdraw_agent(self, run: LiveRun) -> None:
        if self.agents.runs is not None:
            self.agents.runs.withdraw(run)

    def _pause_starts(self, number: int, what: str, at_s: float) -> None:
        self.gate.record_failed_start(what, at_s)
        if is_for_memory(number):
            self.memory.failed_starts.append(at_s)

    def _record_start(
        self, run: LiveRun, idle: IdleProcess | None, why_smaller: Reason | None, reason: Reason
    ) -> None:
        available, clock = run.usage.available_least, self._clock_of(run, run.started_s)
        self.events.record(add_run, run.id, run.job.id, run.attempt, available, clock=clock)
        if why_smaller is not None:
            self.events.emit_run("run_fallback", why_smaller, run)
        self._record_agent(run)
        if run.agent_run is not None and run.agent_run.no_servers is not None:
            self.events.emit_run("run_warning", run.agent_run.no_servers, run)
        if idle is not None:
            self.events.record(reassign_pen, run.home, run.id)
        elif run.pen is not None:
            self.events.record(add_pen, run.id, self.events.herd, run.id, run.pen.record())
        self.events.emit_run("run_started", reason, run)

    def release_starts(self) -> None:
        """The store has recorded everything: runs start, and are shown."""
        self._before_start.clear()
        self.executor.release_starts()
        self.events.show_starts()

    def is_held_back(self, run: LiveRun) -> bool:
        """Whether the start of the run is not in the store yet."""
        return run.id in self._before_start

    def _withdraw(self, run: LiveRun) -> bool:
        """Undoes a start that the store has not recorded: the job returns to its earlier state.
        Returns whether the start was undone.
        """
        if not self.executor.withdraw(run):
            return False
        self._withdraw_agent(run)
        self.events.withdraw(run.id)
        self.jobs.put_back(self._before_start.pop(run.id))
        return True

    def stop(self, run: LiveRun, stopping: Stopping) -> None:
        """A run that the keeper has not been asked to start yet never starts."""
        if self._withdraw(run):
            return
        self.events.hooks.run_stopping(run, stopping)
        self.executor.stop(run, stopping)
        self.events.emit_run("run_stopping", stopping.reason, run)
        if stopping.end is RunEnd.PREEMPTED:
            self.memory.record_trouble(stopping.reason)

    def restart(self, stop: Stop, at_s: float) -> None:
        """A run that cannot be resumed is not restarted: the user gets a warning."""
        run = self.executor.runs[stop.run]
        if run.job.resumes:
            self.stop(run, Stopping(stop.end, stop.reason, at_s))
        elif run.warn_once(Why.LEAK):
            self.events.emit_run("run_warning", stop.reason, run)

    def apply_settle(self, settle: Settle, at_s: float) -> None:
        """A job that still runs ends with its run."""
        self.counters.no_room |= settle.reason.why in (Why.NO_WAIT, Why.TOO_BIG)
        self.given_up |= settle.reason.why is Why.NO_WAIT
        run = self.run_of(settle.job)
        if run is not None:
            self.stop(run, Stopping(RunEnd.FAILED, settle.reason, at_s))
        else:
            self.jobs.apply(settle)

    def run_of(self, job: str) -> LiveRun | None:
        return next((run for run in self.executor.runs.values() if run.job.id == job), None)

    def record_keeper_death(self) -> None:
        """Each run that died with the keeper counts the death when it is finished; jobs that did
        not run are counted here.
        """
        for status in list(self.jobs.queue.suspected.values()):
            if status.suspicion.alone and status.state is JobState.QUEUED:
                self.jobs.change(after_other_death(status))

    def clear_survivors(self, at_s: float) -> None:
        """Jobs whose runs outlive the runs that died with the keeper are no longer suspects."""
        for status in list(self.jobs.queue.suspected.values()):
            run = self.run_of(status.job.id)
            if run is None or run.is_ending:
                continue
            ran_s = at_s - run.started_s - run.uncounted_s(at_s)
            if is_survivor(status.suspicion, ran_s, self.memory.policy):
                self.jobs.change(after_survival(status))

    def clear(self, run: LiveRun, reason: Reason, at_s: float) -> None:
        ended = self.executor.clear(run, at_s)
        self.counters.leftovers_ended += ended
        self.events.record(add_leftovers, run.id, ended)
        self.events.emit_run("leftovers_ended", reason, run)

    def kill(self, run: LiveRun, reason: Reason, at_s: float) -> None:
        self.executor.kill(run, at_s)
        self.events.emit_run("run_killed", reason, run)

    def warn(self, run: LiveRun, reason: Reason) -> None:
        run.warn_once(reason.why)
        self.events.emit_run("run_warning", reason, run)

    def finish(
        self, run: LiveRun, end: RunEnd, reason: Reason, at_s: float
    ) -> IdleProcess | None:  # fmt: skip
        """Returns the process of the run if it can serve another job."""
        idle = self.executor.make_idle(run, at_s) if run.is_free else None
        if idle is None:
            self.executor.finish(run, at_s)
        machine = self.memory.machine
        self.events.record(
            end_run, run.id, end, reason, run.exit, peak_bytes=run.reading.peak_bytes,
            least_bytes=run.usage.available_least, after_bytes=machine.available_bytes,
        )  # fmt: skip
        self.events.record(set_run_account, run.id, account_of(run, end, at_s - run.started_s))
        if self.agents.runs is not None and run.agent_run is not None:
            most_bytes = largest_budget_bytes(machine, self.memory.policy)
            self.agents.runs.end(run, end, most_bytes=most_bytes)
            self._record_agent(run)
            self._warn_of_denials(run, end)
        error = self._read_error(run, end)
        self.counters.add_run(run, end, reason, at_s, error)
        self.events.hooks.run_ended(run, end, at_s)
        self._learn(run, end, reason, at_s)
        self.events.emit_run("run_ended", reason, run)
        if reason.why is Why.CANNOT_PREPARE:
            self.gate.record_failed_start(str(reason.numbers["what"]), at_s)
        status = after_run(
            self.jobs[run.job.id], end, reason,
            at_s=at_s, policy=self.memory.policy, hit_bytes=run.hit_bytes,
        )  # fmt: skip
        if self.agents.runs is not None:
            status = after_spending(status, self.agents.runs.read_money_left(run))
        self.jobs.change(status)
        if idle is None and run.reading.procs:
            unkillable = Reason(Why.UNKILLABLE, processes=run.reading.procs)
            self.events.emit_run("run_warning", unkillable, run)
        return idle

    def _warn_of_denials(self, run: LiveRun, end: RunEnd) -> None:
        calls = run.agent_run.denied_calls if run.agent_run is not None else []
        if (reason := explain_denials(calls, end)) is not None:
            self.events.emit_run("run_warning", reason, run)

    def _read_error(self, run: LiveRun, end: RunEnd) -> str | None:
        """The error that a command printed; the error of an agent is recorded with its report."""
        if run.agent_run is not None:
            return run.agent_run.error or None
        error = ""
        if end is RunEnd.FAILED and run.exit is not None:
            from ramherd.measure.last_error import read_last_error  # noqa: PLC0415 - few fail

            error = read_last_error(run.dir)
        if error or run.attempt > 1:
            self.events.record(set_error, run.job.id, error or None)
        return error or None

    def _learn(self, run: LiveRun, end: RunEnd, reason: Reason, at_s: float) -> None:
        """Records what the end of a run shows about the machine and about its class of jobs."""
        if is_failed_start(run.view(kernel_limits=True, at_s=at_s), end, at_s):
            self.memory.failed_starts.append(at_s)
        if end in (RunEnd.LIMIT_KILL, RunEnd.OOM_KILL):
            self.memory.record_trouble(reason)
        if end is RunEnd.DONE and (learned := self.memory.classes.learn(run, at_s)) is not None:
            self.events.record(learn_run, *learned)
        for price in self.agents.runs.prices.pop_learned() if self.agents.runs is not None else ():
            self.events.record(set_price, *price)

    def record_started(self) -> None:
        """Without a cgroup that lists a run's processes, the first process is recorded."""
        while self.executor.started:
            run = self.executor.started.pop()
            if run.pen is not None and not self.executor.fleet.kernel_limits:
                self.events.record(set_pen, run.home, run.pen.record())

    def record_samples(self, at_s: float) -> None:
        if at_s - self._sampled_s < SAMPLE_EVERY_S or self.events.writes.trouble:
            return
        self._sampled_s = at_s
        for run in self.executor.runs.values():
            self.events.record(add_sample, run.id, time.time(), run.reading.used_bytes)
            if run.uncounted_s(at_s):
                self.events.record(set_run_clock, run.id, self._clock_of(run, at_s))
            if run.agent_run is not None and run.agent_run.has_news:
                self._record_agent(run)

    def record_sessions(self) -> None:
        """As soon as they are known: the process that continues the herd resumes them."""
        for run in self.executor.runs.values():
            if run.agent_run is not None and run.agent_run.has_new_session:
                self._record_agent(run)

    def _clock_of(self, run: LiveRun, at_s: float) -> RunClock:
        return RunClock(self._boot_id, run.started_s, run.uncounted_s(at_s))

    def _record_agent(self, run: LiveRun) -> None:
        if run.agent_run is not None:
            self.events.record(set_said, run.job.id, run.agent_run.next_record())

    def clean_up(self) -> None:
        """Removes the pens of runs that have ended."""
        for cleaned in self.executor.clean_up():
            self.events.record(drop_pen, cleaned.run)
            self.counters.residue_bytes += cleaned.residue_bytes
            if cleaned.residue_bytes:
                self.events.record(add_residue, cleaned.run, cleaned.residue_bytes)
                reason = Reason(Why.RESIDUE, residue_bytes=cleaned.residue_bytes)
                self.events.emit_herd("residue", reason, run=cleaned.run)
