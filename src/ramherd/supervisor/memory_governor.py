"""The memory side of the loop: lease and pressure in, the governor's orders out.

Grants are carried out here, in their order; orders that start and stop runs go back to the loop.
"""

import os
import time
from collections import deque
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice

from ramherd.act.executor import Executor
from ramherd.act.run import LiveRun
from ramherd.core.errors import StoreError
from ramherd.core.memory import (
    Admit,
    Candidate,
    Grant,
    GrantAction,
    History,
    Mode,
    Penned,
    Scene,
    SetLevel,
    Trim,
)
from ramherd.core.model import (
    Job,
    JobState,
    JobStatus,
    Machine,
    Reason,
    RunEnd,
    Settle,
    Stop,
    Wait,
    Why,
)
from ramherd.core.policies import GrantPolicy, Policy, RecyclePolicy
from ramherd.core.run_phase import Held, Starting
from ramherd.decide.budget import budget_bytes, largest_budget_bytes
from ramherd.decide.governor.govern import govern
from ramherd.decide.governor.leases import (
    explain_ledger,
    has_run_at_work,
    least_lease,
    waiting_since,
    wanted_lease,
)
from ramherd.decide.governor.reclaim import IdleRun, choose_reclaim
from ramherd.decide.governor.recycle import Own, Watches, recycle
from ramherd.decide.hold import explain_hold
from ramherd.decide.ramp import Ramp, after_trouble, next_ramp
from ramherd.decide.start_pause import Cause, explain_start_at
from ramherd.decide.suspects import Trial, choose_trial
from ramherd.decide.usage_limits import parse_quota
from ramherd.decide.wait_reports import LASTING_S, WaitReports, next_reports
from ramherd.measure.machine import read_free_swap
from ramherd.measure.own_memory import read_agent_bytes, read_own_bytes
from ramherd.measure.pressure import Pressure, PressureGauge
from ramherd.store.ledger import Answer, Ask, Ledger, OtherUse
from ramherd.supervisor.estimates import Classes, class_of, label_of
from ramherd.supervisor.job_states import AgentParts, JobStates
from ramherd.supervisor.start_gate import StartGate
from ramherd.system.boot_clock import read_boot_s

# The governor gets this many jobs of each priority: it reads no more of them in one round.
HEADS = 36
# A grant that cannot be lowered is decided again, with new measurements.
ROUNDS = 4
MAKING_ROOM = (RunEnd.PREEMPTED, RunEnd.RECYCLED)
FAILED_STARTS_S = 60.0
RECYCLE_EVERY_S = 1.0
CORES = os.cpu_count() or 1
# A run that uses less than this share of the mark is not watched for leaks.
WORTH_WATCHING = 0.25
# A held run does not wait for the next tick, but the ledger is not asked at each event.
RENEW_AGAIN_S = 0.02
# The loop does not wait for the ledger: the last answer holds until the next tick. A tick with a
# locked ledger takes 1 ms more than this, and the loop never blocks for 15 ms.
LEDGER_PATIENCE_S = 0.008
# A ledger that fails to answer once is busy; if it fails again a tick later, that is reported.
REPORT_LEDGER_S = 0.4
# The interval at which jobs that wait for their API are looked up.
FOLLOW_LIMITS_S = 0.2

# Reasons to delay a start that are worth an event.
SHORT_OF_MEMORY = (
    Why.NO_ROOM_LEASE, Why.SOMEBODY_WAITS, Why.LEVEL, Why.CPU_PRESSURE, Why.RAMP,
)  # fmt: skip

# Other reasons that are worth an event.
REPORTED = (
    *SHORT_OF_MEMORY, Why.SUSPECTS_FIRST, Why.KEEPER_ALONE, Why.OVERLOAD_PACE, Why.USAGE_LIMIT,
    Why.NO_ACCESS, Why.START_AT,
)  # fmt: skip

Order = Admit | Stop | Settle | Wait | SetLevel


@dataclass
class LeaseHolder:
    """The lease of this application, renewed in the ledger once a tick."""

    ledger: Ledger
    policy: Policy
    grants: GrantPolicy
    budget_bytes: int = 0
    lease_bytes: int = 0
    # The lease if we asked for all memory: the budget, until the ledger answers.
    possible_bytes: int = 0
    most_possible_bytes: int = 0
    others: tuple[OtherUse, ...] = ()
    # Whether the ledger has ever answered: before that, the leases of others are unknown.
    is_known: bool = False
    # The trouble with the ledger, and its start: the last answer holds until the trouble is over.
    trouble: str = ""
    trouble_since_s: float = 0.0
    _asked_s: float = float("-inf")
    _began_s: float | None = None
    # The start of our wait, by the loop's clock and in seconds since boot.
    _since: tuple[float | None, float | None] = (None, None)

    def renew(self, machine: Machine, fleet_used_bytes: int, scene: Scene) -> None:
        self._asked_s = scene.at_s
        self.budget_bytes = budget_bytes(machine, fleet_used_bytes, self.policy)
        whole = budget_bytes(machine, fleet_used_bytes, self.policy, capped=False)
        ask = Ask(
            wants_bytes=wanted_lease(scene, self.grants),
            used_bytes=fleet_used_bytes,
            granted_bytes=sum(run.grant_bytes for run in scene.runs) + scene.ending_bytes,
            waiting_since_s=self._read_since(scene),
            least_bytes=least_lease(scene),
            is_at_work=has_run_at_work(scene),
        )
        self.ledger.file.patience_s = LEDGER_PATIENCE_S
        try:
            self._set(self.ledger.ask(ask, whole))
            self.trouble = ""
        except StoreError as error:
            if not self.trouble:
                self.trouble_since_s = scene.at_s
            self.trouble = str(error)
            self.lease_bytes = min(self.lease_bytes, self.budget_bytes)
            known = self.possible_bytes if self.is_known else self.budget_bytes
            self.possible_bytes = min(known, self.budget_bytes)
        self.most_possible_bytes = max(self.most_possible_bytes, self.possible_bytes)

    def _read_since(self, scene: Scene) -> float | None:
        """When our wait began, in seconds since boot. It begins at our own start at the earliest:
        the time that a job was queued before depends on the wall clock.
        """
        self._began_s = scene.at_s if self._began_s is None else self._began_s
        since_s = waiting_since(scene)
        if since_s is not None and since_s != self._since[0]:
            ago_s = scene.at_s - max(since_s, self._began_s)
            self._since = (since_s, read_boot_s() - ago_s)
        return None if since_s is None else self._since[1]

    def _set(self, answer: Answer) -> None:
        self.is_known = True
        self.others = answer.others
        self.lease_bytes = min(answer.target_bytes, self.budget_bytes)
        self.possible_bytes = min(answer.possible_bytes, self.budget_bytes)

    def is_due(self, scene: Scene) -> bool:
        """A run is held, and more memory may be free than at the last request."""
        if self.trouble or not any(run.held_since_s is not None for run in scene.runs):
            return False
        return self.lease_bytes < self.budget_bytes and self._is_old(scene.at_s)

    def _is_old(self, at_s: float) -> bool:
        return at_s - self._asked_s >= RENEW_AGAIN_S


@dataclass
class MemoryGovernor:
    executor: Executor
    jobs: JobStates
    agents: AgentParts
    gate: StartGate
    lease: LeaseHolder
    classes: Classes
    gauge: PressureGauge
    policy: Policy
    grants: GrantPolicy
    recycling: RecyclePolicy = field(default_factory=RecyclePolicy)
    ramp: Ramp | None = None
    time_scale: float = 1.0
    history: History = field(default_factory=History)
    watches: Watches = field(default_factory=Watches)
    pressure: Pressure = field(default_factory=Pressure)
    # Times of starts that failed for lack of memory.
    failed_starts: deque[float] = field(default_factory=deque)
    # Grants that were carried out and are not reported yet.
    given: list[Grant] = field(default_factory=list)
    # Whether the first job in line waits for memory; and its reason to wait, whatever that is.
    is_short: bool = False
    waits_for: Reason | None = None
    first_wait: Wait | None = None
    # Suspects that run before all other jobs, and when the keeper last died or was started.
    trial: Trial | None = None
    keeper_died_s: float = 0.0
    machine: Machine = field(default_factory=lambda: Machine(0, 0))
    fleet_used: int = 0
    _recycled_s: float = float("-inf")
    # When cold memory of a run was last moved to swap.
    _reclaimed_s: dict[str, float] = field(default_factory=dict)
    _known: dict[str, tuple[JobStatus, Candidate]] = field(default_factory=dict)
    _waits: WaitReports = field(default_factory=WaitReports)
    _reported_ledger: bool = False
    # The first head of the queue that waits for its API.
    _unserved: Wait | None = None
    _followed_s: float = float("-inf")
    _ended_unserved_s: float = float("-inf")
    # Why the ledger has not answered yet.
    _no_lease: Reason | None = None

    def tick(self, machine: Machine, fleet_used_bytes: int, at_s: float) -> None:
        """Called after all runs were measured."""
        self.machine, self.fleet_used = machine, fleet_used_bytes
        self.pressure = self.gauge.read(at_s)
        for run in self.executor.runs.values():
            self.executor.enforcer.enforce(run, at_s)
        while self.failed_starts and at_s - self.failed_starts[0] > self._scaled(FAILED_STARTS_S):
            self.failed_starts.popleft()
        if self.ramp is not None:
            settle_s = self.grants.young_s
            self.ramp = next_ramp(self.ramp, len(self.executor.runs), at_s, settle_s=settle_s)
        self.lease.renew(machine, fleet_used_bytes, self.scene(at_s))
        self._report_ledger(at_s)

    def govern(self, at_s: float, *, queue: bool = True) -> list[Order]:
        """Changes grants, and returns all other orders. `queue`: whether jobs may start."""
        if self._no_lease is not None:
            return [Wait(one.job.id, self._no_lease) for one in self.jobs.queue.heads(1)[:1]]
        scene = self.scene(at_s, queue=queue)
        if self.lease.is_due(scene):
            self.lease.renew(self.machine, self.fleet_used, scene)
            scene = self.scene(at_s, queue=queue)
        for _ in range(ROUNDS):
            history, actions = govern(scene, self.history, self.grants)
            if self._carry_out(actions, at_s):
                self.history = history
                self.is_short = any(map(is_for_memory, actions))
                orders = [action for action in actions if not isinstance(action, Grant | Trim)]
                if not queue:
                    return orders
                return [*orders, *self._wait_for_trial(), *self._wait_for_api(orders)]
            scene = self.scene(at_s, queue=queue)
        return []

    def _carry_out(self, actions: Sequence[GrantAction], at_s: float) -> bool:
        """Carries out grants in order; returns False at a run that has outgrown its new grant."""
        enforcer, runs = self.executor.enforcer, self.executor.runs
        for action in actions:
            if isinstance(action, Grant):
                if not enforcer.set_grant(runs[action.run], action.grant_bytes, at_s):
                    return False
                self.given.append(action)
            elif isinstance(action, Trim):
                enforcer.trim(runs[action.run])
        return True

    @property
    def owes_bytes(self) -> int:
        """Memory that runs and idle warm processes use beyond the lease: others wait for it."""
        if not self.lease.is_known:
            return 0
        used = sum(run.reading.used_bytes for run in self.executor.runs.values())
        return max(used + self.executor.warm_pool.used_bytes - self.lease.lease_bytes, 0)

    def scene(self, at_s: float, *, queue: bool = True) -> Scene:
        live: list[LiveRun] = []
        ending: list[LiveRun] = []
        for run in self.executor.runs.values():
            (ending if is_over(run) else live).append(run)
        ending_bytes = (
            sum(run.grant.grant_bytes for run in ending) + self.executor.warm_pool.used_bytes
        )
        granted = sum(run.grant.grant_bytes for run in live)
        lease = self.lease.lease_bytes - ending_bytes
        return Scene(
            at_s=at_s,
            # Until the ledger answers, adopted runs hold the memory that they were granted.
            lease_bytes=max(lease, 0) if self.lease.is_known else granted,
            runs=[penned(run) for run in live],
            queue=self.candidates(at_s) if queue else [],
            largest_bytes=largest_budget_bytes(self.machine, self.policy),
            budget_bytes=self.lease.possible_bytes,
            estimates=self.classes.estimates,
            memory_pressure=self.pressure.memory,
            cpu_pressure=self.pressure.cpu,
            swap_in_bytes_per_s=self.pressure.swap_in_bytes_per_s,
            failed_starts=len(self.failed_starts),
            starting=sum(isinstance(run.phase, Starting) for run in live),
            cores=CORES,
            ending=len(ending),
            ending_bytes=ending_bytes,
            ramp=self.ramp.allowed if self.ramp is not None else None,
        )

    def candidates(self, at_s: float) -> list[Candidate]:
        """The first jobs of the queue. A job starts later while the API of its agent is too busy,
        and not at all once its herd has reached its cost limit.
        """
        heads, agent_runs = self._heads(at_s), self.agents.runs
        # A step is short, and most jobs keep their places from the step before.
        self._known = {status.job.id: self._candidate(status) for status in heads}
        found = [known for _status, known in self._known.values()]
        if agent_runs is None:
            return found
        line = ((status.job, status.not_before_s) for status in heads)
        times = list(agent_runs.limits.choose_times(line, at_s))
        why = zip(heads, times, strict=True)
        self._unserved = next(
            (Wait(one.job.id, reason) for one, (_, reason) in why if reason is not None), None
        )
        return [
            replace(one, not_before_s=time_s) if time_s > one.not_before_s else one
            for one, (time_s, _) in zip(found, times, strict=True)
        ]

    def _follow_limits(self, at_s: float) -> None:
        """Once a tick: finds jobs that wait for their API, if the store can be read."""
        agent_runs = self.agents.runs
        if agent_runs is None or at_s - self._followed_s < FOLLOW_LIMITS_S:
            return
        self._followed_s = at_s
        limits, queue = agent_runs.limits, self.jobs.queue
        if not limits.windows:
            queue.set_closed(frozenset())
            return
        with suppress(StoreError):
            quotas = queue.read_quotas()
            queue.set_closed(frozenset(one for one in quotas if limits.is_closed(parse_quota(one))))

    def end_unserved(self, at_s: float) -> list[Settle]:
        """Ends jobs that may not wait for their API, or would wait forever. It looks at all jobs,
        so it does not run in each step.
        """
        agent_runs = self.agents.runs
        if agent_runs is None or not agent_runs.limits.windows:
            return []
        if at_s - self._ended_unserved_s < FOLLOW_LIMITS_S:
            return []
        self._ended_unserved_s = at_s
        is_idle = not self.executor.runs and not self.jobs.queue.is_lasting
        return agent_runs.limits.end_unserved(self.jobs.queue.queue, is_idle=is_idle)

    def _wait_for_api(self, orders: Sequence[Order]) -> list[Order]:
        """Why the first job in line waits, if neither for memory nor for another job."""
        if any(isinstance(order, Wait | Admit) for order in orders):
            return []
        if self._unserved is not None:
            return [self._unserved]
        for status in islice(self.jobs.queue.queue, HEADS):
            if (reason := self._find_api_wait(status.job)) is not None:
                return [Wait(status.job.id, reason)]
        return []

    def _find_api_wait(self, job: Job) -> Reason | None:
        if job.start_at_s is not None and job.start_at_s > time.time():
            return explain_start_at(job.start_at_s)
        agent_runs = self.agents.runs
        return None if agent_runs is None else agent_runs.limits.find_reason(job)

    def _heads(self, at_s: float) -> list[JobStatus]:
        """The jobs that may start next: only those on trial while there are suspects, and none
        while runs of a dead keeper are cleared, because the suspects are known only afterwards. A
        suspect that may not start yet does not block the other jobs on trial.
        """
        self._follow_limits(at_s)
        queue, quiet_s = self.jobs.queue, at_s - self.keeper_died_s
        suspected = queue.suspected.values()
        live = [one for one in suspected if one.state is not JobState.QUEUED]
        queued = self._without_stopped_herds(
            one for one in suspected if one.state is JobState.QUEUED and one.not_before_s <= at_s
        )
        self.trial = choose_trial([*live, *queued], quiet_s, self.policy)
        if self.executor.has_lost_runs:
            return []
        if self.trial is None:
            return self._without_stopped_herds(queue.heads(HEADS))
        return [one for one in queued if one.job.id in self.trial.jobs]

    def _without_stopped_herds(self, statuses: Iterable[JobStatus]) -> list[JobStatus]:
        """Without jobs of herds that have reached their cost limit."""
        agent_runs = self.agents.runs
        return [one for one in statuses if agent_runs is None or agent_runs.may_start(one.job)]

    def _wait_for_trial(self) -> list[Order]:
        """The reason of the first job that is not on trial."""
        if self.trial is None:
            return []
        others = (one.job.id for one in self.jobs.queue.queue if one.job.id not in self.trial.jobs)
        return [Wait(job, self.trial.reason) for job in islice(others, 1)]

    def _candidate(self, status: JobStatus) -> tuple[JobStatus, Candidate]:
        known = self._known.get(status.job.id)
        return known if known is not None and known[0] is status else (status, candidate(status))

    def recycle(self, at_s: float) -> list[Stop]:
        """Planned restarts of runs that leak, once a second."""
        if at_s - self._recycled_s < self._scaled(RECYCLE_EVERY_S):
            return []
        self._recycled_s = at_s
        worth = WORTH_WATCHING * self.recycling.recycle_at_bytes
        seen = [
            own_of(run)
            for run in self.executor.runs.values()
            if run.reading.used_bytes >= worth and not run.is_ending and run.held_since_s is None
        ]
        if not seen and not self.watches.watch:
            return []
        self.watches, stops = recycle(seen, self.watches, at_s, self.recycling)
        return stops

    def reclaim(self, at_s: float) -> None:
        """Once a tick: moves cold memory of an idle agent to swap while a run waits for memory."""
        worker, runs = self.executor.enforcer.worker, self.executor.runs
        if worker.is_reclaiming or not any(run.held_since_s is not None for run in runs.values()):
            return
        young_s, since = self.grants.young_s, self._reclaimed_s
        self._reclaimed_s = since = {run: at for run, at in since.items() if run in runs}
        idle = [
            IdleRun(run.id, run.reading.used_bytes, since.get(run.id, float("-inf")))
            for run in runs.values()
            if at_s - run.started_s >= young_s and has_cold_memory(run)
        ]
        if not idle:
            return
        scene = self.scene(at_s, queue=False)
        chosen = choose_reclaim(scene, idle, read_free_swap(), self.grants)
        if chosen is not None:
            since[chosen.run] = at_s
            self.executor.enforcer.reclaim(runs[chosen.run], chosen.most_bytes)
            self.jobs.events.emit_run("run_reclaimed", chosen.reason, runs[chosen.run])

    def report(self, at_s: float, *, longer_than_s: float) -> None:
        """Reports grants, and runs held for longer than this: their jobs become `held`."""
        for grant in self.given:
            run = self.executor.runs[grant.run]
            if run.held_since_s is None and self.is_reported_held(run):
                self._report_granted(run, grant)
        self.given.clear()
        for run in self.executor.runs.values():
            held = run.phase
            if not isinstance(held, Held) or at_s - held.frozen_s <= longer_than_s:
                continue
            if not self.is_reported_held(run):
                self._report_held(run, held)

    def is_reported_held(self, run: LiveRun) -> bool:
        return self.jobs[run.job.id].state is JobState.HELD

    def _report_held(self, run: LiveRun, held: Held) -> None:
        granted = sum(other.grant.grant_bytes for other in self.executor.runs.values())
        reason = explain_hold(held.reason, self.lease.lease_bytes, granted)
        self.jobs.events.emit_run("run_held", reason, run)
        self.jobs.change(replace(self.jobs[run.job.id], state=JobState.HELD, reason=reason))
        self.record_trouble(reason)

    def _report_granted(self, run: LiveRun, grant: Grant) -> None:
        self.jobs.events.emit_run("run_granted", grant.reason, run)
        status = replace(self.jobs[run.job.id], state=JobState.RUNNING, reason=grant.reason)
        self.jobs.change(status)

    def record_trouble(self, reason: Reason) -> None:
        """A run was held, or ended for lack of memory: `--ramp` does not rise."""
        if self.ramp is not None:
            self.ramp = after_trouble(self.ramp, reason)

    def _report_ledger(self, at_s: float) -> None:
        for repaired in self.lease.ledger.pop_notices():
            self.jobs.events.emit_herd("ledger_repaired", repaired)
        lease, reported = self.lease, self._reported_ledger
        lasts = bool(lease.trouble) and at_s - lease.trouble_since_s >= REPORT_LEDGER_S
        known_bytes = lease.lease_bytes if lease.is_known else None
        reason = explain_ledger(lease.trouble, known_bytes) if lasts else None
        self._no_lease = reason if known_bytes is None else None
        self.gate.set(Cause.LEDGER, self._no_lease)
        self._reported_ledger = reason is not None
        if reason is not None and known_bytes is not None and not reported:
            self.jobs.events.emit_herd("ledger_waits", reason)

    def record_wait(self, wait: Wait, at_s: float) -> None:
        """Reported when memory, or a suspect, becomes the reason of the first job in line."""
        reason = self.waits_for = wait.reason
        self.first_wait = wait
        if reason.why not in REPORTED:
            return
        job, lasting_s = self.jobs[wait.job].job, self._scaled(LASTING_S)
        self._waits, is_due = next_reports(self._waits, (job.herd, reason.why), at_s, lasting_s)
        if is_due:
            self.jobs.events.emit_job("start_waits", reason, job)

    def _scaled(self, time_s: float) -> float:
        return time_s / self.time_scale


def is_for_memory(action: GrantAction) -> bool:
    return isinstance(action, Wait) and action.reason.why in SHORT_OF_MEMORY


def is_over(run: LiveRun) -> bool:
    """Only the pen is left. A run that was asked to make room still counts for the governor."""
    if not run.is_ending:
        return False
    if run.exit is not None or run.refused is not None:
        return True
    stop = run.stop_order
    return stop is not None and stop.end not in MAKING_ROOM


def has_cold_memory(run: LiveRun) -> bool:
    """An agent that waits for its model. A `memory_limit` covers all memory of a run, so no memory
    of such a run is moved.
    """
    if run.pen is None or run.agent_run is None or run.is_ending or run.held_since_s is not None:
        return False
    is_idle = run.agent_run.progress.is_between_turns
    return is_idle and run.job.memory_limit_bytes is None and run.pen.can_reclaim


def penned(run: LiveRun) -> Penned:
    job = run.job
    return Penned(
        run.id, job.id, job.seq, run.first_s, run.started_s,
        used_bytes=run.reading.used_bytes, grant_bytes=run.grant.grant_bytes,
        held_since_s=run.held_since_s, priority=job.priority, label=run.label,
        leaving=run.stop_order is not None, promised_bytes=job.memory_bytes,
        cache_bytes=run.reading.cache_bytes, cache_full=run.grant.cache_full,
        limit_bytes=job.memory_limit_bytes, name=job.name, resumes=job.resumes, stops=run.stops,
    )  # fmt: skip


def candidate(status: JobStatus) -> Candidate:
    job = status.job
    return Candidate(
        job.id, job.seq, status.queued_s, job.priority,
        mode=Mode.RESUMES if job.resumes else Mode.STARTS_OVER,
        label=label_of(class_of(job)), need_bytes=status.need_bytes,
        not_before_s=status.not_before_s, limit_bytes=job.memory_limit_bytes,
        promised_bytes=job.memory_bytes, first_s=status.first_s, stops=status.stops,
    )  # fmt: skip


def own_of(run: LiveRun) -> Own:
    """The bytes are None while a tool call is open: the memory of a tool is not the agent's own."""
    pids = run.pen.pids() if run.pen is not None else []
    if run.agent_run is None:
        return Own(run.id, run.job.id, read_own_bytes(run.first, pids))
    at = run.agent_run.progress
    held = None if at.tools or run.pen is None else read_agent_bytes(run.first, pids)
    return Own(run.id, run.job.id, held, turn_over=at.is_between_turns)
