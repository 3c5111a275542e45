"""Who would use a warm process, or its memory."""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ramherd.act.warm_pool import IdleProcess
from ramherd.core.errors import UsageError
from ramherd.core.memory import Level, Scene
from ramherd.core.model import JobState, JobStatus
from ramherd.decide.governor.admit import in_line, is_full

if TYPE_CHECKING:
    from ramherd.supervisor.agent_events import Listening


@dataclass(frozen=True, slots=True)
class WarmDemand:
    """What others wait for. `job` is the first in line, and `key` what it could share; `held`: runs
    wait for memory, so no process is kept; `short`: starts do, so one is kept for the first in
    line only. `needed`: some job may come yet. `full`: no more may run than do.
    """

    job: JobStatus | None = None
    key: Hashable = None
    held: bool = False
    short: bool = False
    needed: bool = True
    full: bool = False

    def is_memory(self, key: Hashable) -> bool:
        return self.held or (self.short and self.key != key)

    def is_served_by(self, idle: IdleProcess) -> bool:
        return self.job is not None and not self.held and self.key == idle.process.key


def want_of(loop: "Listening", at_s: float) -> WarmDemand:
    memory, counts = loop.memory, loop.roster.counts
    scene = memory.scene(at_s, queue=loop.may_start)
    first = first_in_line(loop, scene)
    return WarmDemand(
        first,
        key_for(loop, first) if first is not None else None,
        held=memory.history.level is not Level.CALM
        or any(map(loop.is_reported, loop.executor.runs.values())),
        short=memory.is_short,
        needed=loop.may_start
        and (loop.is_lasting or counts[JobState.QUEUED] + counts[JobState.WAITING] > 0),
        full=is_full(len(scene.runs) + scene.ending, scene, memory.grants) is not None,
    )


def first_in_line(loop: "Listening", scene: Scene) -> JobStatus | None:
    line = in_line(scene, loop.memory.grants)
    return loop.roster[line[0].job] if line else None


def key_for(loop: "Listening", status: JobStatus) -> Hashable:
    """None: it needs a process of its own. One that goes on in its session does."""
    job, agent_runs = status.job, loop.agent_runs
    if agent_runs is None or job.brief is None or status.interrupted:
        return None
    try:
        launch = agent_runs.launch_warm(job, job.brief.model)
    except UsageError:  # its program is gone: that is said when it starts
        return None
    return loop.executor.key_of(job, launch) if launch is not None else None
