"""Finishes the worktrees of jobs that have ended, one after another: one process at a time needs
little memory, and two in a repository get in each other's way.

A job that waits for such a job goes on when its worktree is finished. What a dying supervisor has
not come to is in the store, and the next one does it: to finish a worktree twice changes nothing.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ramherd.act.executor import Executor
from ramherd.core.model import Job
from ramherd.store.herds import add_pen
from ramherd.store.service_herds import set_worktree
from ramherd.supervisor.event_log import EventLog
from ramherd.supervisor.herd_counters import HerdCounters
from ramherd.supervisor.job_states import JobStates
from ramherd.system.ids import new_id

if TYPE_CHECKING:
    from ramherd.act.worktrees.finish_process import FinishProcess

# After Ctrl-C all worktrees together get so long, after a second one a second.
INTERRUPTED_S = (10.0, 1.0)


@dataclass
class WorktreeQueue:
    executor: Executor
    jobs: JobStates
    events: EventLog
    counters: HerdCounters
    _todo: "deque[Job]" = field(default_factory=deque)
    _process: "FinishProcess | None" = None
    # How many interrupts were seen, and when the last of them came.
    _interrupts: int = 0
    _interrupted_s: float = 0.0

    def add(self, jobs: Iterable[Job]) -> None:
        """Those that an earlier supervisor has not come to."""
        self._todo.extend(jobs)

    @property
    def is_busy(self) -> bool:
        return self._process is not None or bool(self._todo or self.jobs.ended_trees)

    def is_busy_with(self, job: Job) -> bool:
        """A job that is tried again waits: its worktree may be on its way out."""
        if self._process is not None and self._process.job.id == job.id:
            return True
        return any(one.id == job.id for one in (*self._todo, *self.jobs.ended_trees))

    @property
    def fds(self) -> tuple[int, ...]:
        return () if self._process is None else (self._process.fileno(),)

    def advance(self, at_s: float, interrupts: int = 0) -> None:
        """Records what was finished, and starts the next."""
        if interrupts > self._interrupts:
            self._interrupts, self._interrupted_s = interrupts, at_s
        while True:
            self._receive(at_s)
            self._todo.extend(self.jobs.ended_trees)
            self.jobs.ended_trees.clear()
            if self._process is not None or not self._todo:
                return
            self._start(self._todo.popleft(), at_s)

    def _receive(self, at_s: float) -> None:
        process = self._process
        if process is None:
            return
        found = process.receive()
        if found is None and (why := self._why_ended(process, at_s)):
            from ramherd.act.worktrees.finish_process import explain_unfinished  # noqa: PLC0415

            process.kill()
            found = explain_unfinished(process.job, why)
        if found is not None:
            self._process = None
            self.executor.remove_pen(process.name, process.pen)
            self._record(process.job, found)

    def _why_ended(self, process: "FinishProcess", at_s: float) -> str:
        """Why the process is killed now, or ""."""
        from ramherd.act.worktrees.finish_process import KILL_AFTER_S  # noqa: PLC0415

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

    def _start(self, job: Job, at_s: float) -> None:
        from ramherd.act.worktrees import finish_process  # noqa: PLC0415 - subprocess is 1 MB

        if self._is_late(at_s):
            self._record(job, finish_process.explain_unfinished(job, "interrupted"))
            return
        name = new_id()
        try:
            pen = self.executor.add_pen(name, finish_process.LIMIT_BYTES)
            self._process = finish_process.FinishProcess(name, job, pen, at_s)
        except OSError as error:
            why = f"cannot start git in a pen: {error.strerror}"
            self._record(job, finish_process.explain_unfinished(job, why))
            return
        self.events.record(add_pen, name, self.events.herd, name, pen.record())

    def _record(self, job: Job, found: dict[str, Any]) -> None:
        self.events.record(set_worktree, job.id, found)
        if (counted := self.counters.jobs.get(job.id)) is not None:
            counted.said = {**counted.said, **found}
        self.events.hooks.worktree_finished(job)
        self.jobs.release(job.id)

    def close(self) -> None:
        """The supervisor ends: the next one finishes what is left."""
        if self._process is not None:
            self._process.kill()
            self.executor.remove_pen(self._process.name, self._process.pen)
            self._process = None
