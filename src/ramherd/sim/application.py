"""One simulated `ramherd run`: its jobs, its runs, and decisions by the governor's own code.

In each second, every run grows or shrinks as its trace requires, within its grant. Then the
governor is asked, and its actions are carried out, until it returns no more. Growth within the
second is held until it is granted, as the kernel would hold it.
"""

from bisect import insort
from collections.abc import Sequence

from ramherd.core.memory import (
    Admit,
    Candidate,
    Estimate,
    Grant,
    GrantAction,
    History,
    Mode,
    Scene,
    SetLevel,
    Settle,
    Stop,
)
from ramherd.core.model import RunEnd
from ramherd.core.policies import GrantPolicy, RecyclePolicy
from ramherd.decide.governor.classes import ClassRecord, estimate, learn
from ramherd.decide.governor.govern import govern
from ramherd.decide.governor.recycle import Watches, recycle
from ramherd.sim.result import SimCounters
from ramherd.sim.sim_jobs import GRANT_COST_S, SimJob, SimRun

# Enough for several runs to grow by a gigabyte in quanta: the maximum of rounds in one second.
ROUNDS = 200


class Application:
    def __init__(
        self,
        jobs: Sequence[SimJob],
        policy: GrantPolicy,
        tally: SimCounters,
        *,
        recycling: RecyclePolicy | None = None,
    ) -> None:
        self.policy, self.tally = policy, tally
        self.recycling, self.watches = recycling, Watches()
        self.jobs = {job.name: job for job in jobs}
        self.runs: dict[str, SimRun] = {}
        self.history = History()
        self.records: dict[str, ClassRecord] = {}
        self.estimates: dict[str, Estimate] = {}
        self.waiting = [job for job in jobs if job.after]
        self.queue: list[Candidate] = []
        self.lease_bytes = 0
        self.largest_bytes = 0
        for job in jobs:
            if not job.after:
                self._enqueue(job, 0.0)

    @property
    def is_over(self) -> bool:
        return not (self.runs or self.queue or self.waiting)

    @property
    def granted_bytes(self) -> int:
        return sum(run.grant for run in self.runs.values())

    @property
    def used_bytes(self) -> int:
        return sum(run.used for run in self.runs.values())

    def step(self, at_s: float) -> None:
        """One second."""
        self._clear(at_s)
        for run in self.runs.values():
            run.advance(at_s, self.policy.arm_below_bytes)
        self._finish(at_s)
        if self.recycling is not None:
            self._recycle(at_s, self.recycling)
        self.decide(at_s)
        for run in self.runs.values():
            run.record_second()
            self.tally.held_s += run.held_since_s is not None

    def decide(self, at_s: float) -> None:
        for _ in range(ROUNDS):
            scene = self.scene(at_s)
            self.history, actions = govern(scene, self.history, self.policy)
            if not self._carry_out(actions, at_s):
                return

    def scene(self, at_s: float) -> Scene:
        return Scene(
            at_s=at_s,
            lease_bytes=self.lease_bytes,
            runs=[run.view() for run in self.runs.values()],
            queue=self.queue,
            largest_bytes=self.largest_bytes,
            estimates=self.estimates,
        )

    def _recycle(self, at_s: float, policy: RecyclePolicy) -> None:
        seen = [run.own() for run in self.runs.values() if not run.leaving]
        self.watches, stops = recycle(seen, self.watches, at_s, policy)
        self._carry_out(stops, at_s)

    def _carry_out(self, actions: Sequence[GrantAction], at_s: float) -> bool:
        """Returns whether a held run continued, so that it may be held again in this second."""
        moved = False
        for action in actions:
            match action:
                case Grant(name, size, _):
                    moved |= self._grant(self.runs[name], size, at_s)
                case Admit(job, size, _):
                    self._start(self.jobs[job], size, at_s)
                case Stop(name, end, _):
                    self._stop(self.runs[name], end)
                case Settle(job, _, _):
                    self._fail(self.jobs[job])
                case SetLevel(level, _):
                    key = f"level_{level.value}"
                    self.tally.reasons[key] = self.tally.reasons.get(key, 0) + 1
        return moved

    def _grant(self, run: SimRun, size: int, at_s: float) -> bool:
        raised = size > run.grant
        run.grant, run.seen_as = size, None
        if not raised or run.held_since_s is None:
            return False
        run.lag_s += GRANT_COST_S
        if not run.advance(at_s, self.policy.arm_below_bytes):
            # Held again: its wait begins again, because it was served.
            run.held_since_s, run.seen_as = at_s, None
        return True

    def _start(self, job: SimJob, grant: int, at_s: float) -> None:
        self._dequeue(job)
        job.first_s = at_s if job.first_s is None else job.first_s
        job.runs += 1
        ramp = job.course.ramp if job.kept else 0
        self.tally.redone_s += ramp
        name = f"{job.name}/{job.runs}"
        self.runs[name] = SimRun(name, job, at_s, grant, job.kept, ramp)

    def _stop(self, run: SimRun, end: RunEnd) -> None:
        run.leaving, run.seen_as = True, None
        if run.held_since_s is not None:
            run.job.hit_bytes = max(run.job.hit_bytes, run.grant)
        if end is RunEnd.PREEMPTED:
            self.tally.preempted += 1
            run.job.stops += 1
        else:
            self.tally.recycled += 1

    def _fail(self, job: SimJob) -> None:
        job.failed = True
        self.tally.failed += 1
        self._dequeue(job)
        self.runs = {name: run for name, run in self.runs.items() if run.job is not job}

    def _clear(self, at_s: float) -> None:
        """Runs told to end a second ago are gone, and their jobs are back in their places."""
        for run in [run for run in self.runs.values() if run.leaving]:
            del self.runs[run.id]
            job, at = run.job, run.position
            job.kept = job.course.resume_at(at) if job.mode is Mode.RESUMES else 0
            self.tally.redone_s += at - job.kept
            self._enqueue(job, at_s)

    def _finish(self, at_s: float) -> None:
        for run in [run for run in self.runs.values() if run.is_over]:
            del self.runs[run.id]
            run.job.done_s = at_s
            self.tally.done += 1
            self.tally.work_s += run.job.course.seconds
            self._learn(run)
            self._release(at_s)

    def _learn(self, run: SimRun) -> None:
        label = run.job.label
        record = learn(self.records.get(label, ClassRecord()), run.summary())
        self.records[label] = record
        self.estimates[label] = estimate(record)

    def _release(self, at_s: float) -> None:
        """Queues the jobs whose `after` is done."""
        for job in list(self.waiting):
            if all(self.jobs[name].done_s is not None for name in job.after):
                self.waiting.remove(job)
                self._enqueue(job, at_s)

    def _dequeue(self, job: SimJob) -> None:
        place = next((at for at, one in enumerate(self.queue) if one.job == job.name), None)
        if place is not None:
            del self.queue[place]

    def _enqueue(self, job: SimJob, at_s: float) -> None:
        job.queued_s = at_s
        insort(self.queue, job.candidate(), key=lambda one: (-one.priority, one.seq))
