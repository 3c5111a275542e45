"""The result of a simulation, with the names of `simulate --json`."""

from dataclasses import dataclass, field
from typing import Any


@dataclass
class SimCounters:
    """Counters during a simulation."""

    makespan_s: int = 0
    done: int = 0
    failed: int = 0
    oom_kills: int = 0
    preempted: int = 0
    recycled: int = 0
    held_s: int = 0
    work_s: int = 0
    redone_s: int = 0
    used_byte_s: int = 0
    peak_bytes: int = 0
    # The longest time for which grants exceeded the memory after memory was taken away.
    debt_s: int = 0
    # Bytes by run for each second, only if a picture was requested.
    picture: list[dict[str, int]] | None = None
    reasons: dict[str, int] = field(default_factory=dict)

    def see(self, used: dict[str, int]) -> None:
        total = sum(used.values())
        self.used_byte_s += total
        self.peak_bytes = max(self.peak_bytes, total)
        if self.picture is not None:
            self.picture.append(used)


@dataclass(frozen=True, slots=True)
class SimResult:
    policy: str
    traces: str
    jobs: int
    budget_bytes: int
    oracle_s: int
    area_byte_s: int
    tally: SimCounters

    @property
    def lost(self) -> int:
        """Neither done nor failed with a reason: there must be none."""
        return self.jobs - self.tally.done - self.tally.failed

    @property
    def oracle_share(self) -> float:
        return self.oracle_s / self.tally.makespan_s if self.tally.makespan_s else 0.0

    @property
    def redone_share(self) -> float:
        return self.tally.redone_s / self.tally.work_s if self.tally.work_s else 0.0

    def as_json(self) -> dict[str, Any]:
        tally, room = self.tally, self.budget_bytes * max(self.tally.makespan_s, 1)
        return {
            "policy": self.policy,
            "traces": self.traces,
            "jobs": self.jobs,
            "budget_bytes": self.budget_bytes,
            "makespan_s": tally.makespan_s,
            "oracle_s": self.oracle_s,
            "oracle_share": round(self.oracle_share, 4),
            "area_share": round(self.area_byte_s / room, 4),
            "oom_kills": tally.oom_kills,
            "preempted": tally.preempted,
            "redone_share": round(self.redone_share, 4),
            "utilisation": round(tally.used_byte_s / room, 4),
            "done": tally.done,
            "failed": tally.failed,
            "lost": self.lost,
            "recycled": tally.recycled,
            "held_s": tally.held_s,
            "peak_bytes": tally.peak_bytes,
        }
