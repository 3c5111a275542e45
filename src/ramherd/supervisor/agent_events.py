"""The loop's ear for agents: what they said since, and what follows for their processes."""

from typing import TYPE_CHECKING, Any

from ramherd.act.run import LiveRun
from ramherd.act.warm_pool import IdleProcess
from ramherd.core.model import JobStatus, Reason, Why
from ramherd.store.herds import set_said
from ramherd.supervisor.estimates import key_of
from ramherd.supervisor.memory_events import MemoryNews
from ramherd.supervisor.warm_demand import WarmDemand, want_of

if TYPE_CHECKING:
    from ramherd.supervisor.agent_runs import AgentRuns
    from ramherd.supervisor.warm_reuse import WarmReuse

# A warm process does not end after its result: somebody has to hear it.
LISTEN_EVERY_S = 0.1


class Listening(MemoryNews):
    agent_runs: "AgentRuns | None"
    warm_reuse: "WarmReuse | None"
    # More jobs may come when all that are known have ended.
    is_lasting: bool
    _listened_s: float = float("-inf")

    @property
    def may_start(self) -> bool:
        raise NotImplementedError

    def carry_out(self, action: Any, at_s: float) -> None:
        raise NotImplementedError

    def start(self, status: JobStatus, grant_bytes: int, reason: Reason, at_s: float) -> None:
        raise NotImplementedError

    @property
    def has_warm(self) -> bool:
        return self.warm_reuse is not None and self.warm_reuse.is_used

    def is_time_to_listen(self, at_s: float) -> bool:
        return self.executor.is_busy or at_s - self._listened_s >= LISTEN_EVERY_S

    def listen(self, at_s: float) -> None:
        """What agents said since; some end for what they cost."""
        self._listened_s = at_s
        if self.agent_runs is None:
            return
        runs = self.executor.runs.values()
        for run, reason in self.agent_runs.hear(runs, at_s):
            self.emit("run_warning", reason, run)
        for label in self.agent_runs.pacing.take_calmed():
            self.emit_herd("api_calm", Reason(Why.API_CALM, agent=key_of(label).agent))
        for action in self.agent_runs.stop_costly(runs, self.roster.queue):
            self.carry_out(action, at_s)
        self.keep_warm(at_s)

    def keep_warm(self, at_s: float) -> None:
        if self.warm_reuse is None or not self.warm_reuse.is_wanted:
            return
        want = want_of(self, at_s)
        for run, reason in self.warm_reuse.attend(want, at_s):
            self.emit("agent_retired", reason, run)
        if want.short and not want.full:
            # The memory that it waits for is what its own kind of process holds.
            for idle in self.executor.warm_pool:
                if want.is_served_by(idle):
                    self.pass_on(idle, want, idle.used_bytes, at_s)
                    return

    def hand_on(self, idle: IdleProcess, at_s: float) -> None:
        """To the first in line at once, if it wants the very same: then no memory changes hands."""
        want = want_of(self, at_s)
        if want.is_served_by(idle):
            self.pass_on(idle, want, idle.last.grant.grant_bytes, at_s)

    def pass_on(self, idle: IdleProcess, want: WarmDemand, grant_bytes: int, at_s: float) -> None:
        assert want.job is not None
        worker = idle.process
        reason = Reason(Why.WARM, jobs=worker.jobs + 1, most_jobs=worker.most_jobs)
        self.start(want.job, grant_bytes, reason, at_s)

    def note_said(self, run: LiveRun) -> None:
        if run.agent_run is not None:
            self.note(set_said, run.job.id, run.agent_run.next_record())
