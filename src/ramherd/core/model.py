"""The nouns: frozen, typed values that the layers pass to each other.

Sizes are bytes and times are seconds. `at_s` and every other time that decisions compare is
monotonic (a clock that jumps must not end a run); stored and displayed times are epoch seconds.
"""

from collections.abc import Mapping, Sequence

from ramherd.core import run_phase

# More nouns, from files of their own.
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
    """A job as the user submitted it."""

    id: str
    herd: str
    name: str
    seq: int
    argv: tuple[str, ...]
    cwd: str
    # The size requested with `memory`; 0 leaves it to the estimate for runs of the same class.
    memory_bytes: int = 0
    env: Mapping[str, str] = factory(default_factory=dict)
    stdin: str | None = None
    priority: int = 0
    after: tuple[str, ...] = ()
    label: str = ""
    memory_limit_bytes: int | None = None
    timeout_s: float | None = None
    retries: int = 0
    # The command to start after the end of the job.
    on_done: tuple[str, ...] = ()
    # The command that resumes the job after a run was stopped to make room.
    resume_argv: tuple[str, ...] = ()
    # The task of an agent, used instead of `argv`.
    brief: Brief | None = None
    # For a job of the service: its variables are not in the store, but in this file of its herd,
    # between these two offsets.
    env_at: tuple[str, int, int] | None = None
    # The job does not start before this time, in epoch seconds.
    start_at_s: float | None = None
    # Fields that are too large for the store, which has only their beginning: each is in a file.
    large: tuple[str, ...] = ()

    @property
    def tree(self) -> Tree | None:
        """The worktree that is made for the job, if any."""
        return self.brief.tree if self.brief is not None else None

    @property
    def resumes(self) -> bool:
        """All supported agents can resume their session."""
        return bool(self.resume_argv) or self.brief is not None


@record
class Suspicion:
    """Deaths of the keeper while a run of the job was live, since the job was last cleared. `alone`
    counts the deaths in trials in which the job ran alone, since the last death without it;
    `lived_s` is the age of its oldest run at a death.
    """

    deaths: int = 0
    alone: int = 0
    lived_s: float = 0.0


@record
class JobStatus:
    """The state of a job. `failures` counts the runs that failed by themselves."""

    job: Job
    state: JobState
    reason: Reason
    attempts: int = 0
    failures: int = 0
    lost: int = 0
    not_before_s: float = 0.0
    # More than the requested size, once a run was stopped for lack of memory.
    seen_bytes: int = 0
    queued_s: float = 0.0
    first_s: float | None = None
    # The last run was cut off: the next one resumes its work.
    interrupted: bool = False
    # How often in a row the API was too busy for the job.
    overloads: int = 0
    suspicion: Suspicion = Suspicion()
    # How often a run of the job was stopped to make room.
    stops: int = 0

    @property
    def need_bytes(self) -> int:
        return max(self.job.memory_bytes, self.seen_bytes)

    @property
    def has_worktree(self) -> bool:
        """A run of the job made a worktree. After the job has ended, dependent jobs start only when
        its worktree is finished.
        """
        return self.job.tree is not None and self.attempts > 0


@record
class PenReading:
    """The memory of a pen now. `used` is without page cache, `peak` the highest `used` that was
    seen, `charged` the kernel's own peak, which includes page cache. `swapped` is the memory in
    swap, which is not part of `used`.
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
    """One run, as input of a decision."""

    run: str
    job: Job
    attempt: int
    started_s: float
    pen: PenReading
    phase: run_phase.Phase
    # All output of the agent has been read.
    is_read: bool = True
    # The run's first process is node. Only set for `exec`, whose output is not read.
    is_node: bool = False
    kernel_limits: bool = True
    # The socket of a connected container engine, and whether the user was warned about it.
    engine: str = ""
    warned: bool = False
    # Time that does not count toward the timeout: the run was held or not measured.
    uncounted_s: float = 0.0
    # The report of the run's agent, if it has one.
    said: Said | None = None
    # The agent reported the result, and its process can serve another job.
    ready: bool = False

    @property
    def exit(self) -> Exit | None:
        return run_phase.exit_of(self.phase)

    @property
    def stop(self) -> Stopping | None:
        return run_phase.stop_of(self.phase)

    @property
    def refused(self) -> Refusal | None:
        """Why the run could not be started."""
        return run_phase.refusal_of(self.phase)

    @property
    def clearing_s(self) -> float | None:
        """When the processes that the first process left behind were sent TERM."""
        return self.phase.since_s if isinstance(self.phase, run_phase.Clearing) else None

    @property
    def killed_s(self) -> float | None:
        """When KILL was last sent."""
        return run_phase.killed_s_of(self.phase)

    @property
    def output_closed(self) -> bool:
        """All output of the run is on disk, and the agent's output has been read."""
        return self.is_read and run_phase.is_output_closed(self.phase)

    @property
    def heap_exhausted(self) -> bool:
        return run_phase.is_heap_exhausted(self.phase)


@record
class Snapshot:
    """The complete input of one decision."""

    at_s: float
    machine: Machine
    runs: Sequence[RunView]
    queue: Sequence[JobStatus]
    fleet_used_bytes: int = 0
    # How many signals requested the end: 1 is TERM and grace, 2 is KILL at once.
    interrupts: int = 0
    delayed: Sequence[JobStatus] = ()


@record
class KeptLog:
    """Output on disk of a run whose herd has ended. `ended_s` is epoch seconds."""

    run: str
    ended_s: float
    bytes: int


@record
class Wait:
    """The reason why the first job of the queue is not started."""

    job: str
    reason: Reason


@record
class Stop:
    """Send TERM to the whole pen; the run will count as `end`."""

    run: str
    end: RunEnd
    reason: Reason


@record
class Kill:
    run: str
    reason: Reason


@record
class Clear:
    """Send TERM to the processes that a finished run left behind."""

    run: str
    reason: Reason


@record
class Finish:
    """The run's pen is empty: the run ended as `end`."""

    run: str
    end: RunEnd
    reason: Reason


@record
class Warn:
    """A warning about a run for the user."""

    run: str
    reason: Reason


@record
class Settle:
    """Change the state of a job without the end of a run."""

    job: str
    state: JobState
    reason: Reason


Action = Wait | Stop | Kill | Clear | Finish | Settle | Warn


@record
class Event:
    """An event for the log, the screen and the store."""

    kind: str
    reason: Reason
    at_s: float
    herd: str
    job: str = ""
    run: str = ""
