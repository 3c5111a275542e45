"""Warm reuse in the loop: after a job its process gets a new session, and then the next job.

A job whose agent has reported its result is not over at once: its process is asked for a new
session, and is free when it has one. If anything fails, its stdin is closed, and it ends like a
process that had one prompt.
"""

from collections.abc import Hashable
from dataclasses import dataclass, field, replace

from ramherd.act.executor import Executor
from ramherd.act.run import LiveRun
from ramherd.act.warm_pool import IdleProcess, WarmProcess
from ramherd.core.errors import UsageError
from ramherd.core.memory import Admit, Level
from ramherd.core.model import JobState, JobStatus, Reason
from ramherd.core.policies import ReusePolicy
from ramherd.decide.governor.admit import find_full, in_line
from ramherd.decide.warm import (
    RenewalState,
    WarmDemand,
    Worn,
    choose_reuse,
    why_retired,
    why_retired_after_job,
)
from ramherd.measure.own_memory import own_pids
from ramherd.supervisor.agent_runs import AgentRuns
from ramherd.supervisor.memory_governor import MemoryGovernor
from ramherd.system.procfs import read_process

# claude answers within 0.1 s.
RENEW_S = 10.0


@dataclass
class WarmReuse:
    """`is_lasting`: more jobs may come after all known jobs have ended."""

    executor: Executor
    memory: MemoryGovernor
    agent_runs: AgentRuns
    policy: ReusePolicy = field(default_factory=ReusePolicy)
    is_lasting: bool = False

    @property
    def is_used(self) -> bool:
        """Some process is warm, and does not end by itself."""
        runs = self.executor.runs.values()
        return bool(self.executor.warm_pool.all) or any(run.warm is not None for run in runs)

    @property
    def is_wanted(self) -> bool:
        """Some process waits for its next job."""
        waiting = any(map(waits_for_next, self.executor.runs.values()))
        return waiting or bool(self.executor.warm_pool.all)

    def read_demand(self, at_s: float, *, may_start: bool) -> WarmDemand:
        memory, counts = self.memory, self.memory.jobs.queue.counts
        scene = memory.scene(at_s, queue=may_start)
        line = in_line(scene, memory.history, memory.grants)
        first = memory.jobs[line[0].job] if line else None
        return WarmDemand(
            first.job.id if first is not None else None,
            self._key_of(first) if first is not None else None,
            held=memory.history.level is not Level.CALM
            or memory.owes_bytes > 0
            or any(map(memory.is_reported_held, self.executor.runs.values())),
            short=memory.is_short,
            needed=may_start
            and (self.is_lasting or counts[JobState.QUEUED] + counts[JobState.WAITING] > 0),
            full=find_full(len(scene.runs) + scene.ending, scene, memory.grants) is not None,
        )

    def _key_of(self, status: JobStatus) -> Hashable:
        """None: the job needs its own process. A job that resumes its session does."""
        job = status.job
        if job.brief is None or status.interrupted:
            return None
        try:
            launch = self.agent_runs.launch_warm(job, job.brief.model)
            return self.executor.key_of(job, launch) if launch is not None else None
        except (UsageError, OSError):  # its program or input is gone: its start reports that
            return None

    def renew(self, demand: WarmDemand, at_s: float) -> list[tuple[LiveRun, Reason]]:
        """Asks the processes of runs that have reported their result for a new session, and retires
        processes that serve no more jobs: returns the last run of each, and the reason.
        """
        retired_now = []
        for run in list(filter(waits_for_next, self.executor.runs.values())):
            if reason := self._renew(run, demand, at_s):
                self.executor.close_stdin(run)
                retired_now.append((run, reason))
        for idle in self.executor.warm_pool:
            worn = worn_by(idle.process, idle.used_bytes, at_s)
            worn = replace(worn, idle_s=at_s - idle.since_s)
            if reason := self._why_retired(worn, idle.process.key, demand):
                self.executor.retire(idle, at_s)
                retired_now.append((idle.last, reason))
        return retired_now

    def _renew(self, run: LiveRun, demand: WarmDemand, at_s: float) -> Reason | None:
        """One step from the result to the next job. Returns why there is no next job, if so."""
        assert run.warm is not None
        assert run.agent_run is not None
        process, said = run.warm.process, run.agent_run.said
        worn = worn_by(process, run.reading.used_bytes, at_s)
        renewal = renewal_of(run, at_s)
        if reason := why_retired_after_job(
            worn, renewal, failed=bool(said.failure), kernel_kills=run.reading.kernel_kills
        ):
            return reason
        if renewal is RenewalState.ASKED:
            return None
        # Subagents in the background wake the agent again, and it reports another result.
        worn = replace(worn, company=count_company(run) + said.busy)
        if reason := self._why_retired(worn, process.key, demand):
            return reason
        if renewal is RenewalState.DONE:
            run.make_ready()
        else:
            self.executor.send_stdin(run, run.agent_run.renew(at_s))
        return None

    def _why_retired(self, worn: Worn, key: Hashable, demand: WarmDemand) -> Reason | None:
        wanted = demand.is_memory(key)
        return why_retired(worn, self.policy, wanted=wanted, needed=demand.needed)

    def reuse(self, idle: IdleProcess, at_s: float, *, may_start: bool) -> Admit | None:
        """The next job of a process that has just become free, with the grant of its last job."""
        demand = self.read_demand(at_s, may_start=may_start)
        return choose_next(demand, idle, idle.last.grant.grant_bytes)

    def choose_start(self, demand: WarmDemand) -> Admit | None:
        """While memory is short: the first job in line may be waiting for memory that an idle
        process of its own kind holds.
        """
        if not demand.short or demand.full:
            return None
        idle = (choose_next(demand, idle, idle.used_bytes) for idle in self.executor.warm_pool)
        return next((admit for admit in idle if admit is not None), None)


def choose_next(demand: WarmDemand, idle: IdleProcess, grant_bytes: int) -> Admit | None:
    process = idle.process
    return choose_reuse(
        demand, process.key, grant_bytes, jobs=process.jobs, most_jobs=process.most_jobs
    )


def renewal_of(run: LiveRun, at_s: float) -> RenewalState:
    renewal = run.agent_run.renewal if run.agent_run is not None else None
    if renewal is None:
        return RenewalState.NOT_ASKED
    if renewal.is_new:
        return RenewalState.DONE
    late = renewal.is_answered or at_s - renewal.since_s > RENEW_S
    return RenewalState.FAILED if late else RenewalState.ASKED


def waits_for_next(run: LiveRun) -> bool:
    """The warm process of the run has answered, and waits for its next job."""
    if run.warm is None or run.agent_run is None or run.is_ending or run.warm.is_closed:
        return False
    return run.agent_run.said.has_ended


def worn_by(process: WarmProcess, used_bytes: int, at_s: float) -> Worn:
    return Worn(process.jobs, process.most_jobs, used_bytes, at_s - process.born_s)


def count_company(run: LiveRun) -> int:
    """Processes in the pen of the run that are not the agent's own."""
    if run.pen is None or run.first is None:
        return 0
    procs = [proc for pid in run.pen.pids() if (proc := read_process(pid)) is not None]
    return len(procs) - len(own_pids(procs, run.first.pid))
