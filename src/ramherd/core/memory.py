"""The nouns of memory: what the governor sees, remembers and orders.

A scene comes in with a history, actions go out with the next history; the same values serve a
supervisor with real pens and the simulator. Bytes are without page cache, times are monotonic.
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
    """What a stopped run loses: nothing but the open tool call, or all it did."""

    RESUMES = "resumes"
    STARTS_OVER = "starts_over"


@dataclass(frozen=True, slots=True)
class Estimate:
    """What is known of a class of runs: the mean and spread of one run's memory over time."""

    base_bytes: int
    sd_bytes: int
    peak_bytes: int = 0
    duration_s: float = 0.0
    runs: int = 0
    # How much of it is still the prior: all, before runs of its kind were seen.
    prior_share: float = 1.0

    def promised(self, memory_bytes: int) -> "Estimate":
        """For a job whose `memory` is below the base: it replaces the prior's part of the base, and
        half of it is the most that counts as the prior's spread.
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
    """One run in its pen. `first_s` is when its job was first started: a resumed job keeps its
    age, so that one and the same job is the oldest until it is done.
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
    # What was asked for with `memory`: a promise, not shrunk below.
    promised_bytes: int = 0
    # Page cache that the kernel counts for it, and whether that has brought it to its grant.
    cache_bytes: int = 0
    cache_full: bool = False
    # Its `memory_limit`: more is no use to it.
    limit_bytes: int | None = None
    # How its job is called where people read it.
    name: str = ""
    # Whether its job goes on where it was, and how often it was stopped to make room.
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
    # What was asked for with `memory`, or the grant that its last run was stopped at while
    # held: with less it would only be stopped again.
    need_bytes: int = 0
    not_before_s: float = 0.0
    limit_bytes: int | None = None
    # What was asked for with `memory`.
    promised_bytes: int = 0
    # When it was first started, if it ever was.
    first_s: float | None = None
    # How often it was stopped to make room.
    stops: int = 0

    @property
    def age(self) -> tuple[int, float, int]:
        """Its place among the runs: see `Penned.age`. A job that never ran is younger than all."""
        return -self.priority, math.inf if self.first_s is None else self.first_s, self.seq

    @property
    def is_returning(self) -> bool:
        """It was stopped while it was held, and goes on where it was."""
        stopped_held = self.first_s is not None and self.need_bytes > self.promised_bytes
        return stopped_held and self.mode is Mode.RESUMES


@dataclass(frozen=True, slots=True)
class Scene:
    """All that one decision of the governor may depend on."""

    at_s: float
    lease_bytes: int
    runs: Sequence[Penned]
    # Sorted by priority, then place.
    queue: Sequence[Candidate]
    # What the lease could be at most, with nothing else on the machine.
    largest_bytes: int
    # What the lease could be now, if this application wanted all of it.
    budget_bytes: int = 0
    estimates: Mapping[str, Estimate] = field(default_factory=dict)
    # Shares of time from 0 to 1 (PSI `some`, 10 s), and pages read back from swap.
    memory_pressure: float = 0.0
    cpu_pressure: float = 0.0
    swap_in_bytes_per_s: float = 0.0
    # Starts in the last minute that failed for memory (ENOMEM, killed at birth).
    failed_starts: int = 0
    # Starts under way: the keeper has not reported them yet.
    starting: int = 0
    # Runs that are over but for their pens, and what they were granted: not part of the lease.
    ending: int = 0
    ending_bytes: int = 0
    # So many runs at a time for now (`--ramp`).
    ramp: int | None = None
    cores: int = 1

    def estimate(self, one: Penned | Candidate) -> Estimate:
        return self.estimates.get(one.label, PRIOR).promised(one.promised_bytes)


class Bursts(NamedTuple):
    """How many bursts of one job made other runs leave, and when the last run left for it."""

    times: int
    last_s: float


@dataclass(frozen=True, slots=True)
class History:
    """What the governor remembers from one decision to the next."""

    # Since when a run's grant has been more than it needs.
    idle_since_s: Mapping[str, float] = field(default_factory=dict)
    # Waiters whose patience ran out, and when each was last seen held.
    urgent_s: Mapping[str, float] = field(default_factory=dict)
    # When each run last grew, for a while.
    grown_s: Mapping[str, float] = field(default_factory=dict)
    # By job: those for which other runs had to leave.
    bursts: Mapping[str, Bursts] = field(default_factory=dict)
    # When there was last no room for a run that had to grow.
    short_s: float | None = None
    level: Level = Level.CALM
    # When something last asked for this level, when a level last ended, and whether this one came
    # back soon after that.
    asked_s: float = float("-inf")
    left_s: float = float("-inf")
    is_back: bool = False
    debt_since_s: float | None = None
    cpu_gate: bool = False


@dataclass(frozen=True, slots=True)
class Grant:
    """The bytes a run may hold from now on. Carried out in the order given: what one gives up
    comes before what another gets.
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
    """Drop page cache of a run that has come to its grant by it."""

    run: str
    reason: Reason


class RunGrant(NamedTuple):
    """What one run may hold now. The kernel reports it at `mark_bytes`."""

    grant_bytes: int = 0
    mark_bytes: int = 0
    # Page cache has brought it to its mark.
    cache_full: bool = False
    # Its events are not read until then.
    muted_until_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Hold:
    """Freeze a run: it is at its grant by memory of its own."""

    reason: Reason


@dataclass(frozen=True, slots=True)
class CacheFull:
    """A run is at its grant by page cache, which the governor makes room for or drops."""

    reason: Reason


@dataclass(frozen=True, slots=True)
class SetLevel:
    level: Level
    reason: Reason


GrantAction = Grant | Trim | Admit | SetLevel | Stop | Wait | Settle
