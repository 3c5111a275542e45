"""The nouns: frozen, typed values that the layers hand to each other.

Inside are bytes and seconds. `at_s` and every other time that decisions compare is monotonic
(a clock that jumps must not end a run); what is stored and shown is epoch seconds.
"""

from collections.abc import Mapping, Sequence

from ramherd.core import run_phase

# Nouns too, in files of their own.
from ramherd.core.agent_task import ApiRefusal as ApiRefusal  # noqa: PLC0414
from ramherd.core.agent_task import Brief as Brief  # noqa: PLC0414
from ramherd.core.agent_task import Said as Said  # noqa: PLC0414
from ramherd.core.agent_task import Tree as Tree  # noqa: PLC0414
from ramherd.core.machine import Limit as Limit  # noqa: PLC0414
from ramherd.core.machine import Machine as Machine  # noqa: PLC0414
from ramherd.core.procid import ProcId as ProcId  # noqa: PLC0414
from ramherd.core.reasons import JobState as JobState  # noqa: PLC0414
from ramherd.core.reasons import Number as Number  # noqa: PLC0414
from ramherd.core.reasons import Reason as Reason  # noqa: PLC0414
from ramherd.core.reasons import RunEnd as RunEnd  # noqa: PLC0414
from ramherd.core.reasons import Why as Why  # noqa: PLC0414
from ramherd.core.record import factory, record
from ramherd.core.run_phase import Exit as Exit  # noqa: PLC0414
from ramherd.core.run_phase import Refusal as Refusal  # noqa: PLC0414
from ramherd.core.run_phase import Stopping as Stopping  # noqa: PLC0414


@record
class Job:
    """What was asked for."""

    id: str
    herd: str
    name: str
    seq: int
    argv: tuple[str, ...]
    cwd: str
    # What was asked for with `memory`; 0 leaves it to what runs of its kind were seen to need.
    memory_bytes: int = 0
    env: Mapping[str, str] = factory(default_factory=dict)
    stdin: str | None = None
    priority: int = 0
    after: tuple[str, ...] = ()
    label: str = ""
    memory_limit_bytes: int | None = None
    timeout_s: float | None = None
    retries: int = 0
    # Started after the end of the job.
    on_done: tuple[str, ...] = ()
    # Goes on where a run that had to make room was stopped.
    resume_argv: tuple[str, ...] = ()
    # Instead of `argv`: what an agent is asked.
    brief: Brief | None = None
    # A job of the service: its variables are not in the store but in this file of its herd, between
    # these two offsets.
    env_at: tuple[str, int, int] | None = None
    # Epoch seconds: it does not start before that.
    start_at_s: float | None = None
    # These fields are too large for the store, which has their beginning: each is a file.
    large: tuple[str, ...] = ()

    @property
    def tree(self) -> Tree | None:
        """The worktree that is made for it, if it gets one."""
        return self.brief.tree if self.brief is not None else None

    @property
    def resumes(self) -> bool:
        """All agents that we drive can go on in their session."""
        return bool(self.resume_argv) or self.brief is not None


@record
class Suspicion:
    """Deaths of the keeper while a run of a job was live, since the last run that outlived it.
    `alone` are those of its trials, with nothing beside it, since the last death without it;
    `lived_s` is how old its oldest run was.
    """

    deaths: int = 0
    alone: int = 0
    lived_s: float = 0.0


@record
class JobStatus:
    """Where a job stands. `failures` counts the runs that failed by themselves."""

    job: Job
    state: JobState
    reason: Reason
    attempts: int = 0
    failures: int = 0
    lost: int = 0
    not_before_s: float = 0.0
    # More than was asked for, once a run was stopped for lack of it.
    seen_bytes: int = 0
    queued_s: float = 0.0
    first_s: float | None = None
    # Its last run was cut off: the next one goes on from there.
    interrupted: bool = False
    # How often in a row the API was too busy for it.
    overloads: int = 0
    suspicion: Suspicion = Suspicion()
    # How often a run of it was stopped to make room.
    stops: int = 0

    @property
    def need_bytes(self) -> int:
        return max(self.job.memory_bytes, self.seen_bytes)

    @property
    def has_worktree(self) -> bool:
        """A run of it made one. Once the job has ended, that is finished before others go on."""
        return self.job.tree is not None and self.attempts > 0


@record
class PenReading:
    """What a pen holds now. `used` is without page cache, `peak` the most `used` that was seen,
    `charged` the kernel's own peak, which counts page cache. `swapped` is what is in swap instead.
    """

    used_bytes: int = 0
    peak_bytes: int = 0
    procs: int = 0
    kernel_kills: int = 0
    limit_hit: bool = False
    charged_bytes: int = 0
    cache_bytes: int = 0
    swapped_bytes: int = 0


@record
class RunView:
    """One run as a decision sees it."""

    run: str
    job: Job
    attempt: int
    started_s: float
    pen: PenReading
    phase: run_phase.Phase
    # All that its agent printed has been read.
    is_read: bool = True
    # Its first process is node. Only set for `exec`, whose output is not read.
    is_node: bool = False
    kernel_limits: bool = True
    # The socket of a container engine that it talks to, and whether that was reported already.
    engine: str = ""
    warned: bool = False
    # How long it was held or not measured so far: its timeout does not count that.
    uncounted_s: float = 0.0
    # What its agent reported, if it has one.
    said: Said | None = None
    # Its agent reported the result, and its process can serve another job.
    ready: bool = False

    @property
    def exit(self) -> Exit | None:
        return run_phase.exit_of(self.phase)

    @property
    def stop(self) -> Stopping | None:
        return run_phase.stop_of(self.phase)

    @property
    def refused(self) -> Refusal | None:
        """Why it could not be started."""
        return run_phase.refusal_of(self.phase)

    @property
    def clearing_s(self) -> float | None:
        """When the processes that its first one left were told to end."""
        return self.phase.since_s if isinstance(self.phase, run_phase.Clearing) else None

    @property
    def killed_s(self) -> float | None:
        """When KILL was last sent."""
        return run_phase.killed_s_of(self.phase)

    @property
    def output_closed(self) -> bool:
        """All that it printed is on disk, and what its agent printed has been read."""
        return self.is_read and run_phase.is_output_closed(self.phase)

    @property
    def heap_exhausted(self) -> bool:
        return run_phase.is_heap_exhausted(self.phase)


@record
class Snapshot:
    """All that one decision may depend on."""

    at_s: float
    machine: Machine
    runs: Sequence[RunView]
    queue: Sequence[JobStatus]
    fleet_used_bytes: int = 0
    # How many signals asked us to end: 1 is TERM and grace, 2 is KILL at once.
    interrupts: int = 0
    delayed: Sequence[JobStatus] = ()


@record
class KeptLog:
    """What a run of a herd that is over has left on disk. `ended_s` is epoch seconds."""

    run: str
    ended_s: float
    bytes: int


@record
class Wait:
    """The first job of the queue is not started, and this is why."""

    job: str
    reason: Reason


@record
class Stop:
    """TERM to the whole pen; the run will count as `end`."""

    run: str
    end: RunEnd
    reason: Reason


@record
class Kill:
    run: str
    reason: Reason


@record
class Clear:
    """TERM to what a finished run left alive."""

    run: str
    reason: Reason


@record
class Finish:
    """The run's pen is empty: it ended as `end`."""

    run: str
    end: RunEnd
    reason: Reason


@record
class Warn:
    """Something about a run that its user should know."""

    run: str
    reason: Reason


@record
class Settle:
    """A job gets a new state without a run of its own ending."""

    job: str
    state: JobState
    reason: Reason


Action = Wait | Stop | Kill | Clear | Finish | Settle | Warn


@record
class Event:
    """What happened, for the log, the screen and the store."""

    kind: str
    reason: Reason
    at_s: float
    herd: str
    job: str = ""
    run: str = ""
