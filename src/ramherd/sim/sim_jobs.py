"""Simulated jobs and runs: the memory that a run needs each second, and its grant."""

from dataclasses import dataclass

from ramherd.core.memory import Candidate, Mode, Penned
from ramherd.decide.governor.classes import RunSummary
from ramherd.decide.governor.recycle import Own
from ramherd.sim.course import Course

# From held to running took 5 ms at p95 (cgroup v1): each quantum costs the run that much.
GRANT_COST_S = 0.005


@dataclass(slots=True)
class SimJob:
    """`kept` is the second at which its next run resumes."""

    name: str
    seq: int
    course: Course
    mode: Mode = Mode.RESUMES
    priority: int = 0
    label: str = ""
    need_bytes: int = 0
    after: tuple[str, ...] = ()
    leak_bytes_per_s: int = 0
    kept: int = 0
    # The grant at which it had to leave: less does not help.
    hit_bytes: int = 0
    runs: int = 0
    # How often the job was stopped to make room.
    stops: int = 0
    first_s: float | None = None
    queued_s: float = 0.0
    done_s: float | None = None
    failed: bool = False

    def candidate(self) -> Candidate:
        return Candidate(
            job=self.name, seq=self.seq, queued_s=self.queued_s, priority=self.priority,
            mode=self.mode, label=self.label, need_bytes=max(self.need_bytes, self.hit_bytes),
            promised_bytes=self.need_bytes, first_s=self.first_s, stops=self.stops,
        )  # fmt: skip


@dataclass(slots=True)
class SimRun:
    """One attempt. `used` never exceeds `grant`: the run is stopped at the grant less the arming
    distance, and overshoots by at most that distance.
    """

    id: str
    job: SimJob
    started_s: float
    grant: int
    position: int
    ramp_left: int
    used: int = 0
    held_since_s: float | None = None
    leaving: bool = False
    lag_s: float = 0.0
    held_s: int = 0
    seen: int = 0
    total: int = 0
    squares: float = 0.0
    peak: int = 0
    # The view is recreated only after a change: a second has many rounds.
    seen_as: Penned | None = None

    def wants(self, at_s: float) -> int:
        """The memory that the run holds within this second if it is not stopped."""
        sizes, job = self.job.course.bytes, self.job
        second = job.course.ramp - self.ramp_left if self.ramp_left else self.position
        leaked = job.leak_bytes_per_s * int(at_s - self.started_s) if job.leak_bytes_per_s else 0
        return sizes[min(second, len(sizes) - 1)] + leaked

    def advance(self, at_s: float, arm_below: int) -> bool:
        """One second, if its memory fits into the grant; otherwise it is held at the grant."""
        self.seen_as = None
        wanted = self.wants(at_s)
        if wanted + arm_below > self.grant:
            if self.held_since_s is None:
                self.held_since_s = at_s
            self.used = self.grant
            return False
        self.held_since_s = None
        self.used = wanted
        if self.lag_s >= 1.0:
            self.lag_s -= 1.0
        elif self.ramp_left:
            self.ramp_left -= 1
        else:
            self.position += 1
        return True

    def record_second(self) -> None:
        self.seen += 1
        self.total += self.used
        self.squares += self.used * self.used
        self.peak = max(self.peak, self.used)

    @property
    def is_over(self) -> bool:
        return self.position >= self.job.course.seconds and not self.ramp_left

    def view(self) -> Penned:
        if self.seen_as is None:
            job = self.job
            self.seen_as = Penned(
                self.id, job.name, job.seq, job.first_s or 0.0, self.started_s, self.used,
                self.grant, self.held_since_s, job.priority, job.label, self.leaving,
                job.need_bytes, resumes=job.mode is Mode.RESUMES, stops=job.stops,
            )  # fmt: skip
        return self.seen_as

    def own(self) -> Own:
        """Between tool calls all memory is the agent's own, and a restart loses nothing."""
        at = min(self.position, self.job.course.seconds - 1)
        busy = self.job.course.calls[at] != at or self.held_since_s is not None or self.ramp_left
        return Own(self.id, self.job.name, None if busy else self.used)

    def summary(self) -> RunSummary:
        number = max(self.seen, 1)
        mean = self.total / number
        variance = max(self.squares / number - mean * mean, 0.0)
        return RunSummary(int(mean), int(variance**0.5), self.peak, float(self.seen))
