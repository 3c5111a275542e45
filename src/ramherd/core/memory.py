"""The nouns of memory: the governor's input, history and actions.

The governor takes a scene and a history, and returns actions and the next history. Supervisors with
real pens and the simulator use the same values. Sizes exclude page cache, times are monotonic.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import NamedTuple

from ramherd.core.model import Reason, RunEnd, Settle, Stop, Wait

__all__ = ["MB", "Admit", "CacheFull", "Candidate", "Estimate", "Grant", "GrantAction",
           "History", "Hold", "Level", "Mode", "Penned", "RunEnd", "RunGrant", "Scene",
           "SetLevel", "Settle", "Stop", "Trim", "Wait"]  # fmt: skip

MB = 10**6


class Level(StrEnum):
    CALM = "calm"
    TIGHT = "tight"
    SINGLE = "single"


class Mode(StrEnum):
    """The work that a stopped run loses: only the open tool call, or everything."""

    RESUMES = "resumes"
    STARTS_OVER = "starts_over"


@dataclass(frozen=True, slots=True)
class Estimate:
    """The mean and spread of the memory of one run of a class over time."""

    base_bytes: int
    sd_bytes: int
    peak_bytes: int = 0
    duration_s: float = 0.0
    runs: int = 0
    # The share that still comes from the prior: 1 before any run of the class was seen.
    prior_share: float = 1.0

    def promised(self, memory_bytes: int) -> "Estimate":
        """The estimate for a job whose `memory` is below the base. `memory` replaces the prior's
        part of the base, and half of it limits the prior's part of the spread.
        """
        if not 0 < memory_bytes < self.base_bytes:
            return self
        sd = min(memory_bytes // 2, self.sd_bytes)
        base_less, sd_less = (
            int(self.prior_share * less)
            for less in (self.base_bytes - memory_bytes, self.sd_bytes - sd)
        )
        return replace(
            self, base_bytes=self.base_bytes - base_less, sd_bytes=self.sd_bytes - sd_less
        )


# Claude Code on 148 software tasks: mean 215 MB, standard deviation 110 MB over runs and time.
PRIOR = Estimate(base_bytes=215 * MB, sd_bytes=110 * MB, peak_bytes=300 * MB, duration_s=320.0)


@dataclass(frozen=True, slots=True)
class Penned:
    """One run in its pen. `first_s` is the time of its job's first start: a resumed job keeps its
    age, so the oldest job stays the oldest until it is done.
    """

    run: str
    job: str
    seq: int
    first_s: float
    started_s: float
    used_bytes: int
    grant_bytes: int
    held_since_s: float | None = None
    priority: int = 0
    label: str = ""
    leaving: bool = False
    # The size that the user requested with `memory`: the grant is not shrunk below it.
    promised_bytes: int = 0
    # Page cache that is charged to the run, and whether the page cache has filled the grant.
    cache_bytes: int = 0
    cache_full: bool = False
    # The run's `memory_limit`: it cannot use more.
    limit_bytes: int | None = None
    # The name of the job, for people.
    name: str = ""
    # Whether the job can resume, and how often it was stopped to make room.
    resumes: bool = True
    stops: int = 0

    @property
    def age(self) -> tuple[int, float, int]:
        """Sorts the oldest first."""
        return -self.priority, self.first_s, self.seq


@dataclass(frozen=True, slots=True)
class Candidate:
    """A queued job whose dependencies are done."""

    job: str
    seq: int
    queued_s: float
    priority: int = 0
    mode: Mode = Mode.RESUMES
    label: str = ""
    # The size requested with `memory`, or the grant at which the last run was stopped while held:
    # with less, the next run would be stopped again.
    need_bytes: int = 0
    not_before_s: float = 0.0
    limit_bytes: int | None = None
    # The size requested with `memory`.
    promised_bytes: int = 0
    # The time of the job's first start, if it ever started.
    first_s: float | None = None
    # How often the job was stopped to make room.
    stops: int = 0

    @property
    def age(self) -> tuple[int, float, int]:
        """The place among the runs: see `Penned.age`. A job that never ran is younger than all."""
        return -self.priority, math.inf if self.first_s is None else self.first_s, self.seq

    @property
    def is_returning(self) -> bool:
        """The job was stopped while it was held."""
        return self.first_s is not None and self.need_bytes > self.promised_bytes


@dataclass(frozen=True, slots=True)
class Scene:
    """The complete input of one decision of the governor."""

    at_s: float
    lease_bytes: int
    runs: Sequence[Penned]
    # Sorted by priority, then place.
    queue: Sequence[Candidate]
    # The lease if nothing else used the machine.
    largest_bytes: int
    # The largest lease that this application could get now.
    budget_bytes: int = 0
    estimates: Mapping[str, Estimate] = field(default_factory=dict)
    # Shares of time from 0 to 1 (PSI `some`, 10 s), and pages read back from swap.
    memory_pressure: float = 0.0
    cpu_pressure: float = 0.0
    swap_in_bytes_per_s: float = 0.0
    # Starts in the last minute that failed for memory (ENOMEM, killed at birth).
    failed_starts: int = 0
    # Starts that the keeper has not reported yet.
    starting: int = 0
    # Ended runs whose pens still exist, and their grants, which are not part of the lease.
    ending: int = 0
    ending_bytes: int = 0
    # The number of runs that `--ramp` allows now.
    ramp: int | None = None
    cores: int = 1

    def estimate(self, one: Penned | Candidate) -> Estimate:
        return self.estimates.get(one.label, PRIOR).promised(one.promised_bytes)


class Bursts(NamedTuple):
    """How many bursts of one job made other runs leave, and when a run last left for the job."""

    times: int
    last_s: float


@dataclass(frozen=True, slots=True)
class History:
    """The state that the governor keeps from one decision to the next."""

    # The time since which a run's grant has been more than it needs.
    idle_since_s: Mapping[str, float] = field(default_factory=dict)
    # Waiting runs whose patience has run out, and when each was last seen held.
    urgent_s: Mapping[str, float] = field(default_factory=dict)
    # The time of each run's last growth, kept for a while.
    grown_s: Mapping[str, float] = field(default_factory=dict)
    # By job: the bursts for which other runs had to leave.
    bursts: Mapping[str, Bursts] = field(default_factory=dict)
    # The last time when there was no room for a run that had to grow.
    short_s: float | None = None
    level: Level = Level.CALM
    # The last time that a rule called for this level, the end of the last level, and whether this
    # level came back soon after that end.
    asked_s: float = float("-inf")
    left_s: float = float("-inf")
    is_back: bool = False
    debt_since_s: float | None = None
    cpu_gate: bool = False


@dataclass(frozen=True, slots=True)
class Grant:
    """The bytes that a run may hold from now on. Grants are carried out in order: a grant that
    shrinks comes before the grant that uses its bytes.
    """

    run: str
    grant_bytes: int
    reason: Reason


@dataclass(frozen=True, slots=True)
class Admit:
    """Start the job in a pen with this grant."""

    job: str
    grant_bytes: int
    reason: Reason


@dataclass(frozen=True, slots=True)
class Trim:
    """Drop page cache of a run whose page cache has filled its grant."""

    run: str
    reason: Reason


class RunGrant(NamedTuple):
    """The bytes that one run may hold now. The kernel sends an event at `mark_bytes`."""

    grant_bytes: int = 0
    mark_bytes: int = 0
    # Page cache has brought the run to its mark.
    cache_full: bool = False
    # Events of the run are not read until this time.
    muted_until_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Hold:
    """Freeze a run: its own memory has reached the grant."""

    reason: Reason


@dataclass(frozen=True, slots=True)
class CacheFull:
    """Page cache has filled a run's grant: the governor makes room for the cache or drops it."""

    reason: Reason


@dataclass(frozen=True, slots=True)
class SetLevel:
    level: Level
    reason: Reason


GrantAction = Grant | Trim | Admit | SetLevel | Stop | Wait | Settle
