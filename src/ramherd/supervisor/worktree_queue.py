"""Finishes the worktrees of jobs that have ended, and merges the branches that others start from,
one after another: one process at a time needs little memory, and two in a repository get in each
other's way.

A job that waits for such a job goes on when its worktree is finished; a job that starts from
several branches goes on when these are merged. Work that a dying supervisor leaves is in the store,
and the next supervisor does it: finishing a worktree twice changes nothing, nor does merging twice.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ramherd.act.executor import Executor
from ramherd.core.agent_task import MergedBase
from ramherd.core.errors import StoreError
from ramherd.core.model import Job, JobState
from ramherd.decide.job_bases import after_merge, has_same_base, may_merge, parents_of
from ramherd.store.herds import add_pen
from ramherd.store.service_herds import read_said, set_worktree
from ramherd.supervisor.event_log import EventLog
from ramherd.supervisor.herd_counters import HerdCounters
from ramherd.supervisor.job_states import JobStates
from ramherd.system.ids import new_id

if TYPE_CHECKING:
    from ramherd.act.worktrees.worktree_process import WorktreeProcess

# This many jobs of each priority are examined for the next merge.
HEADS = 16
# After Ctrl-C worktrees are finished for at most 10 s in total; after a second Ctrl-C, for 1 s.
INTERRUPTED_S = (10.0, 1.0)


@dataclass
class WorktreeQueue:
    executor: Executor
    jobs: JobStates
    events: EventLog
    counters: HerdCounters
    # By id, the next job first. Each job at the head of the queue is looked up here.
    _todo: dict[str, Job] = field(default_factory=dict)
    _process: "WorktreeProcess | None" = None
    # The number of interrupts, and the time of the last one.
    _interrupts: int = 0
    _interrupted_s: float = 0.0

    def add(self, jobs: Iterable[Job]) -> None:
        """Adds jobs that ended, here or under an earlier supervisor that did not finish them."""
        self._todo |= {job.id: job for job in jobs}

    @property
    def is_busy(self) -> bool:
        return self._process is not None or bool(self._todo or self.jobs.ended_trees)

    def is_busy_with(self, job: Job) -> bool:
        """A job that is tried again waits: its worktree may be about to be removed."""
        if self._process is not None and self._process.job.id == job.id:
            return True
        return job.id in self._todo or any(one.id == job.id for one in self.jobs.ended_trees)

    @property
    def fds(self) -> tuple[int, ...]:
        return () if self._process is None else (self._process.fileno(),)

    def advance(self, at_s: float, interrupts: int = 0) -> bool:
        """Records finished work, and starts the next process; returns whether jobs may go on. A
        merge comes first, because a job waits for it.
        """
        if interrupts > self._interrupts:
            self._interrupts, self._interrupted_s = interrupts, at_s
        has_news = False
        while True:
            has_news = self._receive(at_s) or has_news
            self.add(self.jobs.ended_trees)
            self.jobs.ended_trees.clear()
            if self._process is not None:
                return has_news
            if (job := self._find_successor()) is not None:
                try:
                    self._merge(job, at_s)
                except StoreError:  # the next step tries again
                    return has_news
            elif self._todo:
                self._finish(self._todo.pop(next(iter(self._todo))), at_s)
            else:
                return has_news

    def _find_successor(self) -> Job | None:
        """The first job in line whose branches are all finished and are to be merged."""
        if self._interrupts or self.jobs.agents.runs is None:
            return None
        heads = (status.job for status in self.jobs.queue.heads(HEADS))
        return next((job for job in heads if may_merge(job, self._todo)), None)

    def _receive(self, at_s: float) -> bool:
        process = self._process
        if process is None:
            return False
        found = process.receive()
        if found is None and (why := self._why_ended(process, at_s)):
            process.kill()
            found = {"error": why}
        if found is None:
            return False
        self._process = None
        self.executor.remove_pen(process.name, process.pen)
        if "merge" in process.task:
            self._record_base(process.job, found)
        else:
            self._record_finished(process.job, found)
        return True

    def _why_ended(self, process: "WorktreeProcess", at_s: float) -> str:
        """Why the process is killed now, or ""."""
        from ramherd.act.worktrees.worktree_process import KILL_AFTER_S  # noqa: PLC0415

        if self._is_late(at_s):
            return "interrupted"
        if at_s - process.started_s > KILL_AFTER_S:
            return f"git took longer than {KILL_AFTER_S:.0f} s"
        is_held = self.executor.fleet.kernel_limits
        return "" if is_held or not process.is_over_limit() else "git needs too much memory"

    def _is_late(self, at_s: float) -> bool:
        if not self._interrupts:
            return False
        return at_s - self._interrupted_s > INTERRUPTED_S[min(self._interrupts, 2) - 1]

    def _finish(self, job: Job, at_s: float) -> None:
        from ramherd.act.worktrees.worktree_process import finish_task  # noqa: PLC0415

        why = "interrupted" if self._is_late(at_s) else self._start(job, finish_task(job), at_s)
        if why:
            self._record_finished(job, {"error": why})

    def _merge(self, job: Job, at_s: float) -> None:
        from ramherd.act.worktrees.worktree_process import merge_task  # noqa: PLC0415

        try:
            parents = [self._read_parent(parent) for parent in parents_of(job)]
        except KeyError:
            why = "a job that it starts from is not in the store any more"
        else:
            why = self._start(job, merge_task(job, parents), at_s)
        if why:
            self._record_base(job, {"error": why})

    def _read_parent(self, job: str) -> tuple[Job, bool]:
        """Returns the job, and whether it changed something, which its finished worktree showed."""
        said = read_said(self.events.writes.store, job) or {}
        return self.jobs[job].job, bool(said.get("files_changed"))

    def _start(self, job: Job, task: Mapping[str, Any], at_s: float) -> str:
        """Why the process could not be started, or ""."""
        from ramherd.act.worktrees import worktree_process as process  # noqa: PLC0415 - is 1 MB

        name, folder, pen = new_id(), self.executor.runs_dir.parent, None
        try:
            pen = self.executor.add_pen(name, process.LIMIT_BYTES)
            self._process = process.WorktreeProcess(name, job, pen, at_s, task=task, folder=folder)
        except OSError as error:
            if pen is not None:
                self.executor.remove_pen(name, pen)
            return f"cannot start git in a pen: {error.strerror}"
        self.events.record(add_pen, name, self.events.herd, name, pen.record())
        return ""

    def _record_base(self, job: Job, found: dict[str, Any]) -> None:
        """All jobs in line after the same jobs get this base, so that one merge lets all of them go
        on. A job that was cancelled meanwhile is not in line any more.
        """
        merged = MergedBase(**found)
        for status in list(self.jobs.queue.queue):
            if has_same_base(status.job, job):
                after = after_merge(status, merged)
                if after.state is JobState.QUEUED:
                    self.jobs.set_base(after)
                else:
                    self.jobs.change(after)

    def _record_finished(self, job: Job, found: dict[str, Any]) -> None:
        if "error" in found:
            from ramherd.act.worktrees.worktree_process import explain_unfinished  # noqa: PLC0415

            found = explain_unfinished(job, found["error"])
        if found.get("worktree") is None:
            found = {**found, **self._describe_resume(job)}
        self.events.record(set_worktree, job.id, found)
        if (counted := self.counters.jobs.get(job.id)) is not None:
            counted.said = {**counted.said, **found}
        self.events.hooks.worktree_finished(job)
        self.jobs.release(job.id)

    def _describe_resume(self, job: Job) -> dict[str, str]:
        """The session is continued in the worktree, which was removed. If the store cannot be read,
        this adds nothing: others wait for the end of this worktree.
        """
        try:
            said = read_said(self.events.writes.store, job.id) or {}
        except StoreError:
            return {}
        tree = job.brief.tree if job.brief is not None else None
        resume = said.get("resume") or ""
        if tree is None or not resume.startswith("cd "):
            return {}
        from shlex import join  # noqa: PLC0415 - for agents only

        again = ("git", "-C", tree.repository, "worktree", "add", "--detach", tree.path)
        return {"resume": f"{join((*again, tree.commit))} && {resume}"}

    def close(self) -> None:
        """The supervisor ends: the next one finishes the remaining worktrees."""
        if self._process is not None:
            self._process.kill()
            self.executor.remove_pen(self._process.name, self._process.pen)
            self._process = None
