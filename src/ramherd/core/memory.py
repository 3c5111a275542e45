"""The nouns of memory: what the governor sees, remembers and orders.

A scene comes in with a history, actions go out with the next history; the same values serve a
supervisor with real pens and the simulator. Bytes are without page cache, times are monotonic.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from ramherd.core.model import Reason, RunEnd, Settle, Stop, Wait
from ramherd.core.units import MIB

__all__ = ["MB", "Admit", "Candidate", "Estimate", "Grant", "GrantAction", "GrantPolicy",
           "History", "Level", "Mode", "Penned", "RunEnd", "Scene", "SetLevel", "Settle", "Stop",
           "Trim", "Wait"]  # fmt: skip

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
        """For one that was said to need less: believed instead of the prior, and that it keeps
        to it within half of that.
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


@dataclass(frozen=True, slots=True)
class Scene:
    """All that one decision of the governor may look at."""

    at_s: float
    lease_bytes: int
    runs: Sequence[Penned]
    # Sorted by priority, then place.
    queue: Sequence[Candidate]
    # What the lease could be at most, with nothing else on the machine.
    largest_bytes: int
    estimates: Mapping[str, Estimate] = field(default_factory=dict)
    # Shares of time from 0 to 1 (PSI `some`, 10 s), and pages read back from swap.
    memory_pressure: float = 0.0
    cpu_pressure: float = 0.0
    swap_in_bytes_per_s: float = 0.0
    # Starts in the last minute that failed for memory (ENOMEM, killed at birth, no heap).
    failed_starts: int = 0
    # Starts under way: asked for, and not yet said to be running.
    starting: int = 0
    # Runs that are over but for their pens, and what they were granted: not part of the lease.
    ending: int = 0
    ending_bytes: int = 0
    # So many runs at a time for now (`--ramp`).
    ramp: int | None = None
    cores: int = 1

    def estimate(self, one: Penned | Candidate) -> Estimate:
        return self.estimates.get(one.label, PRIOR).promised(one.promised_bytes)


@dataclass(frozen=True, slots=True)
class History:
    """What the governor remembers from one decision to the next."""

    # Since when a run's grant has been more than it needs.
    idle_since_s: Mapping[str, float] = field(default_factory=dict)
    # Waiters whose patience ran out, and when each was last seen held.
    urgent_s: Mapping[str, float] = field(default_factory=dict)
    level: Level = Level.CALM
    debt_since_s: float | None = None
    cpu_gate: bool = False


@dataclass(frozen=True, slots=True)
class GrantPolicy:
    """The numbers that the governor compares with; `docs/governor.md` has their measurements."""

    # 30 holds for a gigabyte, 5 ms each: a sixth of a second while a tool call starts.
    quantum_bytes: int = 32 * MIB
    # The event comes at the grant less this. Overshoot was 3 MB at most at 3.3 GB/s, so
    # that what is held stays within the grant.
    arm_below_bytes: int = 4 * MIB
    # So near to that mark it counts as there: charges come in batches of 64 pages a core, and on
    # cgroup v2 the kernel brakes a little before.
    near_bytes: int = 2 * MIB
    # A grant is shrunk to what is used and this, so long after the fall.
    headroom_bytes: int = 32 * MIB
    shrink_after_s: float = 5.0
    # With somebody waiting, this is all the others keep above what they use.
    slim_bytes: int = 8 * MIB
    # The kernel's own limit is so far above the grant: a backstop for a supervisor that is late.
    margin_bytes: int = 48 * MIB
    patience_s: float = 3.0
    max_hold_s: float = 30.0
    # An urgent waiter that was not held for so long has finished growing.
    urgent_for_s: float = 2.0
    # Agents reach their base 8 s after the start, slow ones after 20 s.
    young_s: float = 20.0
    fill_share: float = 0.95
    z_resumes: float = 0.5
    z_starts_over: float = 1.5
    # Equal agents started in one instant burst together: a quarter of the memory a second.
    stagger_s: float = 1.0
    stagger_share: float = 0.25
    # Hundreds of starts under way at once make each of them, and the machine, late.
    max_starting: int = 16
    max_parallel: int | None = None
    # A waiting job rises by one priority in this time.
    ageing_s: float = 600.0
    # So long may small jobs pass a large one that does not fit yet.
    overtake_s: float = 120.0
    single_debt_s: float = 10.0
    # On and off marks.
    single_bases: tuple[float, float] = (2.0, 2.5)
    memory_pressure_marks: tuple[float, float] = (0.20, 0.10)
    cpu_pressure_marks: tuple[float, float] = (0.90, 0.75)
    swap_in_marks: tuple[float, float] = (4.0 * MIB, 1.0 * MIB)
    single_failed_starts: int = 3

    def scaled(self, time: float, size: float) -> "GrantPolicy":
        """The same policy for agents that live `time` times faster and are `size` times smaller."""
        times: dict[str, Any] = {name: getattr(self, name) / time for name in TIMES}
        quantum, headroom = (
            int(value / size) for value in (self.quantum_bytes, self.headroom_bytes)
        )
        # What a run keeps stays above its mark, which is the kernel's to set: it would be held.
        headroom = max(headroom, self.slim_bytes)
        return replace(self, **times, quantum_bytes=quantum, headroom_bytes=headroom)


TIMES = (
    "shrink_after_s", "patience_s", "max_hold_s", "urgent_for_s", "young_s", "stagger_s",
    "ageing_s", "overtake_s", "single_debt_s",
)  # fmt: skip


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


@dataclass(frozen=True, slots=True)
class SetLevel:
    level: Level
    reason: Reason


GrantAction = Grant | Trim | Admit | SetLevel | Stop | Wait | Settle
