"""The phases of a run, as a tagged union, and which of them may follow which.

    Starting -> Running <-> Held
         \\        |        /
          +--> Stopping <-+      told to end
                  |
              Clearing           its first process has exited
                  |
                Ended            refused, free for the next job, or nothing of it is left

Each phase holds only what is known in it. Decisions read phases; `act/run.py` changes them.
"""

from enum import StrEnum
from typing import NamedTuple

from ramherd.core.reasons import Reason, RunEnd
from ramherd.core.record import record, replace


@record
class Exit:
    """How a run's first process ended: exactly one of code and signal."""

    code: int | None
    signal: int | None
    at_s: float


class Output(StrEnum):
    """The state of the files `out` and `err` of a run whose first process has exited."""

    OPEN = "open"
    # The keeper was asked to write the rest and close the files.
    CLOSING = "closing"
    CLOSED = "closed"


class Refusal(NamedTuple):
    """Why a run never began. `is_ours`: the failure is ramherd's (a directory, a cgroup, a process
    for the run), not the job's (its working directory, its program).
    """

    errno: int
    what: str
    is_ours: bool = False


@record
class Starting:
    """The keeper was asked to start the run, and has not reported its first process yet."""


@record
class Running:
    pass


@record
class Held:
    """Frozen at its grant. `since_s` is reset by each grant that was not enough, `frozen_s` is not.
    `clock_s` is the exact time: a step of the loop is too coarse for most holds.
    """

    reason: Reason
    since_s: float
    frozen_s: float
    clock_s: float


@record
class Stopping:
    """Told to end: the end it will count as, and when; `killed_s` is the time of the last KILL.
    `hit_bytes` is the grant at which the run was held at that time.
    """

    end: RunEnd
    reason: Reason
    since_s: float
    killed_s: float | None = None
    hit_bytes: int = 0


@record
class Clearing:
    """The first process has exited: the processes that it left behind are ended, and the rest of
    its output is written.
    """

    exit: Exit
    stop: Stopping | None = None
    # The largest memory of one process, which the kernel reports at its exit.
    largest_bytes: int = 0
    # Whether processes may be left; False if the keeper has reported that none are.
    may_have_left: bool = True
    # When the remaining processes were sent TERM, and how many there were.
    since_s: float | None = None
    leftovers: int = 0
    killed_s: float | None = None
    output: Output = Output.OPEN
    heap_exhausted: bool = False


@record
class Ended:
    """`refused`: the run never began. Without `exit`, `stop` and `refused`, its process is free for
    the next job.
    """

    exit: Exit | None = None
    stop: Stopping | None = None
    refused: Refusal | None = None
    heap_exhausted: bool = False


Phase = Starting | Running | Held | Stopping | Clearing | Ended

# A run can reach its grant, and be told to end, before its start is reported.
FOLLOWING: dict[type[Phase], tuple[type[Phase], ...]] = {
    Starting: (Running, Held, Stopping, Clearing, Ended),
    Running: (Held, Stopping, Clearing, Ended),
    Held: (Running, Held),
    Stopping: (Stopping, Clearing, Ended),
    Clearing: (Clearing, Ended),
    Ended: (),
}


def skip(phase: Phase, gap_s: float) -> Phase:
    """The phase shifted by a time that does not count: its deadlines stay as far away as before."""
    if isinstance(phase, Held):
        return replace(phase, since_s=phase.since_s + gap_s, frozen_s=phase.frozen_s + gap_s)
    if isinstance(phase, Stopping):
        return replace(
            phase, since_s=phase.since_s + gap_s, killed_s=later(phase.killed_s, gap_s)
        )  # fmt: skip
    if isinstance(phase, Clearing):
        stop = skip(phase.stop, gap_s) if phase.stop is not None else None
        assert stop is None or isinstance(stop, Stopping)
        since_s, killed_s = later(phase.since_s, gap_s), later(phase.killed_s, gap_s)
        return replace(phase, stop=stop, since_s=since_s, killed_s=killed_s)
    return phase


# Read about ten times per run and step: a union would be created at each call.
LIVE = (Starting, Running, Held)
EXITED = (Clearing, Ended)


def later(at_s: float | None, by_s: float) -> float | None:
    return None if at_s is None else at_s + by_s


def is_live(phase: Phase) -> bool:
    """Neither ended nor told to end."""
    return isinstance(phase, LIVE)


def exit_of(phase: Phase) -> Exit | None:
    return phase.exit if isinstance(phase, EXITED) else None


def stop_of(phase: Phase) -> Stopping | None:
    """The order to end, also after the exit."""
    if isinstance(phase, Stopping):
        return phase
    return phase.stop if isinstance(phase, EXITED) else None


def refusal_of(phase: Phase) -> Refusal | None:
    return phase.refused if isinstance(phase, Ended) else None


def killed_s_of(phase: Phase) -> float | None:
    return phase.killed_s if isinstance(phase, Stopping | Clearing) else None


def is_output_closed(phase: Phase) -> bool:
    """Whether the keeper has written the last byte of `out` and `err`."""
    if isinstance(phase, Clearing):
        return phase.output is Output.CLOSED
    return isinstance(phase, Ended)


def is_heap_exhausted(phase: Phase) -> bool:
    return isinstance(phase, Clearing | Ended) and phase.heap_exhausted
