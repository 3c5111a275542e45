"""The memory side of the loop: lease and pressure in, the governor's orders out.

Grants are carried out here, in their order; what starts and stops runs goes back to the
supervisor.
"""

import os
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ramherd.act.executor import Executor
from ramherd.act.run import LiveRun
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
from ramherd.core.model import JobStatus, Machine, RunEnd, Settle, Stop, Wait, Why
from ramherd.core.policies import GrantPolicy, Policy, RecyclePolicy
from ramherd.core.run_phase import Starting
from ramherd.decide.budget import largest_budget_bytes
from ramherd.decide.governor.govern import govern
from ramherd.decide.governor.recycle import Own, Watches, recycle
from ramherd.decide.ramp import Ramp, next_ramp
from ramherd.measure.own_memory import read_agent_bytes, read_own_bytes
from ramherd.measure.pressure import Pressure, PressureGauge
from ramherd.store.herd_queue import HerdQueue
from ramherd.store.service_queue import ServiceQueue
from ramherd.supervisor.estimates import Classes, class_of, label_of
from ramherd.supervisor.lease import Lease

if TYPE_CHECKING:
    from ramherd.supervisor.agent_runs import AgentRuns

# Of each priority so many are shown to the governor: more it does not look at in one round.
HEADS = 36
# A grant that cannot be taken back is decided about anew, with what is known then.
ROUNDS = 4
MAKING_ROOM = (RunEnd.PREEMPTED, RunEnd.RECYCLED)
FAILED_STARTS_S = 60.0
RECYCLE_EVERY_S = 1.0
CORES = os.cpu_count() or 1
# Below this share of the mark nobody is looked at more closely.
WORTH_WATCHING = 0.25

# Reasons for which a start waits that are worth an event.
SHORT_OF_MEMORY = (
    Why.NO_ROOM_LEASE, Why.SOMEBODY_WAITS, Why.LEVEL, Why.CPU_PRESSURE, Why.RAMP,
)  # fmt: skip

Order = Admit | Stop | Settle | Wait | SetLevel


@dataclass
class MemoryGovernor:
    executor: Executor
    roster: HerdQueue | ServiceQueue
    lease: Lease
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
    failed_starts: deque[float] = field(default_factory=deque)
    # Grants that were carried out since they were last asked for: (run, grant).
    given: list[Grant] = field(default_factory=list)
    agent_runs: "AgentRuns | None" = None
    # The first in line waits for memory.
    is_short: bool = False
    _machine: Machine = field(default_factory=lambda: Machine(0, 0))
    _fleet_used: int = 0
    _recycled_s: float = float("-inf")
    _known: dict[str, tuple[JobStatus, Candidate]] = field(default_factory=dict)

    def tick(self, machine: Machine, fleet_used_bytes: int, at_s: float) -> None:
        """After all runs were measured."""
        self._machine, self._fleet_used = machine, fleet_used_bytes
        self.pressure = self.gauge.read(at_s)
        for run in self.executor.runs.values():
            self.executor.enforcer.enforce(run, at_s)
        while self.failed_starts and at_s - self.failed_starts[0] > self._scaled(FAILED_STARTS_S):
            self.failed_starts.popleft()
        if self.ramp is not None:
            settle_s = self.grants.young_s
            self.ramp = next_ramp(self.ramp, len(self.executor.runs), at_s, settle_s=settle_s)
        self.lease.renew(machine, fleet_used_bytes, self.scene(at_s))

    def govern(self, at_s: float, *, queue: bool = True) -> list[Order]:
        """What is left to do when grants are given and taken. `queue`: whether jobs may start."""
        scene = self.scene(at_s, queue=queue)
        if self.lease.is_due(scene):
            self.lease.renew(self._machine, self._fleet_used, scene)
            scene = self.scene(at_s, queue=queue)
        for _ in range(ROUNDS):
            history, actions = govern(scene, self.history, self.grants)
            if self._carry_out(actions, at_s):
                self.history = history
                self.is_short = any(map(is_for_memory, actions))
                return [action for action in actions if not isinstance(action, Grant | Trim)]
            scene = self.scene(at_s, queue=queue)
        return []

    def _carry_out(self, actions: Sequence[GrantAction], at_s: float) -> bool:
        """Grants in their order; False as soon as one cannot be: a run grew past it."""
        for action in actions:
            if isinstance(action, Grant):
                run = self.executor.runs[action.run]
                if not self.executor.enforcer.set_grant(run, action.grant_bytes, at_s):
                    return False
                self.given.append(action)
            elif isinstance(action, Trim):
                self.executor.enforcer.trim(self.executor.runs[action.run])
        return True

    def scene(self, at_s: float, *, queue: bool = True) -> Scene:
        runs = self.executor.runs.values()
        live = [run for run in runs if not is_over(run)]
        ending = [run for run in runs if is_over(run)]
        ending_bytes = (
            sum(run.grant.grant_bytes for run in ending) + self.executor.warm_pool.used_bytes
        )
        return Scene(
            at_s=at_s,
            lease_bytes=max(self.lease.lease_bytes - ending_bytes, 0),
            runs=[penned(run) for run in live],
            queue=self.candidates(at_s) if queue else [],
            largest_bytes=largest_budget_bytes(self._machine, self.policy),
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

    def _candidate(self, status: JobStatus) -> tuple[JobStatus, Candidate]:
        known = self._known.get(status.job.id)
        return known if known is not None and known[0] is status else (status, candidate(status))

    def candidates(self, at_s: float) -> list[Candidate]:
        """Of agents whose API is too busy, some later than they could; of those that wait for money
        none.
        """
        heads = self.roster.heads(HEADS)
        if self.agent_runs is not None:
            heads = [one for one in heads if self.agent_runs.may_start(one.job)]
        # A step is short, and most of them stand where they stood in the one before.
        self._known = {status.job.id: self._candidate(status) for status in heads}
        found = [known for _status, known in self._known.values()]
        if self.agent_runs is None:
            return found
        times = self.agent_runs.pacing.times((one.label for one in found), at_s)
        return [
            replace(one, not_before_s=paced_s) if paced_s > one.not_before_s else one
            for one, paced_s in zip(found, times, strict=True)
        ]

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

    def _scaled(self, time_s: float) -> float:
        return time_s / self.time_scale


def is_for_memory(action: GrantAction) -> bool:
    return isinstance(action, Wait) and action.reason.why in SHORT_OF_MEMORY


def is_over(run: LiveRun) -> bool:
    """Over but for its pen. One that was told to make room is still the governor's."""
    if run.exit is not None or run.refused is not None:
        return True
    stop = run.stop_order
    return stop is not None and stop.end not in MAKING_ROOM


def penned(run: LiveRun) -> Penned:
    job = run.job
    return Penned(
        run.id, job.id, job.seq, run.first_s, run.started_s,
        used_bytes=run.reading.used_bytes, grant_bytes=run.grant.grant_bytes,
        held_since_s=run.held_since_s, priority=job.priority, label=run.label,
        leaving=run.stop_order is not None, promised_bytes=job.memory_bytes,
        cache_bytes=run.reading.cache_bytes, cache_full=run.grant.cache_full,
        limit_bytes=job.memory_limit_bytes, name=job.name,
    )  # fmt: skip


def candidate(status: JobStatus) -> Candidate:
    job = status.job
    return Candidate(
        job.id, job.seq, status.queued_s, job.priority,
        mode=Mode.RESUMES if job.resumes else Mode.STARTS_OVER,
        label=label_of(class_of(job)), need_bytes=status.need_bytes,
        not_before_s=status.not_before_s, limit_bytes=job.memory_limit_bytes,
        promised_bytes=job.memory_bytes,
    )  # fmt: skip


def own_of(run: LiveRun) -> Own:
    """None while a tool call is open: what it holds is not the agent's own."""
    pids = run.pen.pids() if run.pen is not None else []
    if run.agent_run is None:
        return Own(run.id, run.job.id, read_own_bytes(run.first, pids))
    at = run.agent_run.progress
    held = None if at.tools or run.pen is None else read_agent_bytes(run.first, pids)
    return Own(run.id, run.job.id, held, turn_over=at.is_between_turns)
