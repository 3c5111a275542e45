"""The states of jobs: records and shows a change, and every change that follows from it."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ramherd.core.model import Job, JobState, JobStatus, Settle
from ramherd.store.herd_queue import HerdQueue
from ramherd.store.herds import set_base, set_job
from ramherd.store.service_queue import ServiceQueue
from ramherd.supervisor.event_log import EventLog
from ramherd.supervisor.herd_counters import HerdCounters

if TYPE_CHECKING:
    from ramherd.supervisor.agent_runs import AgentRuns
    from ramherd.supervisor.warm_reuse import WarmReuse


@dataclass
class AgentParts:
    """The parts for jobs that have an agent. Both are None until the first such job: a herd of
    commands does not load their modules.
    """

    runs: "AgentRuns | None" = None
    warm: "WarmReuse | None" = None


@dataclass
class JobStates:
    queue: HerdQueue | ServiceQueue
    events: EventLog
    counters: HerdCounters
    agents: AgentParts
    # Jobs that have ended since this was last read, and whose worktrees are to be finished.
    ended_trees: list[Job] = field(default_factory=list)

    # Whether jobs have ended, or their worktrees were finished, since this was last read.
    has_ended: bool = False

    def __getitem__(self, job: str) -> JobStatus:
        return self.queue[job]

    def change(self, new: JobStatus) -> None:
        for status in self.queue.change(new):
            self._record(status)

    def release(self, job: str) -> None:
        """The worktree of the job is finished: jobs that wait for it go on."""
        self.has_ended = True
        for status in self.queue.release(job):
            self._record(status)

    def set_base(self, new: JobStatus) -> None:
        """The branches are merged: the worktree of the job has a commit to start from."""
        for status in self.queue.change(new):
            self.events.record(set_base, status.job)
            self.events.hooks.job_changed(status)

    def put_back(self, before: JobStatus) -> None:
        """Undoes a change before it was recorded."""
        for status in self.queue.change(before):
            self.counters.record_job(status)
            self.events.hooks.job_changed(status)

    def apply(self, settle: Settle) -> None:
        for status in self.queue.apply(settle):
            self._record(status)

    def _record(self, status: JobStatus) -> None:
        self.events.record(set_job, status)
        self.has_ended |= status.state.is_final
        self.counters.record_job(status)
        if self.agents.runs is not None and status.state.is_final:
            self.agents.runs.end_job(status.job)
        if status.state.is_final and status.has_worktree:
            self.ended_trees.append(status.job)
        if status.state not in (JobState.RUNNING, JobState.HELD):
            self.events.emit_job(f"job_{status.state.value}", status.reason, status.job)
        self.events.hooks.job_changed(status)
