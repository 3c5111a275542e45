"""Warm reuse in the loop: after a job its process gets a new session, and then the next job.

A job whose agent has said its result is not over at once: its process is asked for a new session,
and is free when it has one. Whatever goes wrong, its stdin is closed, and it ends like a process
that had one prompt.
"""

from collections.abc import Hashable
from dataclasses import dataclass, field, replace

from ramherd.act.executor import Executor
from ramherd.act.run import LiveRun
from ramherd.act.warm_pool import WarmProcess
from ramherd.core.model import Reason
from ramherd.core.policies import ReusePolicy
from ramherd.decide.warm import Worn, retired, why_retired
from ramherd.measure.own_memory import own_pids
from ramherd.supervisor.warm_demand import WarmDemand
from ramherd.system.procfs import read_process

# claude answers within 0.1 s.
RENEW_S = 10.0


@dataclass
class WarmReuse:
    executor: Executor
    policy: ReusePolicy = field(default_factory=ReusePolicy)

    @property
    def is_used(self) -> bool:
        """Some process is warm, and does not end by itself."""
        runs = self.executor.runs.values()
        return bool(self.executor.warm_pool.all) or any(run.warm is not None for run in runs)

    @property
    def is_wanted(self) -> bool:
        """Some process waits to be told what is next."""
        waiting = any(map(waits_for_next, self.executor.runs.values()))
        return waiting or bool(self.executor.warm_pool.all)

    def attend(self, want: WarmDemand, at_s: float) -> list[tuple[LiveRun, Reason]]:
        """Runs that are through, then processes without one. Whose process serves no more."""
        retired_now = []
        for run in list(filter(waits_for_next, self.executor.runs.values())):
            if reason := self._go_on(run, want, at_s):
                self.executor.close_stdin(run)
                retired_now.append((run, reason))
        for idle in self.executor.warm_pool:
            worn = worn_by(idle.process, idle.used_bytes, at_s)
            worn = replace(worn, idle_s=at_s - idle.since_s)
            if reason := self._why_retired(worn, idle.process.key, want):
                self.executor.retire(idle, at_s)
                retired_now.append((idle.last, reason))
        return retired_now

    def _go_on(self, run: LiveRun, want: WarmDemand, at_s: float) -> Reason | None:
        """One step from the result to the next job, or why there is none."""
        assert run.warm is not None
        worker, agent_run = run.warm.process, run.agent_run
        assert agent_run is not None
        said, renewal = agent_run.said, agent_run.renewal
        worn = worn_by(worker, run.reading.used_bytes, at_s)
        if said.failure:
            return retired(worn, "failure")
        if run.reading.kernel_kills:  # of its tools: they would count for the next job as well
            return retired(worn, "kernel_kill")
        if renewal is not None and not renewal.is_new:
            late = renewal.is_answered or at_s - renewal.since_s > RENEW_S
            return retired(worn, "same_session") if late else None
        # Subagents behind wake it again, and it says another result.
        worn = replace(worn, company=count_company(run) + said.busy)
        if reason := self._why_retired(worn, worker.key, want):
            return reason
        if renewal is None:
            self.executor.send_stdin(run, agent_run.renew(at_s))
        else:
            run.make_ready()
        return None

    def _why_retired(self, worn: Worn, key: Hashable, want: WarmDemand) -> Reason | None:
        return why_retired(worn, self.policy, wanted=want.is_memory(key), needed=want.needed)


def waits_for_next(run: LiveRun) -> bool:
    """Its warm process has answered, and waits to be told what is next."""
    if run.warm is None or run.agent_run is None or run.is_ending or run.warm.is_closed:
        return False
    return run.agent_run.said.has_ended


def worn_by(worker: WarmProcess, used_bytes: int, at_s: float) -> Worn:
    return Worn(worker.jobs, worker.most_jobs, used_bytes, at_s - worker.born_s)


def count_company(run: LiveRun) -> int:
    """Processes in its pen that are not the agent's own."""
    if run.pen is None or run.first is None:
        return 0
    procs = [proc for pid in run.pen.pids() if (proc := read_process(pid)) is not None]
    return len(procs) - len(own_pids(procs, run.first.pid))
